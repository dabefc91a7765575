"""Plain models of schedules: in CP-SAT an optional interval a degree and place, in a MILP a binary a place and tick."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from gangplan.solvers import Run
from gangplan.solvers.schedule.cpsat import seated
from gangplan.solvers.schedule.enumeration import Place, places
from gangplan.solvers.schedule.grain import Scale
from gangplan.solvers.schedule.milp import TimeIndexed, suits
from gangplan.solvers.schedule.prepare import Prepared, ShiftedRun, prepare

from .engines import Solve, run_cpsat


def modes(p: Prepared) -> list[tuple[int, int, Place]]:
    """Return (job, option, place) of every way to run a job."""
    return [(j, o, place) for j in range(p.n) for o in p.options(j) for place in places(p.problem, int(p.gpus[o]))]


def plan_of(p: Prepared, chosen: list[tuple[int, int, Place, float]]) -> Any:
    """Return the plan of (job, option, place, start); starts are rounded, so that only their order counts."""
    option, start = np.full(p.n, -1), np.zeros(p.n)
    held: list[list[tuple[int, int]]] = [[] for _ in range(p.n)]
    for j, o, place, at in chosen:
        option[j], start[j], held[j] = o, at, list(place)
    return seated(p, option, start, held)


def schedule_cpsat(run: Run) -> None:
    """Minimise the goal: start[j] and end[j] of job j, x[m] it runs by way m, out[j] it is left out."""
    p = prepare(run.problem)
    scale, model = Scale(p), cp_model.CpModel()
    start, end, out, cost = [], [], [], []
    for j in range(p.n):
        due = scale.horizon if np.isinf(p.deadline[j]) else min(scale.horizon, scale.down(float(p.deadline[j])))
        first = scale.down(float(p.release[j]))
        start.append(model.new_int_var(first, max(first, due), ""))
        end.append(model.new_int_var(first, max(first, due), ""))
        out.append(model.new_bool_var("") if np.isfinite(p.price[j]) else 0)
        cost.append(scale.price[j] * out[j])
        if not p.makespan:
            cost.append(scale.slope[j] * (end[j] - scale.up(float(p.release[j]))))
            if np.isfinite(p.price[j]):
                model.add(end[j] == scale.up(float(p.release[j]))).only_enforce_if(out[j])
    ways = modes(p)
    x = [model.new_bool_var("") for _ in ways]
    held: list[list[tuple[Any, int]]] = [[] for _ in range(p.nodes)]
    mine: list[list[Any]] = [[y] if isinstance(y, cp_model.IntVar) else [] for y in out]
    for literal, (j, o, place) in zip(x, ways, strict=True):
        mine[j].append(literal)
        ticks = scale.down(float(p.seconds[o]))
        interval = model.new_optional_interval_var(start[j], ticks, end[j], literal, "")
        for v, gpus in place if ticks else ():
            held[v].append((interval, gpus))
    for literals in mine:
        model.add_exactly_one(literals)
    for node in held:
        model.add_cumulative([interval for interval, _ in node], [gpus for _, gpus in node], p.per)
    if p.makespan:
        last = model.new_int_var(0, scale.horizon, "")
        model.add_max_equality(last, end)
        cost.append(scale.slope[0] * last)
    model.minimize(sum(cost))

    def plan(solution: Any) -> Any:
        chosen = [way for literal, way in zip(x, ways, strict=True) if solution.boolean_value(literal)]
        return plan_of(p, [(j, o, place, solution.value(start[j])) for j, o, place in chosen])

    run_cpsat(ShiftedRun(run, p), model, 1.0 / scale.unit, plan, scale.constant)


def schedule_milp(run: Run, solve: Solve) -> None:
    """Minimise the goal by the time-indexed programme, which is also gangplan's own `milp_time`."""
    p = prepare(run.problem)
    if not suits(p):
        raise NotImplementedError("times are not whole ticks, or too many")
    shifted = ShiftedRun(run, p)
    model = TimeIndexed(shifted, p)
    solve(shifted, model.lp, model.unit, model.plan)
