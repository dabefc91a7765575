"""What a part of a GPU is worth: the cutting-stock problem (Gilmore & Gomory, Operations Research 9, 1961)."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .mix import Mix
from .units import GPU, Long

GRID = 1000
"""Steps of a GPU; shares are rounded up to whole steps."""

ROUNDS = 500
"""Cuts added at most; prices are usable after any number of them."""


class Cuts:
    """The worth of free shares, in GPUs, for a mix of tasks that share GPUs.

    Cutting GPUs into the shares of the mix with as few GPUs as possible is a linear programme over cuts. Its dual gives
    each share a price: what the GPUs it takes, waste and all, cost. A free share is worth the best choice of tasks that
    fit in it, 1 at most; what is worth less than it is large is waste. With many tasks of 0.81, a free 0.19 is worth
    nothing, and so are tasks of 0.16: they go where nothing else can.

    Attributes:
        worth: float64 (GRID + 1,), of a free share of so many steps.
    """

    def __init__(self, mix: Mix) -> None:
        """Price the shares of a mix."""
        shares: dict[int, float] = {}
        for kind, p in zip(mix.needs, mix.share.tolist(), strict=True):
            if kind.grants and not kind.whole:
                steps = -(-kind.share * GRID // GPU)
                shares[steps] = shares.get(steps, 0.0) + p
        self.worth = _worth(np.array(sorted(shares)), np.array([shares[s] for s in sorted(shares)]))

    def __call__(self, free: Long) -> FloatArray:
        """Return what is wasted of the free shares of each node, in GPUs, float64 (k,); `free` is int64 (k, g)."""
        steps = np.maximum(free, 0) * GRID // GPU
        return np.asarray((steps / GRID - self.worth[steps]).sum(axis=1))


def _worth(sizes: Long, amounts: FloatArray) -> FloatArray:
    """Return the worth of each free share by generating cuts until none pays."""
    from ortools.linear_solver import pywraplp

    if not len(sizes):
        return np.where(np.arange(GRID + 1) < GRID, 0.0, 1.0)
    solver = pywraplp.Solver.CreateSolver("GLOP")
    demand = [solver.Constraint(float(p), solver.infinity()) for p in amounts / amounts.sum()]
    objective = solver.Objective()

    def add(cut: list[int]) -> None:
        used = solver.NumVar(0.0, solver.infinity(), "")
        objective.SetCoefficient(used, 1.0)
        for i in set(cut):
            demand[i].SetCoefficient(used, cut.count(i))

    for i, size in enumerate(sizes.tolist()):
        add([i] * (GRID // size))
    worth = np.zeros(GRID + 1)
    for _ in range(ROUNDS):
        solver.Solve()
        worth, cut = fill(sizes.tolist(), [row.dual_value() for row in demand])
        if worth[GRID] <= 1 + 1e-6:
            break
        add(cut)
    worth = np.minimum(worth, 1.0)
    worth[GRID] = 1.0
    return worth


def fill(sizes: list[int], prices: list[float]) -> tuple[FloatArray, list[int]]:
    """Return the dearest filling of each free share, and the shares that fill a whole GPU so."""
    worth, last = [0.0] * (GRID + 1), [-1] * (GRID + 1)
    for room in range(1, GRID + 1):
        best, which = worth[room - 1], -1
        for i, size in enumerate(sizes):
            if size > room:
                break
            if worth[room - size] + prices[i] > best + 1e-12:
                best, which = worth[room - size] + prices[i], i
        worth[room], last[room] = best, which
    cut, room = [], GRID
    while room:
        if last[room] < 0:
            room -= 1
        else:
            cut.append(last[room])
            room -= sizes[last[room]]
    return np.array(worth), cut
