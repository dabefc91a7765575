"""Scheduling with communication delays in CP-SAT, as a textbook has it: an interval for each op and device."""

from __future__ import annotations

from math import floor, isfinite
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import StepPlan
from gangplan.solvers import Run

from .engines import run_cpsat
from .retime import earliest
from .textbook import Job

UNITS = 1 << 38
"""What a makespan that no plan need exceed becomes in integers; rounding down keeps the bound a bound."""


def step_cpsat(run: Run) -> None:
    """Minimise the makespan: x[v, d] op v on device d, s[v] its start; a delay for every edge and pair of devices."""
    job = Job.of(run.problem)
    scale = UNITS / job.total if job.total > 0 else 1.0
    model = cp_model.CpModel()
    devices, ops = range(len(job.kind)), range(len(job.memory))
    x = [[model.new_bool_var("") for _ in devices] for _ in ops]
    start, finish = ([model.new_int_var(0, UNITS, "") for _ in ops] for _ in range(2))
    makespan = model.new_int_var(0, UNITS, "")
    for v in ops:
        model.add_exactly_one(x[v])
        model.add(makespan >= finish[v])
    for d in devices:
        intervals = []
        for v in ops:
            if not isfinite(job.time[d][v]):
                model.add(x[v][d] == 0)
                continue
            seconds = floor(job.time[d][v] * scale)
            intervals.append(model.new_optional_interval_var(start[v], seconds, finish[v], x[v][d], ""))
        model.add_no_overlap(intervals)
    for v, w in job.together:
        for d in devices:
            model.add(x[v][d] == x[w][d])
    for u, v in job.edges:
        model.add(start[v] >= finish[u])
        for d in devices:
            for e in devices:
                delay = floor(job.delay(u, d, e) * scale)
                if delay:
                    model.add(start[v] >= finish[u] + delay).only_enforce_if(x[u][d], x[v][e])
    byte = max(max(job.memory) / 2**31, 1e-300)
    for d in devices:
        if isfinite(job.capacity[d]):
            used = sum(floor(job.memory[v] / byte) * x[v][d] for v in ops)
            model.add(used <= floor(job.capacity[d] / byte))
    model.minimize(makespan)

    def plan(solution: Any) -> StepPlan:
        where = [next(d for d in devices if solution.boolean_value(x[v][d])) for v in ops]
        return earliest(run.problem, np.array(where), [solution.value(s) for s in start])

    run_cpsat(run, model, scale, plan)
