"""The integer programme of Tarnawski et al. (NeurIPS 2020, section 4) as published, through PuLP."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pulp

from gangplan.instances import LatencyPlan
from gangplan.solvers import Run
from gangplan.solvers.pulp_solvers import ABOVE_ONE

from .engines import Solve
from .textbook import Job


def latency_milp(run: Run, solve: Solve) -> None:  # noqa: PLR0912, one model read from top to bottom
    """Minimise the latest result; letters as in `latency_cpsat`, big-M where that enforces."""
    job = Job.of(run.problem)
    unit = job.total or 1.0
    lp = pulp.LpProblem("latency", pulp.LpMinimize)
    devices, ops = job.places, range(len(job.memory))
    calls = [d for d in devices if not job.host[d]]
    most = len(ops) + len(calls)
    x = [{d: pulp.LpVariable(f"x_{v}_{d}", cat="Binary") for d in devices} for v in ops]
    ready, level = ([pulp.LpVariable(f"{name}_{v}", 0, up) for v in ops] for name, up in (("r", 1), ("l", most)))
    start, finish = ({d: pulp.LpVariable(f"{name}_{d}", 0, 1) for d in devices} for name in ("s", "f"))
    turn = {d: pulp.LpVariable(f"t_{d}", 0, most) for d in devices}
    latest = pulp.LpVariable("Z", 0, ABOVE_ONE)
    lp += latest
    for v in ops:
        lp += pulp.lpSum(x[v].values()) == 1
        lp += latest >= ready[v]
        for d in devices:
            if not isfinite(job.time[d][v]):
                lp += x[v][d] == 0
            elif d in calls:
                lp += ready[v] >= finish[d] - (1 - x[v][d])
                lp += level[v] - turn[d] <= most * (1 - x[v][d])
                lp += turn[d] - level[v] <= most * (1 - x[v][d])
            else:
                lp += ready[v] >= job.time[d][v] / unit * x[v][d]
    for v, w in job.together:
        for d in devices:
            lp += x[v][d] == x[w][d]
    sources = sorted({u for u, _ in job.edges})
    coming, going = (
        {(d, u): pulp.LpVariable(f"{name}_{d}_{u}", 0, 1) for d in calls for u in sources} for name in ("in", "out")
    )
    for u, v in job.edges:
        for d in devices:
            if d in calls:
                lp += coming[d, u] >= x[v][d] - x[u][d]
                lp += going[d, u] >= x[u][d] - x[v][d]
                lp += level[v] >= level[u] + 1 - (most + 1) * (1 - x[v][d] + x[u][d])
            elif isfinite(job.time[d][v]):
                lp += ready[v] >= ready[u] + job.time[d][v] / unit * x[v][d] - (1 - x[v][d])
                lp += level[v] >= level[u] + 1 - (most + 1) * (1 - x[v][d])
    for d in devices:
        if isfinite(job.capacity[d]):
            lp += pulp.lpSum(job.memory[v] / job.capacity[d] * x[v][d] for v in ops) <= 1
    for d in calls:
        for u in sources:
            lp += start[d] >= ready[u] - (1 - coming[d, u])
        work = pulp.lpSum(job.time[d][v] / unit * x[v][d] for v in ops if isfinite(job.time[d][v]))
        moved = pulp.lpSum(job.cost[u] / unit * (coming[d, u] + going[d, u]) for u in sources)
        lp += finish[d] >= start[d] + work + moved

    def plan() -> LatencyPlan:
        where = [max(devices, key=lambda d: x[v][d].value()) for v in ops]
        return LatencyPlan(run.problem.graph.names, np.array(where))

    solve(run, lp, unit, plan)
