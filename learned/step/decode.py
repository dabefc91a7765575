"""From scores to a plan: list scheduling in which the scores speak along; without them it is HEFT. Compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Floats, Floats2, by_reference, lean, lean_kernel
from gangplan.solvers.compiled.routines import pop, push
from gangplan.solvers.partition.step.improve.arrays import Arrays

from .state import COSTS, State, open_devices, put, settle, weigh


class Scores(NamedTuple):
    """What the decoder is told; all zero is HEFT.

    Attributes:
        priority: added to the upward rank of each op, in mean ops, float64 (n,).
        costs: price of each of `COSTS` where the group of an op is placed as the op starts, in mean ops, float64
            (n, C).
        same: what it is worth, in mean ops, that the ends of an edge share a device, float64 (m,).
        near: the same for devices that are near one another, see `Arrays.near`, float64 (m,).
    """

    priority: Floats
    costs: Floats2
    same: Floats
    near: Floats


def zeros(n: int, m: int) -> Scores:
    """Return the scores of HEFT, for n ops and m edges."""
    return Scores(np.zeros(n), np.zeros((n, len(COSTS))), np.zeros(m), np.zeros(m))


@lean_kernel
def build(arrays: Arrays, told: Scores, state: State, careful: bool) -> bool:
    """Place and schedule all ops; return whether memory sufficed.

    Of the ops that may come next the one with the highest rank and priority goes in first. The first op of a group
    takes the group to the device with the least cost: end of the op, prices of `COSTS`, less what the edges to groups
    on this device, and near it, are worth.

    Args:
        arrays, told: the problem, and what its ops and edges score.
        state: an empty one; gets the plan.
        careful: see `open_devices`.
    """
    a, scores, s = by_reference(arrays), by_reference(told), by_reference(state)
    waiting, value, heap, row, size, n = s.waiting, s.value, s.heap, s.row, 0, len(a.group)
    for v in range(n):
        value[v] = a.rank[v] / a.unit + scores.priority[v]
    for v in range(n):
        waiting[v] = a.before_first[v + 1] - a.before_first[v]
        if waiting[v] == 0:
            size = push(heap, size, v, value, a.topological)
    last = -1
    for i in range(n):
        v = heap[0]
        size = pop(heap, size, value, a.topological)
        s.order[i] = v
        g = a.group[v]
        if s.where[g] < 0:
            count = open_devices(a, s, g, careful)
            if count == 0:
                return False
            best = s.choice[0]
            if count > 1:
                attract(a, s, g, scores)
                least = np.inf
                for j in range(count):
                    d = s.choice[j]
                    weigh(a, s, v, d, last)
                    cost = row[0] - s.pull[d]
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
    return True


@lean
def attract(a: Arrays, s: State, g: int, scores: Scores) -> None:
    """Write what the edges of group g to groups that are placed are worth on each device, float64 (k,)."""
    pull = s.pull
    for d in range(len(pull)):
        pull[d] = 0.0
    for i in range(a.edge_first[g], a.edge_first[g + 1]):
        there = s.where[a.other[i]]
        if there >= 0:
            pull[there] += scores.same[a.edge[i]]
            for d in range(len(pull)):
                if a.near[d, there]:
                    pull[d] += scores.near[a.edge[i]]
