"""CP-SAT as all methods run it: the options that keep it right, plans handed over as they come, bounds in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ortools.sat.python import cp_model

from gangplan.instances import verify

from .plain import Cumulative, OptionalInterval, PlainRows, Values
from .processes import interruptible
from .run import OPTIMAL_GAP, Run

_MOST = 2**63 - 1
"""No limit, in CP-SAT."""
Value = Callable[[Any], int]
"""Gives the value of a variable or literal in a solution."""


def cpsat_solver(run: Run) -> Any:
    """Return a solver for what is left of `run`."""
    solver = solver_for(run.remaining(), run.workers, run.seed)
    # a gap that counts as none is for `run` to find, in seconds and without rounding
    solver.parameters.relative_gap_limit = run.target_gap if run.target_gap > OPTIMAL_GAP else 0.0
    return solver


def solver_for(seconds: float, workers: int, seed: int) -> Any:
    """Return a solver with the options that keep it right."""
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    solver.parameters.relative_gap_limit = 0.0
    solver.parameters.catch_sigint_signal = False
    # OR-Tools 9.15 adds 64-bit coefficients up in 32 bits in this step, drops enforcement literals and "proves"
    # wrong optima (or-tools issue 5293)
    solver.parameters.presolve_inclusion_work_limit = 0
    # its dual reductions lose optima (latency 536 of tests/referee, placement 2473 of `nasty`), and without probing
    # all plans of others, which it then calls infeasible
    solver.parameters.keep_all_feasible_solutions_in_presolve = True
    return solver


def minimise(
    run: Run,
    solver: Any,
    model: Any,
    scale: float,
    plan: Callable[[Value], Any],
    constant: float = 0.0,
    *,
    by: str = "cpsat",
) -> None:
    """Solve `model` to the end of `run`: offer every plan, raise the bound, prove that there is no plan.

    Args:
        model: its objective is `scale` times the seconds less `constant`, rounded down.
        scale: integers a second.
        plan: makes a plan of a solution, `None` if that holds only within the rounding of sizes.
        constant: seconds that the model leaves out.
    """
    solver.best_bound_callback = lambda value: run.raise_bound(value / scale + constant, by)
    status = search(run, solver, model, plan, by)
    if status == cp_model.INFEASIBLE and run.plan is None:
        run.prove_infeasible(by)
    # a search that was stopped before it had a bound says 0, which a goal below 0 refutes
    bounded = status == cp_model.UNKNOWN and solver.best_objective_bound != 0
    if bounded or status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        run.raise_bound(solver.best_objective_bound / scale + constant, by)
    if status in (cp_model.FEASIBLE, cp_model.UNKNOWN) and run.stop_reason is None:
        run.stop_reason = "time limit"  # its own clock may run out a moment before ours


def search(run: Run, solver: Any, model: Any, plan: Callable[[Value], Any], by: str) -> Any:
    """Solve `model`, offer every plan found, and return CP-SAT's status."""
    return interruptible(lambda: solver.solve(model, _Watcher(run, plan, by)), solver.stop_search, lambda: run.stopped)


class _Watcher(cp_model.CpSolverSolutionCallback):
    def __init__(self, run: Run, plan: Callable[[Value], Any], by: str) -> None:
        super().__init__()
        self.run, self.plan, self.by = run, plan, by

    def on_solution_callback(self) -> None:
        plan = self.plan(self.value)
        if plan is not None:
            self.run.offer(plan, self.by)
        if self.run.stop_reason is not None:
            self.stop_search()


def minimise_rows(
    rows: PlainRows,
    plan: Callable[[Values], Any],
    by: str = "plain_cpsat",
    *,
    instantiate: bool = True,
    linear: bool = True,
) -> None:
    """Minimise a plain model.

    Args:
        plan: makes a plan of what gives the values of variables.
        instantiate: whether CP-SAT decides on variables that take their least values once the rest is fixed.
        linear: whether its first worker, and that of one, solves linear programmes.
    """
    run = rows.run
    if run.stopped:
        return
    model = model_of(rows)

    def checked(value: Value) -> Any:
        made = plan(lambda x: x.at(lambda j: value(model.get_int_var_from_proto_index(j))))
        if made is not None and verify(run.problem, made).ok:
            return made
        run.note(f"{by}: a plan is feasible only within the rounding of the model, so it is dropped")
        return None

    solver = cpsat_solver(run)
    solver.parameters.instantiate_all_variables = instantiate
    if not linear:
        solver.parameters.linearization_level = 0
        solver.parameters.extra_subsolvers.append("no_lp")  # the first of several workers
    minimise(run, solver, model, rows.scale, checked, rows.constant, by=by)


def model_of(rows: PlainRows) -> cp_model.CpModel:
    """Return a plain model: its variables are the columns, its constraints the entries, called by their letters."""
    model, made = cp_model.CpModel(), list[Any]()
    x = [model.new_int_var(column.low, column.high, column.letter) for column in rows.columns]

    def sum_of(terms: dict[int, int], constant: int = 0) -> Any:
        return cp_model.LinearExpr.weighted_sum([x[j] for j in terms], [*terms.values()]) + constant

    for entry in rows.entries:
        given: list[Any] = (
            [] if isinstance(entry, Cumulative) else [x[j] if j >= 0 else ~x[-j - 1] for j in entry.given]
        )
        if isinstance(entry, OptionalInterval):
            start, end = (sum_of(end.terms, end.constant) for end in (entry.start, entry.end))
            made.append(model.new_optional_interval_var(start, entry.size, end, given[0], entry.letter))
            continue
        if isinstance(entry, Cumulative):
            held = [made[i] for i in entry.intervals], entry.demands, entry.capacity
            made.append(model.add_cumulative(*held) if entry.demands else model.add_no_overlap(held[0]))
        elif entry.one:
            made.append(model.add_exactly_one(x[j] for j in entry.terms))
        elif entry.terms:
            least, most = (
                -_MOST - 1 if entry.least is None else entry.least,
                _MOST if entry.most is None else entry.most,
            )
            made.append(model.add_linear_constraint(sum_of(entry.terms), least, most))
            made[-1].only_enforce_if(*given)
        else:
            made.append(model.add_bool_or([~literal for literal in given]))
        made[-1].with_name(entry.letter)
    for found, dividend, divisor in rows.quotients:
        model.add_division_equality(sum_of(found.terms), dividend, sum_of(divisor.terms))
    for j, value in rows.start.items():
        model.add_hint(x[j], value)
    model.minimize(sum_of(rows.goal.terms, rows.goal.constant))
    return model
