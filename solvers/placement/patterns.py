"""Exact placement by patterns of nodes: column generation for the bound, CP-SAT to choose among those that matter."""

from __future__ import annotations

from ortools.sat.python import cp_model

from ..processes import interruptible
from ..run import Run
from .columns import Columns, Pattern
from .cpsat import suitable_solver
from .gpu_assignment import as_plan, rows_of
from .node_assignment import assign_nodes, place_servers, swap_nodes
from .pattern_model import UNITS, PatternModel
from .prepare import Batch, Rows
from .state import State

_MOST = 30_000
"""Patterns of a model."""
_SIZES = 1500, 4000, 10_000
"""Columns of ever larger models where all patterns within a margin are too many."""
_SHARE = 0.6
_PORTFOLIO = 8
"""Workers from which on CP-SAT runs all of its strategies; of fewer, the one that sees the whole LP is done first."""
_FIRST = 0.0025
"""The first margin as a share of the bound; each is twice the one before."""


def patterns(run: Run, batch: Batch) -> None:
    """Raise the bound by column generation, then choose among all patterns whose reduced cost is within the gap.

    A plan that beats the best one uses no pattern with a reduced cost beyond the gap; if all within a smaller margin
    are looked at, a better plan costs no less than the bound plus that margin.
    """
    with run.phase("columns"):
        columns = Columns(run, batch)
        if run.plan is not None:
            columns.start(rows_of(batch, run.plan))
        with run.share(_SHARE):
            columns.solve()
    if run.stopped or columns.best is None:
        return
    margin, last = _FIRST * max(1.0, abs(columns.bound)), 0.0
    while not run.stopped:
        gap = float("inf") if columns.objective is None else columns.objective - columns.bound
        margin = min(margin, gap * (1 + 1e-9))
        with run.phase("patterns within"):
            found = columns.within(margin, _MOST)
        if found is None and margin > 2 * last > 0:
            margin = 2 * last  # the gap has too many, what is nearer may not
            continue
        if found is None:
            _restricted(run, columns)
            return
        with run.phase("patterns"):
            if not _choose(run, columns, found, margin) or margin >= gap:
                return
        last = margin
        # twice what is nearly the gap would be most of the last model's work, done twice
        margin = 2 * margin if 3 * margin < gap else gap


def _restricted(run: Run, columns: Columns) -> None:
    """Choose among the columns there are, the best first, where all within a margin are too many."""
    for size in _SIZES:
        if run.stopped or size > 2 * len(columns.patterns):
            return
        with run.phase("patterns restricted"), run.share(_SHARE):
            _choose(run, columns, columns.nearest(size), 0.0)


def _choose(run: Run, columns: Columns, found: list[Pattern], margin: float) -> bool:
    """Choose among patterns; return whether the model was solved to its end."""
    batch = columns.batch
    model = PatternModel(columns, found)
    state = State(batch)

    class Watcher(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            chosen = [t for t, x in zip(found, model.x, strict=True) for _ in range(self.value(x))]
            for evenly in (False, True):
                _offer(run, columns, state, assign_nodes(columns, chosen, evenly))

    beyond = columns.bound + margin

    def better(bound: float) -> None:
        value = min(bound / UNITS, beyond)
        if columns.objective is not None:
            value = min(value, columns.objective)
        columns.raise_bound(value - 1e-9, "patterns")

    solver = suitable_solver(run)
    solver.parameters.relative_gap_limit = 0.0  # an end of the search is to be one
    solver.parameters.linearization_level = 2
    if run.workers < _PORTFOLIO:
        solver.parameters.num_workers = 1
    solver.best_bound_callback = better
    if columns.objective is not None:
        held = columns.held(rows_of(columns.batch, run.plan))
        for t, x in zip(found, model.x, strict=True):
            model.model.add_hint(x, held[t.kind, t.options])
        model.model.add(model.total <= int(columns.objective * UNITS) + 1)
    status = interruptible(lambda: solver.solve(model.model, Watcher()), solver.stop_search, lambda: run.stopped)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        better(solver.best_objective_bound)
    elif status == cp_model.INFEASIBLE and columns.objective is not None:
        better(columns.objective * UNITS)
    return status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)


def _offer(run: Run, columns: Columns, state: State, rows: list[Rows]) -> None:
    state.restore(rows)
    if not place_servers(state) or not state.complete():
        return
    if columns.objective is None or swap_nodes(state, columns) < columns.objective:
        run.offer(as_plan(state.batch, state.rows, lambda n: state.held[n]), "patterns")
