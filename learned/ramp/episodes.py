"""Whole episodes in compiled code: a network decides on one job after the other, in one episode or in many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import kernel

from ..training.ppo import Observed
from .features import MOST, SUMS, WIDTH, remember, scratch_of, turn_of, write_rows
from .scenarios import Episode, Scenario
from .tables import Long


@kernel
def forward(rows: Any, k: int, weights: Any, kind: int, out: Any) -> None:
    """Write the scores of k rows; see `gangplan.learned.ramp.network.Network`."""
    first, offset, hidden, bias, last = weights
    x = np.dot(rows[:k], first)
    for i in range(k):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j] + offset[kind, j], np.float32(0))
    y = np.dot(x, hidden)
    for i in range(k):
        total = np.float32(0)
        for j in range(y.shape[1]):
            total += max(y[i, j] + bias[j], np.float32(0)) * last[j]
        out[i] = total


@kernel
def hold(end: Any, block: int, until: float, tables: Any) -> None:
    """Let the servers of a block be held until then."""
    for i in range(tables.size[block]):
        end[tables.servers[block, i]] = until


@kernel
def run_episode(
    kind: Any, beta: Any, gap: Any, tables: Any, times: Any, weights: Any, scratch: Any, finish: Any
) -> int:
    """Play a case by the best score, write each job's completion (nan: blocked), and return how many were accepted.

    Args:
        kind: type of each job, int64 (n,).
        beta: acceptable share of its sequential time, float64 (n,).
        gap: time since the job before, float64 (n,).
        tables, times: of the cluster and of the types.
        weights: of the network.
        scratch: of the cluster.
        finish: is written, float64 (n,).
    """
    end, sums, score = np.zeros(tables.n), np.zeros(SUMS), np.zeros(MOST, np.float32)
    now, accepted = 0.0, 0
    end[:] = -1.0
    for i in range(len(kind)):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], times.sequential[m], times.efficiency[m], gap[i])
        turn = turn_of(sums, tables.n)
        k = write_rows(end, now, turn, tables, times.jct[m], times.sequential[m], beta[i], sums, scratch)
        forward(scratch.row, k, weights, m, score)
        block = scratch.block[np.argmax(score[:k])]
        finish[i] = np.nan
        if block >= 0:
            finish[i] = now + times.jct[m, tables.shape[block]]
            hold(end, block, finish[i], tables)
            accepted += 1
    return accepted


Draw = Callable[[np.random.Generator], Episode]
"""Draws an episode of the scenario."""


class ParallelEpisodes:
    """B episodes of one scenario; where one ends, another one is drawn.

    Args:
        scenario: where.
        draw: draws the episodes, all of the same length.
        count: B.
        seed: of the draws. They begin at different places of
            their first episodes, so that they do not end at once.
        choose: see `gangplan.learned.ramp.features.scratch_of`.
    """

    def __init__(self, scenario: Scenario, draw: Draw, count: int, seed: int, *, choose: bool = True) -> None:
        self.scenario, self._draw, self.count = scenario, draw, count
        self.rng = np.random.default_rng(seed)
        self._scratch = scratch_of(scenario.tables, choose=choose)
        self._rows = np.zeros((count * MOST, WIDTH), np.float32)
        self._block = np.zeros(count * MOST, np.int64)
        self._first = np.zeros(count + 1, np.int64)
        first = [draw(self.rng) for _ in range(count)]
        n = len(first[0].kind)
        self._kind = np.stack([x.kind for x in first])
        self._beta = np.stack([x.beta for x in first])
        self._gap = np.stack([x.gap for x in first])
        self._at = self.rng.integers(0, n, count)
        self._end = np.full((count, scenario.tables.n), -1.0)
        self._now, self._sums = np.zeros(count), np.zeros((count, SUMS))

    def look(self) -> Observed:
        """Go to the next arrival in every episode, and return what there is to decide."""
        over = self._at >= self._kind.shape[1]
        for slot in np.flatnonzero(over).tolist():
            new = self._draw(self.rng)
            self._kind[slot], self._beta[slot], self._gap[slot] = new.kind, new.beta, new.gap
            self._at[slot], self._now[slot], self._end[slot], self._sums[slot] = 0, 0.0, -1.0, 0.0
        slots = np.arange(self.count)
        kind, beta, gap = self._kind[slots, self._at], self._beta[slots, self._at], self._gap[slots, self._at]
        scenario = self.scenario
        k = _look(
            self._end, self._now, self._sums, kind, beta, gap, scenario.tables, scenario.times, self._scratch,
            self._rows, self._block, self._first,
        )  # fmt: skip
        self._of = kind
        return Observed(self._rows[:k].copy(), self._first.copy(), kind, over)

    def act(self, place: Long) -> FloatArray:
        """Take a row of each episode's, by its place among them, and return 1 where a job is accepted, else 0."""
        reward = np.zeros(self.count)
        chosen = self._block[self._first[:-1] + place]
        _act(self._end, self._now, self._of, chosen, self.scenario.tables, self.scenario.times, reward)
        self._at += 1
        return reward

    def state(self) -> dict[str, FloatArray]:
        """Return all that changes, but the generator, as arrays of float64."""
        names = ("_kind", "_beta", "_gap", "_at", "_end", "_now", "_sums")
        return {name: np.asarray(getattr(self, name), dtype=np.float64) for name in names}

    def load(self, state: dict[str, FloatArray]) -> None:
        """Go back to what `state` returned."""
        for name, value in state.items():
            getattr(self, name)[...] = value


@kernel
def _look(
    end: Any, now: Any, sums: Any, kind: Any, beta: Any, gap: Any, tables: Any, times: Any, scratch: Any, rows: Any,
    block: Any, first: Any,
) -> int:  # fmt: skip
    at = 0
    for slot in range(len(kind)):
        m = kind[slot]
        now[slot] += gap[slot]
        remember(sums[slot], beta[slot], times.sequential[m], times.efficiency[m], gap[slot])
        turn = turn_of(sums[slot], tables.n)
        k = write_rows(
            end[slot], now[slot], turn, tables, times.jct[m], times.sequential[m], beta[slot], sums[slot], scratch
        )
        rows[at : at + k] = scratch.row[:k]
        block[at : at + k] = scratch.block[:k]
        at += k
        first[slot + 1] = at
    return at


@kernel
def _act(end: Any, now: Any, kind: Any, block: Any, tables: Any, times: Any, reward: Any) -> None:
    for slot in range(len(kind)):
        b = block[slot]
        if b >= 0:
            reward[slot] = 1.0
            hold(end[slot], b, now[slot] + times.jct[kind[slot], tables.shape[b]], tables)
