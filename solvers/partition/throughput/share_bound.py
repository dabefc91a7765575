"""A bound for pipelines from the share of a stage that each group takes, transfers included.

Give each group a share f[g] >= 0 such that no stage of load at most T holds more than 1 of it:

    f(S) <= 1    for every S that can be a stage of a plan with load at most T.

Then f(all groups) <= k, the number of devices, or no plan has such a load. f[g] = w[g] / T is one; it says no more than
that work is shared. If f(S) <= b for all stages S with a group v, then f[v] may grow by 1 - b, as stages without v do
not notice. So we go through the groups and let their shares grow, wherever transfers leave stages unfilled.

Such a b is, at stage s = 1 .. k and with any multiplier l >= 0 (Lagrange),

    max over S of f(S) + l (T - w(S) - transfers of S),    v in S, S within the groups that can be with v at s:

- ideals end stages, so v, g and what comes before either are in the stages up to s, where f of them is at most s; v, g
  and what comes after either are at most k - s + 1; and if one comes before the other, what is between is with them;
- S has all that is between v and its other groups, for a stage is convex.

That is a minimum cut. Everything here is a relaxation in each step, so memory and device types only make it weaker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray

from ...flows import minimum_cut
from .quotient import Quotient

_UNITS = float(1 << 34)
"""Integer capacity that stands for a share of 1; costs are rounded down, so the bound stays valid."""
_INFINITE, _MOST = 1 << 55, float(1 << 50)


class Order:
    """What comes before what, as a matrix, and the pins of all nets one after the other."""

    def __init__(self, q: Quotient) -> None:
        before, n = q.neighbours[0], q.n_groups
        upto = np.eye(n, dtype=bool)
        for g in range(n):
            for a in before[g]:
                upto[g] |= upto[a]
        self.upto, self.since = upto, np.ascontiguousarray(upto.T)
        """[g, h]: h is g or comes before it; h is g or comes after it."""
        self.weighs = upto.astype(float)
        self.edges = np.array(q.edges, dtype=np.int64).reshape(-1, 2).T
        self.size = np.array([len(pins) for pins, _ in q.nets])
        self.net = np.repeat(np.arange(len(q.nets)), self.size)
        self.pin = np.array([g for pins, _ in q.nets for g in sorted(pins)])


class StageCut:
    """The greatest shares + multiplier * (1 - load) that a stage can have, by a minimum cut (Picard, 1976).

    The side of the source is the stage; what is paid for each net is a hyperedge.

    Args:
        cost: of each net, in loads, float64.
        possible: groups that can be in the stage, bool (groups,).
        v: the group that is in it; what is between it and the others is in it too.
    """

    def __init__(self, order: Order, cost: FloatArray, possible: BoolArray, v: int) -> None:
        self.groups, self.total = np.flatnonzero(possible), len(possible)
        n = len(self.groups)
        new = np.full(self.total, -1)
        new[self.groups] = np.arange(n)
        a, b = order.edges[:, possible[order.edges].all(axis=0)]
        forward, backward = order.since[v][a], order.upto[v][b]
        there = possible[order.pin]
        pin, net = new[order.pin[there]], order.net[there]
        nets, net = np.unique(net, return_inverse=True)
        # a net with pins elsewhere is paid if any pin is in the stage, others only if not all are
        whole = np.bincount(net, minlength=len(nets)) == order.size[nets]
        self.cost = cost[nets]
        some, every = n + np.arange(len(nets)), n + len(nets) + np.arange(len(nets))
        self.source, self.sink = n + 2 * len(nets), n + 2 * len(nets) + 1
        inner = whole[net]
        self.tail = np.concatenate([new[b[forward]], new[a[backward]], [self.source], pin, every[net[inner]], some])
        self.head = np.concatenate(
            [new[a[forward]], new[b[backward]], [new[v]], some[net], pin[inner], np.where(whole, every, self.sink)]
        )
        self.fixed: FloatArray = np.full(len(self.tail) - len(nets), float(_INFINITE))

    def __call__(self, share: FloatArray, work: FloatArray, multiplier: float) -> tuple[float, BoolArray]:
        """Return the maximum, or a little more, and the stage that has it, bool (groups,)."""
        n = len(self.groups)
        gain = (share - multiplier * work)[self.groups]
        good, bad = np.flatnonzero(gain > 0), np.flatnonzero(gain <= 0)
        paid = np.minimum(np.concatenate([multiplier * self.cost, gain[good], -gain[bad]]) * _UNITS, _MOST)
        tail = np.concatenate([self.tail, np.full(len(good), self.source), bad])
        head = np.concatenate([self.head, good, np.full(len(bad), self.sink)])
        inside = np.zeros(self.total, dtype=bool)
        found = minimum_cut((tail, head, np.concatenate([self.fixed, paid])), self.source, self.sink)
        if found is None:
            return float("inf"), inside
        inside[self.groups[found[1][found[1] < n]]] = True
        return float(gain[good].sum() - found[0] / _UNITS + multiplier), inside


_EPSILON = 1e-9
_GROUPS = 3000
"""The order is kept as a matrix: more groups would take too much memory."""
_CUTS = 10
"""Multipliers that are tried for one group at one stage."""
_STEEP = 8.0
"""The greatest of them to begin with: the last one of the group before, as a rule."""
_STEPS = (0.2, 0.2, 1.0)
"""How much of what a share may grow by it does, in each pass: all at once would leave nothing to its neighbours."""
_FIRST, _LAST = 0.02, 0.004
"""By how much more than the bound so far a load is tried, as a share of it, and how little ends the search."""


def share_bounds(q: Quotient, floor: float, ceiling: float, stopped: Callable[[], bool]) -> Iterator[float]:
    """Yield greater and greater lower bounds on the load of contiguous plans, seconds, from `floor` to `ceiling`."""
    k = int(q.counts.sum())
    if q.host[q.counts > 0].any() or k < 2 or q.n_groups > _GROUPS or not q.nets or not 0 < floor < ceiling:
        return
    order, step, failed = Order(q), _FIRST, ceiling
    while step > _LAST and not stopped():
        load = min(floor * (1 + step), ceiling)
        shares = Shares(q, order, load)
        if shares.too_many(stopped):
            floor, step = load, 2 * step
            yield load * (1 - _EPSILON)
            if load >= ceiling:
                return
        elif not stopped():
            failed = load
            # at a load less by as much as the shares are short there may be enough of them
            step = load * float(shares.share.sum()) / k / floor - 1
        if step <= _LAST or floor * (1 + step) >= failed:
            step = (failed / floor) ** 0.5 - 1


class Shares:
    """Shares that grow as far as no stage of load at most `load` seconds holds more than 1; times count in loads."""

    def __init__(self, q: Quotient, order: Order, load: float) -> None:
        self.order, self.n, self.k = order, q.n_groups, int(q.counts.sum())
        self.work = q.work / load
        self.cost = np.array([cost for _, cost in q.nets]) / load
        self.share = self.work.copy()
        self.upto, self.since = order.weighs @ self.share, order.weighs.T @ self.share
        """The shares of a group and all before it; and of it and all after it."""
        self.multiplier = 1.0

    def too_many(self, stopped: Callable[[], bool]) -> bool:
        """Return whether the shares come to more than there are devices; false if `stopped` or if that is not found."""
        rng = np.random.default_rng(0)
        for step in _STEPS:
            before = float(self.share.sum())
            for v in rng.permutation(self.n).tolist():
                if stopped():
                    return False
                most = self.fullest(v)
                if most < self.share[v] * (1 - 1e-6):
                    return True  # no stage at all can hold v
                if most < 1:
                    self.share[v] += step * (1 - most)
                    self.upto[self.order.since[v]] += step * (1 - most)
                    self.since[self.order.upto[v]] += step * (1 - most)
            total = float(self.share.sum())
            if total > self.k * (1 + _EPSILON):
                return True
            # as much again in each pass to come would not do
            if total + (len(_STEPS) - 1) * (total - before) < self.k:
                return False
        return False

    def fullest(self, v: int) -> float:
        """Return no less than the shares of any stage with group v, at most 1."""
        first = max(int(np.ceil(self.upto[v] - _EPSILON)), 1)
        last = self.k + 1 - max(int(np.ceil(self.since[v] - _EPSILON)), 1)
        best = 0.0
        near, before, after = self._with(v)
        for s in sorted(range(first, last + 1), key=lambda s: abs(2 * s - first - last)):
            possible = near & (before <= s + _EPSILON) & (after <= self.k - s + 1 + _EPSILON)
            best = max(best, self._at(v, possible, best))
            if best >= 1:
                return 1.0
        return best

    def _with(self, v: int) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Return which groups can share a stage with v, bool (n,), and what comes before either, and after either."""
        sides = self.share[:, None] * np.stack([self.order.upto[v], self.order.since[v]], axis=1)
        before, between = (self.order.weighs @ sides).T
        behind, after = (self.order.weighs.T @ sides).T
        near: BoolArray = np.maximum(between, behind) <= 1 + _EPSILON
        return near, self.upto[v] + self.upto - before, self.since[v] + self.since - after

    def _load(self, inside: BoolArray) -> float:
        pins = np.bincount(self.order.net, weights=inside[self.order.pin], minlength=len(self.cost))
        return float(self.work[inside].sum() + self.cost[(pins > 0) & (pins < self.order.size)].sum())

    def _at(self, v: int, possible: BoolArray, enough: float) -> float:
        """Return no less than the shares of any stage with v among `possible`; if they are no more, up to `enough`."""
        if not possible[v]:
            return 0.0
        least = float(self.share[possible].sum())
        heavy, light = (least, self._load(possible)), (float(self.share[v]), self._load(np.arange(self.n) == v))
        if heavy[1] <= 1 or least <= enough:
            return least
        cut = StageCut(self.order, self.cost, possible, v)
        for turn in range(_CUTS):
            if turn and light[1] <= 1:
                self.multiplier = (heavy[0] - light[0]) / (heavy[1] - light[1])
            else:
                self.multiplier = min(self.multiplier, _STEEP) if not turn else 2 * self.multiplier
            value, inside = cut(self.share, self.work, self.multiplier)
            least = min(least, value)
            if least <= enough:
                break
            found = float(self.share[inside].sum()), self._load(inside)
            if turn and light[1] <= 1 and value <= heavy[0] + self.multiplier * (1 - heavy[1]) + 1e-4:
                break
            heavy, light = (found, light) if found[1] > 1 else (heavy, found)
        return least
