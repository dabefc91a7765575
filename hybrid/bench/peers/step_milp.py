"""Scheduling with communication delays as a mixed-integer programme with an order variable a pair of ops and big-M."""

from __future__ import annotations

from itertools import combinations
from math import isfinite

import numpy as np
import pulp

from gangplan.instances import StepPlan
from gangplan.solvers import Run
from gangplan.solvers.pulp_solvers import ABOVE_ONE

from .engines import Solve
from .retime import earliest
from .textbook import Job


def step_milp(run: Run, solve: Solve) -> None:
    """Minimise the makespan; letters as in `step_cpsat`, y[u, v] op u before op v if they share a device."""
    job = Job.of(run.problem)
    unit = job.total or 1.0
    lp = pulp.LpProblem("step", pulp.LpMinimize)
    devices, ops = range(len(job.kind)), range(len(job.memory))
    x = [[pulp.LpVariable(f"x_{v}_{d}", cat="Binary") for d in devices] for v in ops]
    start = [pulp.LpVariable(f"s_{v}", 0, 1) for v in ops]
    makespan = pulp.LpVariable("Z", 0, ABOVE_ONE)
    lp += makespan
    runs = [[d for d in devices if isfinite(job.time[d][v])] for v in ops]
    took = [pulp.lpSum(job.time[d][v] / unit * x[v][d] for d in runs[v]) for v in ops]
    for v in ops:
        lp += pulp.lpSum(x[v][d] for d in runs[v]) == 1
        lp += pulp.lpSum(x[v]) == 1
        lp += makespan >= start[v] + took[v]
    for v, w in job.together:
        for d in devices:
            lp += x[v][d] == x[w][d]
    for u, v in job.edges:
        lp += start[v] >= start[u] + took[u]
        for d in devices:
            for e in devices:
                delay = job.delay(u, d, e) / unit
                if delay:
                    lp += start[v] >= start[u] + took[u] + delay * (x[u][d] + x[v][e] - 1)
    before = {pair: pulp.LpVariable(f"y_{pair[0]}_{pair[1]}", cat="Binary") for pair in combinations(ops, 2)}
    for (u, v), first in before.items():
        for d in devices:
            apart = 2 - x[u][d] - x[v][d]
            lp += start[v] >= start[u] + took[u] - 2 * (apart + 1 - first)
            lp += start[u] >= start[v] + took[v] - 2 * (apart + first)
    for d in devices:
        if isfinite(job.capacity[d]):
            lp += pulp.lpSum(job.memory[v] / job.capacity[d] * x[v][d] for v in ops) <= 1

    def plan() -> StepPlan:
        where = [max(devices, key=lambda d: x[v][d].value()) for v in ops]
        return earliest(run.problem, np.array(where), [s.value() for s in start])

    solve(run, lp, unit, plan)
