"""From the state of a cluster to a decision, whoever scores the candidates; needs no torch."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import OpGraph
from gangplan.instances.arrays import FloatArray
from gangplan.simulator.ramp import Blocks, Choice, JobType, State

from .features import SUMS, remember, turn_of, write_rows
from .guard import Guard, LookAhead, LookBack
from .parts import Part, parts
from .tables import Times, tables, times_of

LOOKS = 16
"""Pods that are looked at for a job."""

_SOON = 2e-9
"""Turns until a server is free that is so but for rounding: for a simulator that does not round, it is not free."""


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One decision.

    Attributes:
        rows: features of the candidates, float32 (A, WIDTH). One for each part leaves it as it is.
        graph: of the job, unsplit.
        block: of each candidate, int64 (A,), -1 for none: the job is rejected.
        part: whose rows these are, int64 (A,), see `gangplan.learned.ramp.parts`.
    """

    rows: NDArray[np.float32]
    graph: OpGraph
    block: NDArray[np.int64]
    part: NDArray[np.int64]


class Decider:
    """A policy for `gangplan.simulator.ramp.simulate`; `rate` and `embed` are left to those who inherit.

    Args:
        choose: whether it chooses the block; else the first free one of the degree that it chooses.
        guarded: whether it is held against plain rules, see `gangplan.learned.ramp.guard`.
    """

    def __init__(self, *, choose: bool = True, guarded: bool = True) -> None:
        self._choose, self._guarded = choose, guarded
        self._guards: weakref.WeakKeyDictionary[Blocks, Guard] = weakref.WeakKeyDictionary()
        self._known: weakref.WeakKeyDictionary[Blocks, list[Part]] = weakref.WeakKeyDictionary()
        self._jobs: weakref.WeakKeyDictionary[OpGraph, Any] = weakref.WeakKeyDictionary()
        self._past = _Past()

    def rate(self, observation: Observation) -> FloatArray:
        """Return what the network says of each row, float64 (A,)."""
        raise NotImplementedError

    def embed(self, graph: OpGraph) -> Any:
        """Return what the network makes of a job's ops."""
        raise NotImplementedError

    def job(self, graph: OpGraph) -> Any:
        """Return what `embed` made of a job's ops, which is asked for once."""
        found = self._jobs.get(graph)
        if found is None:
            found = self._jobs[graph] = self.embed(graph)
        return found

    def score(self, observation: Observation) -> FloatArray:
        """Return a score a candidate, float64 (A,): how much better its part is with it than as it is."""
        rates = self.rate(observation)
        none = np.flatnonzero(observation.block < 0)
        kept = np.zeros(observation.part.max() + 1)
        kept[observation.part[none]] = rates[none]
        return rates - kept[observation.part]

    def choose(self, observation: Observation, seed: int | None = None) -> int:
        """Return the place of the best candidate, or of one drawn by that seed from the softmax of the scores."""
        scores = self.score(observation)
        if seed is None:
            return int(np.argmax(scores))
        return int(np.argmax(scores + np.random.default_rng(seed).gumbel(size=len(scores))))

    def observe(self, state: State) -> Observation:
        """Return what there is to decide when a job arrives."""
        known = self._parts(state.blocks)
        sums = self._past.up_to(state)
        turn = turn_of(sums, state.blocks.n_servers)
        ends = np.where(state.free, state.ends, np.maximum(state.ends, state.now + _SOON * turn))
        job, jct = state.job, _times_of(state.job).jct[0]
        rows, block, of = [], [], []
        # all parts have their turns, some at each arrival
        for i in range(min(len(known), LOOKS)):
            part = known[(state.index * LOOKS + i) % len(known)]
            k = write_rows(
                ends[part.servers], state.now, turn, part.tables, jct[part.shape], job.sequential, state.fraction, sums,
                part.scratch,
            )  # fmt: skip
            rows.append(part.scratch.row[:k].copy())
            own = part.scratch.block[:k]
            block.append(np.where(own < 0, -1, part.block[own]))
            of.append(np.full(k, i))
        return Observation(np.concatenate(rows), job.graph, np.concatenate(block), np.concatenate(of))

    def decide(self, state: State) -> Choice | None:
        """Return degree and block for the job, or None to reject it."""
        guard = self._guard(state.blocks) if self._guarded else None
        block = self._block(state) if guard is None else guard.decide(state, self._block)
        return None if block < 0 else Choice(int(state.blocks.degree[block]), block)

    def _block(self, state: State) -> int:
        seen = self.observe(state)
        return int(seen.block[self.choose(seen)])

    def _parts(self, blocks: Blocks) -> list[Part]:
        found = self._known.get(blocks)
        if found is None:
            found = self._known[blocks] = parts(blocks, choose=self._choose)
        return found

    def _guard(self, blocks: Blocks) -> Guard:
        """Return the cluster's guard."""
        if blocks not in self._guards:
            kind = LookBack if len(self._parts(blocks)) == 1 else LookAhead
            self._guards[blocks] = kind(tables(blocks))
        return self._guards[blocks]


class _Past:
    """The sums over the jobs of a case so far, gone on with as they arrive."""

    def __init__(self) -> None:
        self._case: Any = None
        self._index = -1
        self._sums = np.zeros(SUMS)

    def up_to(self, state: State) -> FloatArray:
        case = state.case
        if self._case is not case or state.index < self._index:
            self._case, self._index = case, -1
            self._sums[:] = 0.0
        for i in range(self._index + 1, state.index + 1):
            kind = case.types[case.model[i]]
            gap = case.submit[i] - case.submit[i - 1] if i else 0.0
            remember(self._sums, case.fraction[i], kind.sequential, _times_of(kind).efficiency[0], gap)
        self._index = state.index
        return self._sums


_TIMES: weakref.WeakKeyDictionary[JobType, Times] = weakref.WeakKeyDictionary()


def _times_of(kind: JobType) -> Times:
    found = _TIMES.get(kind)
    if found is None:
        found = _TIMES[kind] = times_of([kind])
    return found
