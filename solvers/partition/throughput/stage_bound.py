"""A bound for every variant: the least load of a device that has a given group.

A device with group v has some set S of groups with v in it, and its load is at least

    min over S with v in S of w(S) + sum of c[e] over the nets of which S has some pins and not all,

where w counts the seconds of each group on the type that runs it fastest, and there are no hosts, which pay nothing.
That is a minimum cut (Picard and Ratliff 1975, hyperedges by two nodes each): the source side is S, v is the source; a
group outside S costs nothing, one inside w; a net costs c if a pin is in S and another is not. Some device has v, so
the maximum over v bounds the objective from below. The load of v alone is no less than the minimum, so groups come by
that, and those that cannot raise the bound are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from ortools.graph.python import max_flow

from .quotient import Quotient

_UNITS = 1 << 40
"""Integer capacity that stands for the greatest load of a single group; costs are rounded down."""
_INFINITE = 1 << 58


def stage_bounds(q: Quotient, floor: float, stopped: Callable[[], bool]) -> Iterator[float]:
    """Yield greater and greater lower bounds in seconds, all above `floor`, on the load of plans of any variant."""
    if q.host[q.counts > 0].any() or not q.nets:
        return
    n, nets = q.n_groups, len(q.nets)
    size = np.array([len(pins) for pins, _ in q.nets])
    cost = np.array([seconds for _, seconds in q.nets])
    net, pin = np.repeat(np.arange(nets), size), np.array([g for pins, _ in q.nets for g in pins])
    alone = q.work + np.bincount(pin, weights=cost[net], minlength=n)
    if not 0 < alone.max() < np.inf:
        return
    scale = _UNITS / float(alone.max())
    # a pin in S lights its net's first node, which the second may leave only if all pins are in S
    groups, some, every, sink = np.arange(n), n + np.arange(nets), n + nets + np.arange(nets), n + 2 * nets
    tail = np.concatenate([pin, some, every[net], groups]).astype(np.int32)
    head = np.concatenate([some[net], every, pin, np.full(n, sink)]).astype(np.int32)
    whole = np.concatenate([
        np.full(len(pin), _INFINITE), np.floor(cost * scale), np.full(len(pin), _INFINITE), np.floor(q.work * scale),
    ]).astype(np.int64)  # fmt: skip
    for v in np.argsort(-alone, kind="stable").tolist():
        if alone[v] <= floor or stopped():
            return
        flow = max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(tail, head, whole)
        if flow.solve(v, sink) == flow.OPTIMAL and flow.optimal_flow() / scale > floor:
            floor = flow.optimal_flow() / scale
            yield floor
