"""Ideals as arrays: what any stage between two of them costs, as blocks of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import TOLERANCE

from ...run import never, watched
from ..sizes import edge
from ..throughput.ideals import bits_of, linear_extension, prefixes
from .reduced import Units


class IdealStates:
    """A set of N ideals, the smaller before the larger: the states of the recurrence.

    A stage is what one ideal has and another, a part of it, has not. All matrices have a row for each ideal of a
    range where the stage begins and a column for each ideal where it may end; what is no stage is infinite.

    Args:
        ideals: bits of integers, the empty and the full one among them.
        stopped: asked often; once it is true this ends with `TimeoutError`.

    Attributes:
        generous: whether stages on the edge of what fits count as fitting, so that what is proved holds, or as too
            large, so that plans do.
    """

    def __init__(self, units: Units, ideals: list[int], stopped: Callable[[], bool] = never) -> None:
        bits = bits_of(ideals, units.order.n_groups)
        order = np.argsort(bits.sum(axis=1), kind="stable")
        self.units, self.problem = units, units.problem
        self.bits = bits[order]
        self._absent = np.ascontiguousarray((~self.bits).T, dtype=np.float32)
        self._rows, self._gap = slice(0, 0), np.zeros((0, 0))
        able = np.isfinite(units.seconds)
        of_types = (np.where(able, units.seconds, 0.0), ~able, units.held, units.held > 0)
        of_all = (units.weights[None], units.weights[None] > 0)
        sums = [self._sums(rows.astype(float)) for rows in watched((*of_types, *of_all), stopped, 1)]
        self.seconds, self.barred, self.held, self.holders = sums[:4]
        self.weights, self.heavy = sums[4][0], sums[5][0]
        self._memory: dict[tuple[int, int, float], tuple[FloatArray, FloatArray]] = {}
        self.generous = True
        self.crossing = self._crossing(stopped)
        self.sizes = self.bits.sum(axis=1)
        self.linear = bool((np.diff(self.sizes) > 0).all() and (self.bits[:-1] <= self.bits[1:]).all())

    def __len__(self) -> int:
        return len(self.bits)

    def gap(self, rows: slice) -> FloatArray:
        """Return 0 where the column's ideal holds the row's and more, infinity elsewhere."""
        # asked for again and again with the same rows
        if self._rows != rows:
            ok = self.sizes[None, :] > self.sizes[rows, None]
            if not self.linear:
                ok &= self.bits[rows].astype(np.float32) @ self._absent < 0.5
            self._rows, self._gap = rows, np.where(ok, 0.0, np.inf)
        return self._gap

    @cached_property
    def density(self) -> float:
        """About which part of all pairs of a smaller and a larger ideal are the two ends of a stage."""
        if self.linear:
            return 1.0
        rows = np.linspace(0, len(self) - 2, 64).astype(int)
        ok = self.sizes[None, :] > self.sizes[rows, None]
        held = ok & (self.bits[rows].astype(np.float32) @ self._absent < 0.5)
        return float(held.sum() / max(1, ok.sum()))

    def leaf(self, row: int, replicas: int, under_way: int, rows: slice, capacity: float) -> FloatArray:
        """Return the seconds a sample of stages on `replicas` of devices sharing ops, infinite if they do not fit.

        Args:
            under_way: further samples whose activations, and versions of weights, each of them keeps.
            rows: where the stages begin.
            capacity: bytes of a device.
        """
        seconds = self._between(self.seconds[row], rows)
        held = np.where(self._between(self.holders[row], rows) > 0.5, self._between(self.held[row], rows), 0.0)
        if replicas > 1:
            seconds = seconds + self.problem.sync(0, replicas, held)
        seconds /= replicas
        if self.barred[row][0, -1]:
            seconds[self._between(self.barred[row], rows) > 0.5] = np.inf
        if np.isfinite(capacity):
            large, small = self._needed(row, under_way, capacity)
            memory = self._between(small, rows)
            if under_way and self.problem.recompute and self.problem.memory_model != "none":
                memory += under_way * self.crossing[rows, None]
            seconds[self._between(large, rows) > 0.5] = np.inf
            memory[~np.isfinite(seconds)] = 0.0
            terms = len(self.units.order.group_of)
            seconds[memory > edge(capacity, float(small.sum(axis=0).max()), terms, generous=self.generous)] = np.inf
        return seconds

    def _needed(self, row: int, under_way: int, capacity: float) -> tuple[FloatArray, FloatArray]:
        """Return how many units of each ideal are too large alone, and the bytes of the others, float64 (N,) each."""
        key = row, under_way, capacity
        if key not in self._memory:
            need = self.units.once[row] + under_way * self.units.kept[row]
            large = need > capacity * (1 + 1.25 * TOLERANCE)
            found = self._sums(np.stack([large.astype(float), np.where(large, 0.0, need)]))
            self._memory[key] = found[0], found[1]
        return self._memory[key]

    def nested(self, level: int, replicas: int, inner: FloatArray, rows: slice) -> FloatArray:
        """Return the seconds a sample of stages of which `replicas` members take `inner` seconds each."""
        if replicas == 1:
            return inner
        size = np.where(self._between(self.heavy, rows) > 0.5, self._between(self.weights, rows), 0.0)
        return (inner + self.problem.sync(level, replicas, size)) / replicas

    def moves(self, level: int) -> FloatArray:
        """Return the seconds to move the activations that cross each ideal over the links of a level, float64 (N,)."""
        return self.problem.move(level, self.crossing)

    def _between(self, total: FloatArray, rows: slice) -> FloatArray:
        found = total[0, None, :] - total[0, rows, None]
        for part in total[1:]:
            found += part[None, :] - part[rows, None]
        return np.maximum(found, 0.0)

    def _sums(self, rows: FloatArray) -> FloatArray:
        """Add up each of K rows over the units of every ideal, in one part or two, float64 (K, parts, N)."""
        bits = self.bits.T.astype(np.float64)
        return np.stack([part @ bits for part in _parts(rows)], axis=1)

    def _crossing(self, stopped: Callable[[], bool]) -> FloatArray:
        crossing = np.zeros(len(self.bits))
        for (sender, receivers), size in watched(self.units.nets.items(), stopped, 64):
            crossing += size * (self.bits[:, sender] & ~self.bits[:, sorted(receivers)].all(axis=1))
        return crossing


def _parts(rows: FloatArray) -> list[FloatArray]:
    """Return rows that add up to those given, two where sums would lose small numbers beside large ones.

    Sums of the first are exact, for all of its numbers are multiples of one power of two: so what is large in both of
    two ideals is nothing in their difference.
    """
    most = float(rows.sum(axis=1).max(initial=0.0))
    small = rows[rows > 0].min(initial=np.inf)
    if most * 2.0**-52 <= 1e-12 * small:
        return [rows]
    unit = 2.0 ** (np.ceil(np.log2(most)) - 52)
    coarse = np.round(rows / unit) * unit
    return [coarse, rows - coarse]


_ORDERS = 4
"""Linear extensions that are mixed."""
_LINE = 2_000
"""Ideals of a linear extension to look at, at most: a table of them has a bit for each group."""


def mixed(units: Units, seed: int, stopped: Callable[[], bool]) -> IdealStates:
    """Return the ideals of a few linear extensions, of long ones those of `thinned`."""
    if units.order.n_groups > _LINE:
        return thinned(units, _LINE, stopped)
    rng = np.random.default_rng(seed)
    found = dict.fromkeys(prefixes(linear_extension(units.order)))
    for _ in watched(range(_ORDERS - 1), stopped, 1):
        found |= dict.fromkeys(prefixes(linear_extension(units.order, rng)))
    return IdealStates(units, list(found), stopped)


def thinned(
    units: Units, most: int, stopped: Callable[[], bool] = never, rng: np.random.Generator | None = None
) -> IdealStates:
    """Return at most `most` ideals of one linear extension: of each equal step of work the one that cuts least."""
    every = max(1, units.order.n_groups // _LINE)
    last = units.order.n_groups
    line = [x for i, x in enumerate(prefixes(linear_extension(units.order, rng))) if i % every == 0 or i == last]
    family = IdealStates(units, line, stopped)
    work = family.seconds.sum(axis=1).min(axis=0)
    step = np.minimum((work / max(float(work[-1]), 1e-300) * (most - 1)).astype(int), most - 2)
    inner = [np.flatnonzero(step[1:-1] == s) + 1 for s in range(1, most - 1)]
    best = [int(inside[np.argmin(family.crossing[inside])]) for inside in inner if len(inside)]
    return IdealStates(units, [line[i] for i in (0, *best, len(line) - 1)], stopped)
