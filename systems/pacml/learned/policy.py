"""PAC-ML's decision by a network: from the state of a cluster to a degree and a block for a job, or to none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.learned.policy.network import NetworkPolicy, pick
from gangplan.learned.policy.weights import Tensors

from ..arrivals import ArrivalCase
from ..simulate import Acceptance, RampState
from .features import Past
from .guard import LookAhead, LookBack
from .hindsight import Futures
from .parts import parts
from .recipe import NAME, PacmlSettings
from .tables import TypeTimes, tables

if TYPE_CHECKING:
    from .network import BlockNetwork

LOOKS = 16
"""Parts that are looked at for a job."""

_SOON = 2e-9
"""Turns until a server is free that is so but for rounding: for a simulator that does not round, it is not free."""


@dataclass(frozen=True, slots=True, eq=False)
class RampObservation:
    """One decision.

    Attributes:
        rows: features of the candidates, float32 (A, WIDTH). One for each part leaves it as it is.
        block: of each candidate, or its degree where no block is chosen; int64 (A,), -1 for none: the job is rejected.
        part: whose rows these are, int64 (A,), see `gangplan.systems.pacml.learned.parts`.
    """

    rows: NDArray[np.float32]
    block: NDArray[np.int64]
    part: NDArray[np.int64]


class RampDecider:
    """A policy for `gangplan.systems.pacml.simulate`; `rate` is left to those who inherit.

    Args:
        choose: whether it chooses the block; else a degree, and published first fit places each op.
        guarded: whether it is held against plain rules, which choose blocks, see `.guard`.
        futures: decide between its best blocks by plans, on clusters of one part.
    """

    def __init__(self, *, choose: bool = True, guarded: bool = True, futures: Futures | None = None) -> None:
        self._choose, self._guarded, self._futures = choose, guarded and choose, futures
        self._parts_of = cache(partial(parts, choose=choose))
        self._times_of = cache(lambda kind: TypeTimes([kind], published=not choose))
        self._guard_of = cache(lambda of: (LookBack if len(self._parts_of(of)) == 1 else LookAhead)(tables(of)))
        self._case: ArrivalCase | None = None
        self._index, self._past = -1, Past()

    def rate(self, observation: RampObservation) -> FloatArray:
        """Return what the network says of each row, float64 (A,)."""
        raise NotImplementedError

    def score(self, observation: RampObservation) -> FloatArray:
        """Return a score a candidate, float64 (A,): how much better its part is with it than as it is."""
        rates = self.rate(observation)
        none = np.flatnonzero(observation.block < 0)
        kept = np.zeros(observation.part.max() + 1)
        kept[observation.part[none]] = rates[none]
        return rates - kept[observation.part]

    def choose(self, observation: RampObservation, seed: int | None = None) -> int:
        """Return the place of the best candidate, or of one drawn by that seed from the softmax of the scores."""
        return pick(self.score(observation), seed)

    def observe(self, state: RampState) -> RampObservation:
        """Return what there is to decide when a job arrives."""
        known = self._parts_of(state.blocks)
        self._remember(state)
        turn = self._past.turn(state.blocks.n_servers)
        ends = np.where(state.free, state.ends, np.maximum(state.ends, state.now + _SOON * turn))
        times = self._times_of(state.job)
        rows, block, of = [], [], []
        # all parts have their turns, some at each arrival
        for i in range(min(len(known), LOOKS)):
            part = known[(state.index * LOOKS + i) % len(known)]
            decision = part.decision
            k = decision.look(ends[part.servers], state.now, turn, times, 0, state.fraction, self._past)
            decision.write(k)
            own = np.asarray(decision.choice)[:k]
            kept = np.array([j for j in range(k) if self._choose or _in_time(state, int(own[j]))])
            rows.append(np.asarray(decision.row)[kept])
            block.append(np.where(own < 0, -1, part.block[own]) if self._choose else own[kept])
            of.append(np.full(len(kept), i))
        return RampObservation(np.concatenate(rows), np.concatenate(block), np.concatenate(of))

    def decide(self, state: RampState) -> Acceptance | None:
        """Return degree and block for the job, or None to reject it."""
        block = self._guard_of(state.blocks).decide(state, self._best) if self._guarded else self._best(state)
        if block < 0:
            return None
        return Acceptance(int(state.blocks.degree[block]), block) if self._choose else Acceptance(block)

    def _best(self, state: RampState) -> int:
        seen, known = self.observe(state), self._parts_of(state.blocks)
        if self._futures is None or not self._choose or len(known) > 1:
            return int(seen.block[self.choose(seen)])
        return self._futures.choose(state, known[0].decision.tables, seen.block, self.score(seen))

    def _remember(self, state: RampState) -> None:
        """Add the jobs of the case that have arrived since to the sums over those so far."""
        case = state.case
        if self._case is not case or state.index < self._index:
            self._case, self._index, self._past = case, -1, Past()
        for i in range(self._index + 1, state.index + 1):
            kind = case.types[case.model[i]]
            gap = case.submit[i] - case.submit[i - 1] if i else 0.0
            efficiency = self._times_of(kind).efficiency
            self._past.add(case.fraction[i], kind.sequential, efficiency[0, 0], efficiency[0, 1], gap)
        self._index = state.index


class RampPolicy(NetworkPolicy, RampDecider):
    """Decides by the best score of a network, which runs on one core."""

    recipe, config = NAME, PacmlSettings

    def __init__(
        self,
        network: BlockNetwork,
        settings: PacmlSettings | None = None,
        *,
        guarded: bool = True,
        futures: Futures | None = None,
    ) -> None:
        own = replace(settings or PacmlSettings(), width=network.width)
        NetworkPolicy.__init__(self, network, own)
        RampDecider.__init__(self, choose=own.blocks, guarded=guarded, futures=futures)

    @classmethod
    def build(cls, settings: PacmlSettings, tensors: Tensors) -> BlockNetwork:
        """Return the network of the settings."""
        from .network import BlockNetwork

        return BlockNetwork(settings.width)

    def rate(self, observation: RampObservation) -> FloatArray:
        """Return what the network says of each row, float64 (A,)."""
        return np.asarray(self.scores(observation.rows), dtype=np.float64)


def _in_time(state: RampState, degree: int) -> bool:
    """Return whether published first fit has the job done in time, which it is if it is rejected."""
    placed = None if degree < 0 else state.published(degree)
    return degree < 0 or (placed is not None and placed.jct <= state.limit)
