"""Dynamic programming over chains of ideals: exact if it is given all ideals, a heuristic if it is given some.

f[c, J] = min over I subset of J, t with c[t] > 0 of max(f[c - e(t), I], load(t, J minus I)), where the vector c counts
the devices used of each type (PipeDream's recurrence, Narayanan et al., SOSP 2019, on the ideals of Tarnawski et
al., NeurIPS 2020, with any mix of device types in any order).

What makes it fast is a threshold T on the load. With r[t] the most work a device of type t does in a second, an
ideal I can end the stages that used c only if

    W - T * sum((n[t] - c[t]) * r[t]) <= w(I) <= T * sum(c[t] * r[t]),

a window that is narrow when T is close to the optimum; only pairs of ideals in windows next to each other are
looked at, as blocks of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ...run import never
from .ideals import IdealOrder, Index

STRICT = 1e-9
"""A chain must beat the threshold by this much, relatively, to count."""
_ROWS = 256
_KEPT_PAIRS = 20_000_000
_MANY_DEVICES = 12

Chain = list[tuple[int, int]]
"""Stages in order: (device type, ideal finished at its end)."""
_Block = tuple[slice, Index, FloatArray]


@dataclass(frozen=True)
class _ChainState:
    """The ideals that can end a number of stages, with their value f and where each came from."""

    ideals: Index
    value: FloatArray
    previous: Index
    kind: Index


def best_chain(family: IdealOrder, threshold: float, stopped: Callable[[], bool] = never) -> tuple[float, Chain] | None:
    """Return the chain of least maximum load below `threshold` and its load, or `None`; `TimeoutError` if stopped."""
    return _ChainRecurrence(family, threshold * (1 - STRICT)).run(stopped)


def effort(family: IdealOrder, threshold: float) -> float:
    """Return about how many pairs of ideals `best_chain` would look at."""
    return _ChainRecurrence(family, threshold).effort()


class _ChainRecurrence:
    def __init__(self, family: IdealOrder, cap: float) -> None:
        self.family, self.cap = family, cap
        self.counts: list[int] = family.q.counts.tolist()
        # equal devices ask for the same loads again and again: keep them if they fit
        keep = sum(self.counts) >= _MANY_DEVICES and self._pairs() <= _KEPT_PAIRS
        self.memory: dict[tuple[int, int], tuple[Index, FloatArray]] | None = {} if keep else None

    def run(self, stopped: Callable[[], bool]) -> tuple[float, Chain] | None:
        states: dict[tuple[int, ...], _ChainState] = {}
        none = (0,) * len(self.counts)
        states[none] = _ChainState(np.array([0]), np.zeros(1), np.array([-1]), np.array([-1]))
        # counts in lexicographic order: what a state needs has been computed before it
        for used in product(*(range(n + 1) for n in self.counts)):
            if used != none:
                states[used] = self._extend(states, used, stopped)
        end = states[tuple(self.counts)]
        if not len(end.ideals):
            return None
        return float(end.value[0]), self._trace(states, tuple(self.counts))

    def effort(self) -> float:
        """Return the pairs of all states: the ideals in their windows times the reach of each."""
        work, speed = self.family.work, self.family.q.speed
        ahead = {}
        for t in np.flatnonzero(self.counts).tolist():
            reach = np.searchsorted(work, work + self.cap * speed[t], "right") - np.arange(len(work))
            ahead[t] = np.concatenate([[0], np.cumsum(reach)])
        total = 0.0
        for used in product(*(range(n + 1) for n in self.counts)):
            first, last = self._window(np.array(used))
            total += sum(float(ahead[t][last] - ahead[t][first]) for t in ahead if used[t] < self.counts[t])
        return total

    def _window(self, used: NDArray[Any]) -> tuple[int, int]:
        q = self.family.q
        left = q.counts - used
        if not left.any():
            return self.family.full, self.family.full + 1
        # the slack on both ends covers sums of floats in another order
        slack = STRICT * self.family.total
        low = self.family.total - self.cap * float(left @ q.speed) - slack
        high = self.cap * float(used @ q.speed) + slack
        return int(np.searchsorted(self.family.work, low, "left")), int(
            np.searchsorted(self.family.work, high, "right")
        )

    def _extend(
        self, states: dict[tuple[int, ...], _ChainState], used: tuple[int, ...], stopped: Callable[[], bool]
    ) -> _ChainState:
        n = len(self.family.ideals)
        value, previous, kind = np.full(n, np.inf), np.full(n, -1), np.full(n, -1)
        first, last = self._window(np.array(used))
        for t in np.flatnonzero(used).tolist():
            source = states[tuple(c - (x == t) for x, c in enumerate(used))]
            # a device may stay empty
            keep = (source.ideals >= first) & (source.ideals < last)
            stay = source.ideals[keep]
            self._improve(value, previous, kind, stay, source.value[keep], stay, t)
            for rows, ends, load in self._blocks(source, t, first, last):
                if stopped():
                    raise TimeoutError
                worst = np.maximum(load, source.value[rows][:, None])
                best = worst.argmin(axis=0)
                values = worst[best, np.arange(len(ends))]
                self._improve(value, previous, kind, ends, values, source.ideals[rows][best], t)
        kept = np.flatnonzero(value < self.cap)
        return _ChainState(kept, value[kept], previous[kept], kind[kept])

    @staticmethod
    def _improve(
        value: FloatArray, previous: Index, kind: Index, at: Index, new: FloatArray, came: Index, t: int
    ) -> None:
        better = new < value[at]
        at = at[better]
        value[at], previous[at], kind[at] = new[better], came[better], t

    def _columns(self, first_row: int, last_row: int, t: int) -> tuple[int, int]:
        """Return the range of ideals whose work alone does not rule them out as ends of stages from these rows."""
        slack = STRICT * self.family.total
        start = np.searchsorted(self.family.work, self.family.work[first_row] - slack, "left")
        stop = np.searchsorted(
            self.family.work, self.family.work[last_row] + self.cap * self.family.q.speed[t] + slack, "right"
        )
        return int(start), int(stop)

    def _blocks(self, source: _ChainState, t: int, first: int, last: int) -> Iterator[_Block]:
        if self.memory is None:
            for a in range(0, len(source.ideals), _ROWS):
                rows = source.ideals[a : a + _ROWS]
                start, stop = self._columns(rows[0], rows[-1], t)
                start, stop = max(first, start), min(last, stop)
                if start < stop:
                    yield slice(a, a + _ROWS), *self.family.loads(rows, start, stop, t, self.cap)
            return
        # blocks of all ideals, computed once for all states
        number = source.ideals // _ROWS
        for b in np.unique(number).tolist():
            block = slice(*np.searchsorted(number, [b, b + 1]).tolist())
            here = np.arange(b * _ROWS, min((b + 1) * _ROWS, len(self.family.ideals)))
            if (t, b) not in self.memory:
                self.memory[t, b] = self.family.loads(here, *self._columns(here[0], here[-1], t), t, self.cap)
            ends, load = self.memory[t, b]
            part = slice(*np.searchsorted(ends, [first, last]).tolist())
            if part.start < part.stop:
                yield block, ends[part], load[source.ideals[block] - b * _ROWS, part]

    def _pairs(self) -> int:
        starts = range(0, len(self.family.ideals), _ROWS)
        total = 0
        for t in np.flatnonzero(self.family.q.counts):
            for a in starts:
                start, stop = self._columns(a, min(a + _ROWS, len(self.family.ideals)) - 1, int(t))
                total += _ROWS * (stop - start)
        return total

    def _trace(self, states: dict[tuple[int, ...], _ChainState], used: tuple[int, ...]) -> Chain:
        chain: Chain = []
        at = self.family.full
        while any(used):
            state = states[used]
            i = int(np.searchsorted(state.ideals, at))
            t = int(state.kind[i])
            chain.append((t, self.family.ideals[at]))
            used, at = tuple(c - (x == t) for x, c in enumerate(used)), int(state.previous[i])
        return chain[::-1]


def groups_of(chain: Chain, n_groups: int) -> list[tuple[int, list[int]]]:
    """Return the stages of a chain as (device type, groups)."""
    stages, done = [], 0
    for t, ideal in chain:
        fresh = ideal & ~done
        stages.append((t, [g for g in range(n_groups) if fresh >> g & 1]))
        done = ideal
    return stages
