"""Which groups make the fullest stage around one of them: a minimum cut."""

from __future__ import annotations

import numpy as np
from ortools.graph.python import max_flow

from gangplan.instances.arrays import BoolArray, FloatArray

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
        order: of the groups, and their nets.
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
        flow = max_flow.SimpleMaxFlow()
        paid = np.minimum(np.concatenate([multiplier * self.cost, gain[good], -gain[bad]]) * _UNITS, _MOST)
        flow.add_arcs_with_capacity(
            np.concatenate([self.tail, np.full(len(good), self.source), bad]).astype(np.int32),
            np.concatenate([self.head, good, np.full(len(bad), self.sink)]).astype(np.int32),
            np.concatenate([self.fixed, paid]).astype(np.int64),
        )
        inside = np.zeros(self.total, dtype=bool)
        if flow.solve(self.source, self.sink) != flow.OPTIMAL:
            return float("inf"), inside
        inside[self.groups[[x for x in flow.get_source_side_min_cut() if x < n]]] = True
        return float(gain[good].sum() - flow.optimal_flow() / _UNITS + multiplier), inside
