"""Two bounds for every variant, from the least load of a device that has a given group.

A device with group v has some set S of groups with v in it, and its load is at least

    min over S with v in S of w(S) + sum of c[e] over the nets of which S has some pins and not all,

where w counts the seconds of each group on the type that runs it fastest, and there are no hosts, which pay nothing.
That is a minimum cut (Picard and Ratliff 1975, hyperedges by two nodes each): the source side is S, v is the source; a
group outside S costs nothing, one inside w; a net costs c if a pin is in S and another is not. Some device has v, so
the maximum over v bounds the objective from below. The load of v alone is no less than the minimum, so groups come by
that, and those that cannot raise the bound are left out.

The second contracts: groups that no plan of some load can keep apart are one, until one is too large. Suppose that a
plan has no load above T. Let group a have a neighbour b (a net with both). If

    min over S with a in S and b not in S of w(S) + sum of c[e] over nets of which S has some pins and not all  >  T,

then no device has a without b: a and b are on one device, and the plan is one of the problem in which they are one
group. There are no hosts, w counts the type that runs a group fastest, and so this minimum, a cut as above, is no more
than the load of the device that has a. With such groups merged others follow. If in the end some group fits on no
device, or the least load of a device that has it is above T, or the pigeonhole bound is (`counting_bound`), there is no
such plan, and T is a bound. {a} is among the S, so a group whose load alone is at most T merges with none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gangplan.instances.arrays import FloatArray

from ...flows import minimum_cut
from ...run import OPTIMAL_GAP
from .bounds import counting_bound, impossible
from .quotient import Quotient, merged

_UNITS = 1 << 40
"""Integer capacity that stands for the greatest load of a single group; costs are rounded down."""
_INFINITE = 1 << 58


def stage_bounds(q: Quotient, floor: float, stopped: Callable[[], bool]) -> Iterator[float]:
    """Yield greater and greater lower bounds in seconds, all above `floor`, on the load of plans of any variant."""
    if not has_stages(q):
        return
    stages = Stages(q)
    for v in np.argsort(-stages.alone, kind="stable").tolist():
        if stages.alone[v] <= floor or stopped():
            return
        least = stages.least(v)
        if least > floor:
            floor = least
            yield floor


def has_stages(q: Quotient) -> bool:
    """Return whether loads have transfers, which all devices pay."""
    return bool(q.nets) and not q.host[q.counts > 0].any() and bool(0 < _alone(q).max() < np.inf)


def _alone(q: Quotient) -> FloatArray:
    pins, cost = [sorted(pins) for pins, _ in q.nets], [cost for _, cost in q.nets]
    paid = np.repeat(cost, [len(x) for x in pins])
    return np.asarray(q.work + np.bincount(np.concatenate(pins), weights=paid, minlength=q.n_groups))


class Stages:
    """The sets of groups that a device can have, as cuts of one network; `alone`: the load of each group by itself."""

    def __init__(self, q: Quotient) -> None:
        n, nets = q.n_groups, len(q.nets)
        size = np.array([len(pins) for pins, _ in q.nets])
        cost = np.array([seconds for _, seconds in q.nets])
        net, pin = np.repeat(np.arange(nets), size), np.array([g for pins, _ in q.nets for g in pins])
        self.alone = _alone(q)
        self._scale, self._sink = _UNITS / float(self.alone.max()), n + 2 * nets
        # a pin in S lights its net's first node, which the second may leave only if all pins are in S
        groups, some, every = np.arange(n), n + np.arange(nets), n + nets + np.arange(nets)
        tail, head = [pin, some, every[net], groups], [some[net], every, pin, np.full(n, self._sink)]
        endless = np.full(len(pin), _INFINITE)
        limit = [endless, np.floor(cost * self._scale), endless, np.floor(q.work * self._scale)]
        self._arcs = np.stack([np.concatenate(x).astype(np.int64) for x in (tail, head, limit)])

    def least(self, v: int, without: int | None = None) -> float:
        """Return the least load of a device that has group v and not group `without`, or a little less, seconds."""
        apart = np.array([[], [], []] if without is None else [[without], [self._sink], [_INFINITE]], dtype=np.int64)
        found = minimum_cut(np.concatenate([self._arcs, apart], axis=1), v, self._sink, sides=False)
        return 0.0 if found is None else found[0] / self._scale


_EPSILON = 1e-9
_CLOSE = 0.004
"""Loads are tried until one that is refuted and one that is not are so near, as a share."""


def contraction_bounds(q: Quotient, floor: float, ceiling: float, stopped: Callable[[], bool]) -> Iterator[float]:
    """Yield greater and greater lower bounds on the load of plans of any variant, seconds, `floor` to `ceiling`."""
    low, high, load = floor, ceiling, ceiling * (1 - OPTIMAL_GAP / 2)
    while load > low and not stopped():
        if refutes(q, load, stopped):
            low = load
            yield load
        else:
            high = load
        load = (low * high) ** 0.5 if high > low * (1 + _CLOSE) else low


def refutes(q: Quotient, load: float, stopped: Callable[[], bool]) -> bool:
    """Return whether plainly no plan has all loads at most `load` seconds; false if `stopped` says so."""
    while not stopped():
        if impossible(q) is not None or counting_bound(q, stopped) > load * (1 + _EPSILON):
            return True
        if not has_stages(q):
            return False
        stages = Stages(q)
        heavy = np.flatnonzero(stages.alone > load)
        beside: dict[int, set[int]] = {a: set() for a in heavy.tolist()}
        for pins, _ in q.nets:
            for a in pins & beside.keys():
                beside[a] |= pins - {a}
        label = np.arange(q.n_groups)
        for a, others in beside.items():
            if stopped():
                return False
            if stages.least(a) > load * (1 + _EPSILON):
                return True
            for b in sorted(others):
                if label[a] != label[b] and stages.least(a, b) > load * (1 + _EPSILON):
                    label[label == label[b]] = label[a]
        if (label == np.arange(q.n_groups)).all():
            return False
        q = merged(q, label, ordered=False)
    return False
