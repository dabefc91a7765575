"""HiGHS, silent, and with as many threads as each solver wants.

1.16 greets on standard output as soon as a solver is made, before it can be told to be quiet; and what has solved with
another number of threads before leaves a thread of the caller's with a scheduler that refuses the next solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any

import highspy
import numpy as np

from gangplan.instances import verify

from .plain import PlainRows, Values
from .processes import can_fork, forked, interruptible

TOLERANCE = 1e-7
"""On rows and whole numbers: with 1e-8 HiGHS 1.14 cuts off more optima; 1e-6, its default, shows in bounds."""
APT = 0.5
"""Tolerances are relative to the unit: if the optimum is below so much of it, solve again in a smaller one."""
_ROUNDING = 1e-5
"""What solvers may be wrong by in a unit that is too large: HiGHS 1.16 was by 2e-6 on latency 1724 of `nasty`."""
_Status = highspy.HighsModelStatus
_NONE = _Status.kInfeasible, _Status.kUnboundedOrInfeasible, _Status.kUnbounded
_SOME = _Status.kOptimal, _Status.kObjectiveBound, _Status.kObjectiveTarget, _Status.kInterrupt, _Status.kTimeLimit

_enable = highspy.Highs.enableCallbacks


def _silently(solver: highspy.Highs) -> None:
    solver.silent()
    _enable(solver)  # type: ignore[no-untyped-call]
    solver.silent(False)
    solver.resetThreadScheduler(True)


highspy.Highs.enableCallbacks = _silently  # type: ignore[method-assign]  # others make solvers too


def new_highs(**options: Any) -> highspy.Highs:
    """Return a solver with options of HiGHS."""
    solver = highspy.Highs()
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver


def loaded(
    cost: Sequence[Any], low: Sequence[Any], high: Sequence[Any], rows: Sequence[tuple[Any, Any, dict[int, Any]]],
    whole: Sequence[bool] = (), **options: Any,
) -> Any:  # fmt: skip
    """Return a solver that has a programme to minimise, its numbers as floats.

    Args:
        rows: (least, most, terms), `None` where there is no limit.
        whole: whether each column is a whole number, by default none.
    """
    solver, lp = new_highs(output_flag=False, **options), highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), len(rows)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = (np.array(x, dtype=float) for x in (cost, low, high))
    lp.row_lower_ = np.array([-inf if least is None else float(least) for least, _, _ in rows])
    lp.row_upper_ = np.array([inf if most is None else float(most) for _, most, _ in rows])
    lp.integrality_ = [highspy.HighsVarType.kInteger if x else highspy.HighsVarType.kContinuous for x in whole]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(terms) for _, _, terms in rows)]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([j for _, _, terms in rows for j in terms], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([float(x) for _, _, terms in rows for x in terms.values()])
    solver.passModel(lp)
    return solver


Answer = tuple[bool, float, list[float]]
"""Whether there is no solution, the bound, and the value of each column, none if there is none."""


def minimise_rows(rows: PlainRows, plan: Callable[[Values], Any], by: str = "plain_milp") -> None:
    """Solve a model, offer the plan and record the bound.

    Presolve of HiGHS 1.16 calls throughput 3327 of `nasty` infeasible, which it is not: it only confirms.

    Args:
        plan: makes a plan of what gives the values of variables, `None` if they are none when rounded.
    """
    run, unit = rows.run, rows.unit
    if run.stopped:
        return
    found = _solve(rows, "off")
    if found[0]:
        found = _solve(rows, "on")
    if bounded(rows, plan, found, by):
        apt = run.objective is not None and run.objective >= unit * APT
        run.raise_bound((found[1] - (TOLERANCE if apt else _ROUNDING)) * unit, by)


def bounded(rows: PlainRows, plan: Callable[[Values], Any], found: Answer, by: str) -> bool:
    """Offer the plan of an answer, or record that there is none; return whether it has a bound."""
    infeasible, bound, values = found
    if infeasible and rows.run.plan is None:
        rows.run.prove_infeasible(by)
    if values and not infeasible:
        made = plan(lambda x: x.at(values.__getitem__))
        if made is not None and verify(rows.run.problem, made).ok:
            rows.run.offer(made, by)
        else:
            rows.run.note(f"{by}: the plan found is feasible only within the solver's tolerances, so it is dropped")
    return not infeasible and isfinite(bound)


def programme(rows: PlainRows, **options: Any) -> tuple[Any, list[int]]:
    """Return a solver that has a model, and the columns that it has, those that are in use by their labels."""
    used = set(rows.goal.terms).union(*(row.terms for row in rows.lines))
    order = sorted(used, key=lambda j: rows.columns[j].label)
    place, columns = {j: i for i, j in enumerate(order)}, [rows.columns[j] for j in order]
    lines = [(row.least, row.most, {place[j]: a for j, a in row.terms.items()}) for row in rows.lines]
    ends = [x.low for x in columns], [x.high for x in columns]
    costs = [rows.goal.terms.get(j, 0.0) for j in order]
    return loaded(costs, *ends, lines, [x.whole for x in columns], **options), order


def answer(rows: PlainRows, **options: Any) -> Answer:
    """Return what HiGHS with some options says of a model, in what is left of its run."""
    run = rows.run
    solver, order = programme(rows, threads=run.workers, random_seed=run.seed, time_limit=run.remaining(), **options)
    solver.HandleUserInterrupt = True
    interruptible(solver.run, solver.cancelSolve, lambda: run.stopped)
    status, bound = solver.getModelStatus(), float(solver.getInfo().mip_dual_bound)
    values = [float(column.low) for column in rows.columns]
    for j, value in zip(order, solver.getSolution().col_value, strict=True):
        values[j] = value
    solved = status in _SOME and isfinite(solver.getObjectiveValue())
    return status in _NONE, bound, values if solved else []


def _solve(rows: PlainRows, presolve: str) -> Answer:
    """Return the answer with the options that keep it right: HiGHS stops at a gap of 1e-4 and calls that optimal."""
    options = {
        "mip_rel_gap": 0.0, "mip_abs_gap": 1e-9, "mip_feasibility_tolerance": TOLERANCE,
        "primal_feasibility_tolerance": TOLERANCE, "presolve": presolve,
    }  # fmt: skip
    if not can_fork():
        return answer(rows, **options)
    # in the first relaxation HiGHS hears nothing: neither the clock nor us
    return forked(lambda: answer(rows, **options), lambda: rows.run.stopped) or (False, -inf, [])
