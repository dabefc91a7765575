"""The latency model of Tarnawski et al. (NeurIPS 2020, section 4) in CP-SAT: nothing contracted, no hint, no bound."""

from __future__ import annotations

from math import floor, isfinite
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import LatencyPlan
from gangplan.solvers import Run

from .engines import run_cpsat
from .textbook import Job

UNITS = 1 << 38
"""What a latency that no plan need exceed becomes in integers; rounding down keeps the bound a bound."""


def latency_cpsat(run: Run) -> None:  # noqa: PLR0912, one model read from top to bottom
    """Minimise the latest result: x[v, d] op v on device d, in/out[u, d] its output crosses into or out of the call."""
    job = Job.of(run.problem)
    scale = UNITS / job.total if job.total > 0 else 1.0
    model = cp_model.CpModel()
    devices, ops = job.places, range(len(job.memory))
    calls = [d for d in devices if not job.host[d]]
    x = [{d: model.new_bool_var("") for d in devices} for _ in ops]
    ready = [model.new_int_var(0, UNITS, "") for _ in ops]
    start, finish = ({d: model.new_int_var(0, UNITS, "") for d in devices} for _ in range(2))
    level = [model.new_int_var(0, len(ops) + len(calls), "") for _ in ops]
    turn = {d: model.new_int_var(0, len(ops) + len(calls), "") for d in devices}
    latest = model.new_int_var(0, UNITS, "")
    for v in ops:
        model.add_exactly_one(x[v].values())
        model.add(latest >= ready[v])
        for d in devices:
            if not isfinite(job.time[d][v]):
                model.add(x[v][d] == 0)
            elif d in calls:
                model.add(ready[v] >= finish[d]).only_enforce_if(x[v][d])
                model.add(level[v] == turn[d]).only_enforce_if(x[v][d])
    for v, w in job.together:
        for d in devices:
            model.add(x[v][d] == x[w][d])
    coming = {d: {u: model.new_bool_var("") for u in {u for u, _ in job.edges}} for d in devices}
    going = {d: {u: model.new_bool_var("") for u in {u for u, _ in job.edges}} for d in devices}
    for u, v in job.edges:
        for d in devices:
            if d in calls:
                model.add_bool_or(~x[v][d], x[u][d], coming[d][u])
                model.add_bool_or(~x[u][d], x[v][d], going[d][u])
                # calls must not wait for one another in a circle, even if they take no time
                model.add(level[v] >= level[u] + 1).only_enforce_if(x[v][d], ~x[u][d])
            elif isfinite(job.time[d][v]):
                seconds = floor(job.time[d][v] * scale)
                model.add(ready[v] >= ready[u] + seconds).only_enforce_if(x[v][d])
                model.add(level[v] >= level[u] + 1).only_enforce_if(x[v][d])
    for v in ops:
        for d in devices:
            if d not in calls and isfinite(job.time[d][v]):
                model.add(ready[v] >= floor(job.time[d][v] * scale)).only_enforce_if(x[v][d])
    byte = max(max(job.memory) / 2**31, 1e-300)
    for d in devices:
        if isfinite(job.capacity[d]):
            used = sum(floor(job.memory[v] / byte) * x[v][d] for v in ops)
            model.add(used <= floor(job.capacity[d] / byte))
    for d in calls:
        for u, crosses in coming[d].items():
            model.add(start[d] >= ready[u]).only_enforce_if(crosses)
        work: Any = sum(floor(job.time[d][v] * scale) * x[v][d] for v in ops if isfinite(job.time[d][v]))
        for crossing in (coming[d], going[d]):
            work += sum(floor(job.cost[u] * scale) * crosses for u, crosses in crossing.items())
        model.add(finish[d] >= start[d] + work)
    model.minimize(latest)

    def plan(solution: Any) -> LatencyPlan:
        where = [next(d for d in devices if solution.boolean_value(x[v][d])) for v in ops]
        return LatencyPlan(run.problem.graph.names, np.array(where))

    run_cpsat(run, model, scale, plan)
