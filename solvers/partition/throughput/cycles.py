"""Convex partitions: when an optimal pipeline is an optimal convex plan too.

Call an op a bottleneck if it is comparable with every other op of the order, and let v1 < v2 < ... be all of them.
If a convex part A contains a bottleneck v, every other part lies wholly before v or wholly after v, for a path from
one side to the other runs through v. A cycle of the quotient that leaves A for a part after v could only come back
to A by a path out of A and into it again, which convexity forbids; so no part of a cycle contains a bottleneck, and
all of them lie in one gap between two successive bottlenecks. Hence a convex plan is either a pipeline, or it has two
devices that hold nothing (in the order) outside one gap. In the second case all other work is left to the other
devices, and its load is at least

    min over gaps of (work of groups with an op outside the gap) / (sum over devices of r[t] less the two smallest).
"""

from __future__ import annotations

import numpy as np

from gangplan.instances import PartitionProblem, precedence
from gangplan.instances.arrays import IntArray
from gangplan.instances.graph import topological_order

from .quotient import Quotient


def cyclic_bound(q: Quotient) -> float:
    """Return a lower bound in seconds on the load of any convex plan whose quotient has a cycle."""
    speed = np.sort(np.repeat(q.speed, q.counts))
    rest = float(speed[2:].sum())
    gap = _gaps(q.problem)
    if (gap < 0).all() or len(speed) < 2:
        return float("inf")
    best = float("inf")
    for index in np.unique(gap[gap >= 0]).tolist():
        bound_elsewhere = np.unique(q.group_of[(gap >= 0) & (gap != index)])
        work = float(q.work[bound_elsewhere].sum())
        # without other devices the work outside the gap has nowhere to go: no such plan
        elsewhere = float("inf") if rest <= 0 else work / rest
        best = min(best, elsewhere if work > 0 else 0.0)
    return best


def _gaps(problem: PartitionProblem) -> IntArray:
    """Return the gap of each op: even numbers, an odd one of its own for a bottleneck, -1 without a place in the order.

    In a topological order an op comes after all others before it just if it is the only one of them that has no
    successor among them, and the other way round.
    """
    n = problem.graph.n_ops
    earlier, later = precedence(problem.graph)
    ops = np.unique(np.concatenate([earlier, later]))
    order = topological_order(n, earlier, later)
    order = order[np.isin(order, ops)]
    place, last = np.empty(n, dtype=np.int64), len(order) - 1
    place[order] = np.arange(len(order))
    next_one, one_before = np.full(len(order), len(order)), np.full(len(order), -1)
    np.minimum.at(next_one, place[earlier], place[later])
    np.maximum.at(one_before, place[later], place[earlier])
    # of all ops before a place the latest next one, of all after it the earliest one before
    latest = np.maximum.accumulate(np.concatenate([[0], next_one[:-1]]))
    earliest = np.minimum.accumulate(np.concatenate([one_before[1:], [last]])[::-1])[::-1]
    bottleneck = (latest <= np.arange(len(order))) & (earliest >= np.arange(len(order)))
    gap = np.full(n, -1, dtype=np.int32)
    gap[order] = 2 * (np.cumsum(bottleneck) - bottleneck) + bottleneck
    return gap
