"""How full a sample of tasks lets a cluster get, whoever places them: a bound on every policy of `saturate`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from gangplan.instances.placement.job import Task
from gangplan.solvers.placement.online.state import GPU, Need, need
from gangplan.solvers.placement.online.stranding import GRID, ROUNDS, fill

SPLITS = 5
"""Ways to tell large tasks from light ones that are tried; each gives a bound."""

PENALTY = 100.0
"""GPUs lost for a GPU's worth of light tasks that had to be placed and are not, so that such times have a low bound."""


def ceiling(drawn: Sequence[Task], gpus: int) -> float:
    """Return a share of the GPUs that no policy exceeds once all tasks have come, were it to know them beforehand.

    Policies drop only what fits nowhere. Call tasks *large* that take whole GPUs and at least c cores and b bytes, and
    *light* those that share a GPU of any type and need at most c and b. When the last large task is placed, its node
    has room for any light one, and had it before, as nothing ever leaves. So all light tasks that came earlier are
    placed, and no large one that came later. Given when that was, the rest is a linear programme: choose how many of
    each share are placed and cut GPUs into them (Gilmore & Gomory 1961), with nodes, cores and memory left out. The
    bound is the best case over all times, by branch and bound, and the least over a few c and b.
    """
    needs = [need(task) for task in drawn]
    shared = Counter((k.cpu, k.memory) for k in needs if k.grants and not k.whole)
    splits = [c for c, _ in shared.most_common(SPLITS)]
    return min([1.0, *(_ShareSplit(needs, gpus, *split).bound() / gpus for split in splits)])


class _ShareSplit:
    def __init__(self, needs: Sequence[Need], gpus: int, cpu: int, memory: int) -> None:
        self.gpus, self.n = gpus, len(needs)
        self.sizes = sorted({k.share for k in needs if k.grants and not k.whole})
        row = {size: i for i, size in enumerate(self.sizes)}
        self.light: list[list[int]] = [[] for _ in self.sizes]
        self.most = np.zeros(len(self.sizes))
        self.large = np.zeros(self.n + 1)
        self.whole = 0.0
        for t, k in enumerate(needs):
            if k.whole and k.cpu >= cpu and k.memory >= memory:
                self.large[t + 1] = k.grants
            elif k.whole:
                self.whole += k.grants
            elif k.grants:
                self.most[row[k.share]] += 1
                if k.cpu <= cpu and k.memory <= memory and not k.gpu_types:
                    self.light[row[k.share]].append(t)
        self.large = self.large.cumsum()
        # rounding down only makes more fit
        self.steps = [max(1, size * GRID // GPU) for size in self.sizes]
        self.cuts = [[i] * (GRID // step) for i, step in enumerate(self.steps)]

    def bound(self) -> float:
        """Return the most GPUs allocated, whenever the last large task is placed."""
        heap: list[tuple[float, int, int]] = []
        first, last = 0, self.n
        while last - first > 1:
            middle = (first + last) // 2
            for part in ((first, middle), (middle, last)):
                heappush(heap, (-self.value(*part), *part))
            negative, first, last = heappop(heap)
        return -negative if self.n > 1 else float(self.gpus)

    def value(self, first: int, last: int) -> float:
        """Bound the GPUs allocated if the last large task that is placed is among drawn[first:last].

        `first` 0 covers that none is placed. Light tasks that had to be placed may be missed at a `PENALTY`.
        """
        from ortools.linear_solver import pywraplp

        solver = pywraplp.Solver.CreateSolver("GLOP")
        objective = solver.Objective()
        objective.SetMaximization()
        room = solver.Constraint(-solver.infinity(), self.gpus)
        whole = solver.NumVar(0.0, float(self.large[last]) + self.whole, "")
        room.SetCoefficient(whole, 1.0)
        objective.SetCoefficient(whole, 1.0)
        held = []
        for size, times, most in zip(self.sizes, self.light, self.most.tolist(), strict=True):
            least = solver.Constraint(float(bisect_left(times, first)), solver.infinity())
            placed, short = solver.NumVar(0.0, most, ""), solver.NumVar(0.0, solver.infinity(), "")
            least.SetCoefficient(placed, 1.0)
            least.SetCoefficient(short, 1.0)
            objective.SetCoefficient(placed, size / GPU)
            objective.SetCoefficient(short, -PENALTY * size / GPU)
            held.append(solver.Constraint(0.0, solver.infinity()))
            held[-1].SetCoefficient(placed, -1.0)

        def add(cut: list[int]) -> None:
            used = solver.NumVar(0.0, solver.infinity(), "")
            room.SetCoefficient(used, 1.0)
            for i in set(cut):
                held[i].SetCoefficient(used, float(cut.count(i)))

        for cut in self.cuts:
            add(cut)
        bound = float(self.gpus)
        for _ in range(ROUNDS):
            solver.Solve()
            worth, cut = fill(self.steps, [max(0.0, -row.dual_value()) for row in held])
            # were a GPU so dear, no cut would pay: by duality a bound, cuts not there included
            dearer = max(0.0, float(worth[GRID]) - room.dual_value())
            bound = min(bound, objective.Value() + dearer * self.gpus)
            if dearer <= 1e-6:
                break
            self.cuts.append(cut)
            add(cut)
        return bound
