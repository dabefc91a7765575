"""Placement by CP-SAT, warm-started with the best plan."""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import Any

from ortools.sat.python import cp_model

from gangplan.instances import verify
from gangplan.instances.placement import PlacementPlan

from ..cpsat_solver import cpsat_solver, minimise, search
from ..run import Run
from .build import build
from .cpsat_goals import goal_of
from .cpsat_model import Assignment
from .gpu_assignment import as_plan, rows_of
from .policies import best_fit, least_interference, topology
from .prepare import Batch, Rows

_COMPLETION = 2.0
"""Seconds to find the value of every variable of a plan that is known."""


def cpsat(run: Run, batch: Batch) -> None:
    """Minimise the goal with CP-SAT; offers plans as they come, raises the bound."""
    if run.plan is None:
        build(run, batch, (topology, best_fit, least_interference), "cpsat")
    if run.plan is None and not run.stopped:
        # a model with costs has a largest one: that there is no plan is for one without them to say
        plan = Assignment(batch)
        if (
            search(run, suitable_solver(run), plan.model, partial(_plan, run, batch, plan), "cpsat")
            == cp_model.INFEASIBLE
        ):
            run.prove_infeasible()
    if run.stopped:
        return
    with run.phase("cpsat model"):
        plan = Assignment(batch)
        cost = goal_of(plan, run.objective)
        if run.bound is not None and isfinite(run.bound):
            plan.model.add(cost.total >= int(run.bound * cost.units) - slack(batch))
        if run.plan is not None and not run.stopped:
            hint(run, batch, plan)
    if run.stopped:
        return
    with run.phase("cpsat"):
        minimise(run, suitable_solver(run), plan.model, cost.units, partial(_plan, run, batch, plan))


def slack(batch: Batch) -> int:
    """Return by how many units rounding may have made a plan look cheaper than it is."""
    return 16 * len(batch.jobs) * (2 + len(batch.bandwidth))


def hint(run: Run, batch: Batch, plan: Assignment) -> None:
    """Give the model the value of every variable of the run's plan to start from."""
    rows, packing = _read(batch, run.plan)
    fixed = plan.model.clone()
    for index, value in _fixing(plan, rows, packing):
        fixed.add(fixed.get_int_var_from_proto_index(index) == value)
    solver = suitable_solver(run)
    solver.parameters.max_time_in_seconds = min(_COMPLETION, run.remaining())
    if solver.solve(fixed) in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        plan.model.clear_hints()  # type: ignore[no-untyped-call]
        plan.model.proto.solution_hint.vars.extend(range(len(plan.model.proto.variables)))
        plan.model.proto.solution_hint.values.extend(solver.response_proto.solution)
    else:
        run.note("cpsat: its model does not take the plan it should start from")


def _fixing(plan: Assignment, rows: list[Rows], packing: Any) -> list[tuple[int, int]]:
    """Return (variable, value) of all that says where tasks are."""
    found: list[tuple[int, int]] = []
    for j, row in enumerate(rows):
        for task, counts in enumerate((plan.w[j], plan.p[j])):
            found += [(x.index, row.get(n, (0, 0))[task]) for n, x in counts.items()]
        for n, cards in plan.card[j].items():
            held = packing.get(n, [])
            found += [(x.index, held[g].get(j, 0) if g < len(held) else 0) for g, x in enumerate(cards)]
    return found


def _read(batch: Batch, plan: PlacementPlan) -> tuple[list[Rows], dict[int, list[dict[int, int]]]]:
    """Return the rows of each job and, of nodes with shared GPUs, what each holds, fullest numbering first."""
    cards: dict[int, dict[int, dict[int, int]]] = {}
    for r, g in zip(plan.grant_row.tolist(), plan.grant_gpu.tolist(), strict=True):
        j, n = int(plan.job[r]), int(plan.node[r])
        if batch.share[j] < 1:
            held = cards.setdefault(n, {}).setdefault(g, {})
            held[j] = held.get(j, 0) + 1
    return rows_of(batch, plan), {n: list(held.values()) for n, held in cards.items()}


def _plan(run: Run, batch: Batch, plan: Assignment, value: Any) -> PlacementPlan | None:
    found = as_plan(batch, plan.rows(value), lambda n: plan.packing(value, n))
    # rows of cores and bytes are rounded: what only they allow is no plan
    return found if verify(run.problem, found).ok else None


def suitable_solver(run: Run) -> Any:
    """Return a solver for what is left of `run`, set up as models of placement need."""
    solver = cpsat_solver(run)
    if run.problem.goal == "throughput":
        # with it, OR-Tools 9.15 now and then calls models with divisions infeasible that are not
        solver.parameters.cp_model_probing_level = 0
    return solver
