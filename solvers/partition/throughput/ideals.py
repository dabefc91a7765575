"""Ideals: the sets of groups that a pipeline can have finished at a stage boundary, as bits of integers and as arrays.

A contiguous pipeline is a chain of ideals, from the empty set to all groups (Tarnawski et al., NeurIPS 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.verify import TOLERANCE

from ...run import never
from ..sizes import edge, most
from .quotient import Quotient


def all_ideals(q: Quotient, limit: int, stopped: Callable[[], bool] = never) -> list[int] | None:
    """Return every ideal of the order, or `None` if there are more than `limit` or `stopped` turns true."""
    return between(q, 0, (1 << q.n_groups) - 1, limit, stopped)


def between(q: Quotient, low: int, high: int, limit: int, stopped: Callable[[], bool] = never) -> list[int] | None:
    """Return every ideal from `low` to `high`, both ideals, or `None` if there are more than `limit`."""
    before, after = q.neighbours
    needs = [sum(1 << a for a in x) for x in before]
    ready = tuple(g for g in range(q.n_groups) if high >> g & 1 and not low >> g & 1 and not needs[g] & ~low)
    found = {low}
    layer = [(low, ready)]
    while layer:
        grown = []
        for ideal, ready in layer:
            if len(found) > limit or stopped():
                return None
            for g in ready:
                larger = ideal | 1 << g
                if larger not in found:
                    found.add(larger)
                    opened = (x for x in after[g] if not needs[x] & ~larger and high >> x & 1)
                    grown.append((larger, (*(x for x in ready if x != g), *opened)))
        layer = grown
    return list(found)


def prefixes(order: Iterable[int]) -> Iterator[int]:
    """Yield the ideals that a linear extension runs through."""
    ideal = 0
    yield ideal
    for g in order:
        ideal |= 1 << g
        yield ideal


def linear_extension(q: Quotient, rng: np.random.Generator | None = None) -> list[int]:
    """Return an order of the groups that respects the edges and finishes branches before it starts others.

    Of the groups that are ready the one that became so last comes next, which keeps few outputs open; `rng`
    breaks that rule now and then, for a family of different orders.
    """
    before, after = q.neighbours
    missing = [len(x) for x in before]
    ready = [g for g in reversed(range(q.n_groups)) if not missing[g]]
    order = []
    while ready:
        pick = -1 if rng is None or rng.random() < 0.8 else int(rng.integers(len(ready)))
        g = ready.pop(pick)
        order.append(g)
        for x in reversed(after[g]):
            missing[x] -= 1
            if not missing[x]:
                ready.append(x)
    return order


Index = NDArray[np.int64]


def bits_of(ideals: list[int], count: int) -> BoolArray:
    """Return which of so many groups each ideal has, bool (ideals, groups)."""
    width = (count + 7) // 8
    raw = b"".join(ideal.to_bytes(width, "little") for ideal in ideals)
    packed = np.frombuffer(raw, dtype=np.uint8).reshape(-1, width)
    return np.unpackbits(packed, axis=1, count=count, bitorder="little").view(np.bool_)


class IdealOrder:
    """A set of ideals in the order of their work; indices are places in `ideals`.

    Args:
        ideals: bits of integers, the empty and the full one among them.
        ceiling: seconds; stages of a greater load may be left out. What takes longer alone is kept out of the sums, of
            which loads are differences.

    Attributes:
        generous: whether stages on the edge of what fits count as fitting, so that what is proved holds, or as too
            large, so that plans do.
    """

    def __init__(self, q: Quotient, ideals: list[int], ceiling: float = np.inf) -> None:
        self.q, self.ceiling = q, ceiling
        bits = bits_of(ideals, q.n_groups)
        work = bits @ q.work
        order = np.lexsort((bits.sum(axis=1), work))
        self.ideals = [ideals[i] for i in order]
        self.bits = bits[order]
        self.work = work[order]
        self.total = float(q.work.sum())
        self.full = int(self.bits.sum(axis=1).argmax())
        small = [q.memory <= most(limit, len(q.group_of)) for limit in q.capacity.tolist()]
        runs = np.isfinite(q.time) & (q.time <= ceiling * (1 + TOLERANCE)) & small
        self.time = [(self.bits @ np.where(runs[t], q.time[t], 0.0)).astype(np.float64) for t in range(len(q.time))]
        self.barred = [self.bits @ (~runs[t]).astype(float) for t in range(len(q.time))]
        self.memory = [self.bits @ np.where(runs[t], q.memory, 0.0) for t in range(len(q.time))]
        self.generous = False
        pins = np.zeros((q.n_groups, len(q.nets)), dtype=np.float32)
        for e, (members, _) in enumerate(q.nets):
            pins[list(members), e] = 1
        self.pins = pins
        self.cost = np.minimum([cost for _, cost in q.nets], 2 * ceiling)
        self.degree = pins.sum(axis=0)

    def loads(self, rows: Index, start: int, stop: int, t: int, cap: float) -> tuple[Index, FloatArray]:
        """Return the columns worth looking at, and load(t, J minus I), I in rows, J in columns; inf if no stage."""
        q = self.q
        ends = np.arange(start, stop)
        # groups in all rows, or in no column, take no part in any stage of this block
        common = np.asarray(self.bits[rows].all(axis=0))
        reached = np.asarray(self.bits[start:stop].any(axis=0))
        active = np.flatnonzero(reached & ~common)
        inner = self.bits[np.ix_(rows, active)].astype(np.float32)
        outer = self.bits[start:stop, active].astype(np.float32)
        load: FloatArray = self.time[t][ends][None, :] - self.time[t][rows][:, None]
        misfit: BoolArray = inner @ (1 - outer).T > 0.5
        # ... but a row with a group in no column, or a column without one of all rows, is part of nothing here
        misfit |= np.asarray(self.bits[rows][:, ~reached].any(axis=1))[:, None]
        misfit |= ~np.asarray(self.bits[start:stop, common].all(axis=1))[None, :]
        misfit |= load >= cap
        if self.barred[t][-1]:
            misfit |= self.barred[t][ends][None, :] > self.barred[t][rows][:, None] + 0.5
        if q.memory_binds and np.isfinite(q.capacity[t]):
            memory = self.memory[t]
            room = edge(q.capacity[t], float(memory.max()), len(q.group_of), generous=self.generous)
            misfit |= memory[ends][None, :] - memory[rows][:, None] > room
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

    def _transfers(self, inner: NDArray[np.float32], outer: NDArray[np.float32], nets: Index) -> FloatArray:
        """Return the cost of the nets that J minus I holds some but not all pins of.

        A net open at I (some pins done, some not) is paid if the stage has a pin of it, and so is one open at J;
        one open at both was counted twice, and once more too often if the stage has none of its pins.

        Args:
            inner, outer: how many pins of each of `nets` lie in I (rows) and in J (columns).
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
