"""A bound for every variant: the least load of a device that has a given group.

A device with group v has some set S of groups with v in it, and its load is at least

    min over S with v in S of w(S) + sum of c[e] over the nets of which S has some pins and not all,

where w counts the seconds of each group on the type that runs it fastest, and there are no hosts, which pay nothing.
That is a minimum cut (Picard and Ratliff 1975, hyperedges by two nodes each): the source side is S, v is the source; a
group outside S costs nothing, one inside w; a net costs c if a pin is in S and another is not. Some device has v, so
the maximum over v bounds the objective from below. The load of v alone is no less than the minimum, so groups come by
that, and those that cannot raise the bound are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gangplan.instances.arrays import FloatArray

from ...flows import minimum_cut
from .quotient import Quotient

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

    def least(self, v: int) -> float:
        """Return the least load of a device that has group v, or a little less, seconds."""
        found = minimum_cut(self._arcs, v, self._sink, sides=False)
        return 0.0 if found is None else found[0] / self._scale
