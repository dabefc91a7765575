"""From scores to a plan: list scheduling in which the scores speak along; without them it is HEFT. Compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.partition.step.improve.heap import pop, push

from .state import COSTS, empty, open_devices, put, settle, weigh


class Scores(NamedTuple):
    """What the decoder is told; all zero is HEFT.

    Attributes:
        priority: added to the upward rank of each op, in mean ops, float64 (n,).
        costs: price of each of `COSTS` where the group of an op is placed as the op starts, in mean ops, float64
            (n, C).
        same: what it is worth, in mean ops, that the ends of an edge share a device, float64 (m,).
        near: the same for devices that are near one another, see `Arrays.near`, float64 (m,).
    """

    priority: FloatArray
    costs: FloatArray
    same: FloatArray
    near: FloatArray


def zeros(n: int, m: int) -> Scores:
    """Return the scores of HEFT, for n ops and m edges."""
    return Scores(np.zeros(n), np.zeros((n, len(COSTS))), np.zeros(m), np.zeros(m))


@njit(cache=True)
def build(a: Any, scores: Any, careful: bool) -> Any:
    """Place and schedule all ops; return (state, order of the ops, whether memory sufficed).

    Of the ops that may come next the one with the highest rank and priority goes in first. The first op of a group
    takes the group to the device with the least cost: end of the op, prices of `COSTS`, less what the edges to groups
    on this device, and near it, are worth.

    Args:
        a: the problem, `Arrays`.
        scores: see `Scores`.
        careful: see `open_devices`.
    """
    n, k = len(a.group), len(a.room)
    s = empty(a)
    waiting, value = np.empty(n, np.int64), np.empty(n)
    heap, size = np.empty(n, np.int64), 0
    for v in range(n):
        value[v] = a.rank[v] / a.unit + scores.priority[v]
    for v in range(n):
        waiting[v] = a.before_first[v + 1] - a.before_first[v]
        if waiting[v] == 0:
            size = push(heap, size, v, value, a.topological)
    order, choice, row, pull = np.empty(n, np.int64), np.empty(k, np.int64), np.zeros(8), np.zeros(k)
    last = -1
    for i in range(n):
        v = heap[0]
        size = pop(heap, size, value, a.topological)
        order[i] = v
        g = a.group[v]
        if s.where[g] < 0:
            count = open_devices(a, s, g, careful, choice)
            if count == 0:
                return s, order, False
            best = choice[0]
            if count > 1:
                attract(a, s, g, scores.same, scores.near, pull)
                least = np.inf
                for j in range(count):
                    d = choice[j]
                    weigh(a, s, v, d, last, row)
                    cost = row[0] - pull[d]
                    for c in range(scores.costs.shape[1]):
                        cost += scores.costs[v, c] * row[c + 1]
                    if cost < least:
                        least, best = cost, d
            settle(a, s, g, best)
            last = best
        put(a, s, v)
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            waiting[w] -= 1
            if waiting[w] == 0:
                size = push(heap, size, w, value, a.topological)
    return s, order, True


@njit(cache=True)
def attract(a: Any, s: Any, g: int, same: Any, near: Any, pull: Any) -> None:
    """Write what the edges of group g to groups that are placed are worth on each device, float64 (k,)."""
    for d in range(len(pull)):
        pull[d] = 0.0
    for i in range(a.edge_first[g], a.edge_first[g + 1]):
        there = s.where[a.other[i]]
        if there >= 0:
            pull[there] += same[a.edge[i]]
            for d in range(len(pull)):
                if a.near[d, there]:
                    pull[d] += near[a.edge[i]]
