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
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import PartitionPlan
from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import TOLERANCE

from .quotient import Quotient

STRICT = 1e-9
"""A chain must beat the threshold by this much, relatively, to count."""
_ROWS = 256
_KEPT_PAIRS = 20_000_000
_MANY_DEVICES = 12

Chain = list[tuple[int, int]]
"""Stages in order: (device type, ideal finished at its end)."""
Index = NDArray[np.int64]
_Block = tuple[slice, Index, FloatArray]
_Memory = dict[tuple[int, int], tuple[Index, FloatArray]]


@dataclass(frozen=True)
class _State:
    """The ideals that can end a number of stages, with their value f and where each came from."""

    ideals: Index
    value: FloatArray
    previous: Index
    kind: Index


class Family:
    """A set of ideals, ready for the recurrence.

    Args:
        q: the quotient they belong to.
        ideals: bits of integers, the empty and the full one among them.
    """

    def __init__(self, q: Quotient, ideals: list[int]) -> None:
        self.q = q
        width = (q.n_groups + 7) // 8
        raw = b"".join(ideal.to_bytes(width, "little") for ideal in ideals)
        bits = np.unpackbits(
            np.frombuffer(raw, dtype=np.uint8).reshape(-1, width), axis=1, count=q.n_groups, bitorder="little"
        )
        work = bits @ q.work
        order = np.lexsort((bits.sum(axis=1), work))
        self.ideals = [ideals[i] for i in order]
        self.bits = bits[order]
        self.work = work[order]
        self.total = float(q.work.sum())
        runs = np.isfinite(q.time)
        self.time = [(self.bits @ np.where(runs[t], q.time[t], 0.0)).astype(np.float64) for t in range(len(q.time))]
        self.barred = [self.bits @ (~runs[t]).astype(float) for t in range(len(q.time))]
        self.memory = self.bits @ q.memory
        pins = np.zeros((q.n_groups, len(q.nets)), dtype=np.float32)
        for e, (members, _) in enumerate(q.nets):
            pins[list(members), e] = 1
        self.pins = pins
        self.cost = np.array([cost for _, cost in q.nets])
        self.degree = pins.sum(axis=0)

    def best_chain(self, threshold: float, stopped: Callable[[], bool] = lambda: False) -> tuple[float, Chain] | None:
        """Return the chain of least maximum load below `threshold` and its load, or `None` if there is none.

        Raises:
            TimeoutError: if `stopped` turned true before that was known.
        """
        q = self.q
        counts = q.counts.tolist()
        cap = threshold * (1 - STRICT)
        # equal devices ask for the same loads again and again: keep them if they fit
        memory: _Memory | None = {} if sum(counts) >= _MANY_DEVICES and self._pairs(cap) <= _KEPT_PAIRS else None
        states: dict[tuple[int, ...], _State] = {}
        none = np.zeros(len(counts), dtype=int)
        states[tuple(none)] = _State(np.array([0]), np.zeros(1), np.array([-1]), np.array([-1]))
        # counts in lexicographic order: what a state needs has been computed before it
        for used in product(*(range(n + 1) for n in counts)):
            if any(used):
                states[used] = self._extend(states, used, cap, memory, stopped)
        end = states[tuple(counts)]
        if not len(end.ideals):
            return None
        return float(end.value[0]), self._trace(states, tuple(counts))

    def effort(self, threshold: float) -> float:
        """Return about how many pairs of ideals `best_chain` would look at: states in windows times their reach."""
        q = self.q
        cap = threshold
        band = {
            int(t): np.searchsorted(self.work, self.work + cap * q.speed[t], "right") - np.arange(len(self.work))
            for t in np.flatnonzero(q.counts)
        }
        ahead = {t: np.concatenate([[0], np.cumsum(width)]) for t, width in band.items()}
        total = 0.0
        for used in product(*(range(n + 1) for n in q.counts.tolist())):
            first, last = self._window(np.array(used), cap)
            total += sum(float(ahead[t][last] - ahead[t][first]) for t in ahead if used[t] < q.counts[t])
        return total

    def _window(self, used: NDArray[Any], cap: float) -> tuple[int, int]:
        """Return the range of ideals that may end stages which used these numbers of devices of each type."""
        q = self.q
        left = q.counts - used
        if not left.any():
            return len(self.ideals) - 1, len(self.ideals)
        # the slack on both ends covers sums of floats in another order
        slack = STRICT * self.total
        low = self.total - cap * float(left @ q.speed) - slack
        high = cap * float(used @ q.speed) + slack
        return int(np.searchsorted(self.work, low, "left")), int(np.searchsorted(self.work, high, "right"))

    def _extend(
        self,
        states: dict[tuple[int, ...], _State],
        used: tuple[int, ...],
        cap: float,
        memory: _Memory | None,
        stopped: Callable[[], bool],
    ) -> _State:
        n = len(self.ideals)
        value, previous, kind = np.full(n, np.inf), np.full(n, -1), np.full(n, -1)
        first, last = self._window(np.array(used), cap)
        for t in np.flatnonzero(used).tolist():
            source = states[tuple(c - (x == t) for x, c in enumerate(used))]
            # a device may stay empty
            keep = (source.ideals >= first) & (source.ideals < last)
            self._improve(value, previous, kind, source.ideals[keep], source.value[keep], source.ideals[keep], t)
            blocks = self._blocks if memory is None else partial(self._kept_blocks, memory)
            for rows, ends, load in blocks(source, t, first, last, cap):
                if stopped():
                    raise TimeoutError
                worst = np.maximum(load, source.value[rows][:, None])
                best = worst.argmin(axis=0)
                values = worst[best, np.arange(len(ends))]
                self._improve(value, previous, kind, ends, values, source.ideals[rows][best], t)
        kept = np.flatnonzero(value < cap)
        return _State(kept, value[kept], previous[kept], kind[kept])

    @staticmethod
    def _improve(
        value: FloatArray, previous: Index, kind: Index, at: Index, new: FloatArray, came: Index, t: int
    ) -> None:
        better = new < value[at]
        at = at[better]
        value[at], previous[at], kind[at] = new[better], came[better], t

    def _columns(self, first_row: int, last_row: int, t: int, cap: float) -> tuple[int, int]:
        """Return the range of ideals whose work alone does not rule them out as ends of stages from these rows."""
        slack = STRICT * self.total
        start = np.searchsorted(self.work, self.work[first_row] - slack, "left")
        stop = np.searchsorted(self.work, self.work[last_row] + cap * self.q.speed[t] + slack, "right")
        return int(start), int(stop)

    def _blocks(self, source: _State, t: int, first: int, last: int, cap: float) -> Iterator[_Block]:
        """Yield (rows of `source`, ends, loads) for ends from `first` to `last`."""
        for a in range(0, len(source.ideals), _ROWS):
            rows = source.ideals[a : a + _ROWS]
            start, stop = self._columns(rows[0], rows[-1], t, cap)
            start, stop = max(first, start), min(last, stop)
            if start < stop:
                yield slice(a, a + _ROWS), *self._loads(rows, start, stop, t, cap)

    def _kept_blocks(
        self, memory: _Memory, source: _State, t: int, first: int, last: int, cap: float
    ) -> Iterator[_Block]:
        """Yield as `_blocks`, from blocks of all ideals that are computed once for all states."""
        number = source.ideals // _ROWS
        for b in np.unique(number).tolist():
            rows = slice(*np.searchsorted(number, [b, b + 1]).tolist())
            here = np.arange(b * _ROWS, min((b + 1) * _ROWS, len(self.ideals)))
            if (t, b) not in memory:
                memory[t, b] = self._loads(here, *self._columns(here[0], here[-1], t, cap), t, cap)
            ends, load = memory[t, b]
            part = slice(*np.searchsorted(ends, [first, last]).tolist())
            if part.start < part.stop:
                yield rows, ends[part], load[source.ideals[rows] - b * _ROWS, part]

    def _pairs(self, cap: float) -> int:
        """Return how many pairs of ideals `_kept_blocks` could come to hold."""
        starts = range(0, len(self.ideals), _ROWS)
        total = 0
        for t in np.flatnonzero(self.q.counts):
            for a in starts:
                start, stop = self._columns(a, min(a + _ROWS, len(self.ideals)) - 1, int(t), cap)
                total += _ROWS * (stop - start)
        return total

    def _loads(self, rows: Index, start: int, stop: int, t: int, cap: float) -> tuple[Index, FloatArray]:
        """Return the columns worth looking at, and load(t, J minus I) for I in rows and J in columns.

        It is infinite unless I is part of J and the stage fits.
        """
        q = self.q
        ends = np.arange(start, stop)
        # groups in all rows, or in no column, take no part in any stage of this block
        common = self.bits[rows].all(axis=0)
        reached = self.bits[start:stop].any(axis=0)
        active = np.flatnonzero(reached & ~common)
        inner = self.bits[np.ix_(rows, active)].astype(np.float32)
        outer = self.bits[start:stop, active].astype(np.float32)
        load: FloatArray = self.time[t][ends][None, :] - self.time[t][rows][:, None]
        misfit = inner @ (1 - outer).T > 0.5
        # ... but a row with a group in no column, or a column without one of all rows, is part of nothing here
        misfit |= self.bits[rows][:, ~reached].any(axis=1)[:, None]
        misfit |= ~self.bits[start:stop, common].all(axis=1)[None, :]
        misfit |= load >= cap
        if self.barred[t][-1]:
            misfit |= self.barred[t][ends][None, :] > self.barred[t][rows][:, None] + 0.5
        if q.memory_binds and np.isfinite(q.capacity[t]):
            room = q.capacity[t] * (1 + TOLERANCE / 2)
            misfit |= self.memory[ends][None, :] - self.memory[rows][:, None] > room
        some = ~misfit.all(axis=0)
        ends, load, misfit = ends[some], load[:, some], misfit[:, some]
        if not q.host[t]:
            # a net without an active pin is cut by no stage of this block
            nets = np.flatnonzero(self.pins[active].any(axis=0))
            pins = self.pins[np.ix_(active, nets)]
            done = self.pins[:, nets][common].sum(axis=0)
            load = load + self._transfers(done + inner @ pins, done + outer[some] @ pins, nets)
        load[misfit] = np.inf
        return ends, load

    def _transfers(self, inner: NDArray[Any], outer: NDArray[Any], nets: Index) -> FloatArray:
        """Return the cost of the nets that J minus I holds some but not all pins of.

        A net open at I (some pins done, some not) is paid if the stage has a pin of it, and so is one open at J;
        one open at both was counted twice, and once more too often if the stage has none of its pins.

        Args:
            inner, outer: how many pins of each of `nets` lie in I (rows) and in J (columns).
            nets: their indices.
        """
        cost, degree = self.cost[nets], self.degree[nets]
        open_in = (inner > 0) & (inner < degree)
        open_out = (outer > 0) & (outer < degree)
        seconds: FloatArray = (open_in @ cost)[:, None] + (open_out @ cost)[None, :]
        both = open_in.any(axis=0) & open_out.any(axis=0)
        if both.any():
            inner, outer, cost = inner[:, both] * open_in[:, both], outer[:, both] * open_out[:, both], cost[both]
            seconds -= ((inner > 0) * cost) @ (outer > 0).T.astype(float)
            for count in range(1, int(degree[both].max())):
                same = inner == count
                there = same.any(axis=0)
                if there.any():
                    seconds -= (same[:, there] * cost[there]) @ (outer[:, there] == count).T.astype(float)
        return seconds

    def _trace(self, states: dict[tuple[int, ...], _State], used: tuple[int, ...]) -> Chain:
        chain: Chain = []
        at = len(self.ideals) - 1
        while any(used):
            state = states[used]
            i = int(np.searchsorted(state.ideals, at))
            t = int(state.kind[i])
            chain.append((t, self.ideals[at]))
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


def ideals_of(q: Quotient, plan: PartitionPlan) -> list[int]:
    """Return the ideals that the stages of a contiguous plan end at."""
    stage = plan.stage[np.unique(q.group_of, return_index=True)[1]]
    ends = [0] * (int(stage.max()) + 1)
    for g, s in enumerate(stage.tolist()):
        ends[s] |= 1 << g
    for s in range(1, len(ends)):
        ends[s] |= ends[s - 1]
    return ends
