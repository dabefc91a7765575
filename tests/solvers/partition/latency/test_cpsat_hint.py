"""Warm starts: the hint is complete, and CP-SAT takes it."""

from __future__ import annotations

from ortools.sat.python import cp_model

from gangplan.instances import LatencyProblem, with_objective
from gangplan.instances.generators import generate
from gangplan.solvers import Run
from gangplan.solvers.partition.latency.cpsat import LatencyModel
from gangplan.solvers.partition.latency.reduced import reduce
from gangplan.solvers.partition.latency.sequence import greedy
from gangplan.solvers.partition.tiny import random_latency as random_problem
from tests.seeds import some


def _hinted(problem: LatencyProblem) -> tuple[Run, LatencyModel] | None:
    run = Run(problem, time_limit=60)
    r = reduce(problem)  # without the bound of `prepare`, which may be the proof already
    greedy(run, r)
    return None if run.plan is None or run.stopped else (run, LatencyModel(r, run))


def _accepted(run: Run, model: LatencyModel) -> None:
    proto = model.model.proto
    hinted = set(proto.solution_hint.vars)
    assert hinted == set(range(len(proto.variables)))
    solver = cp_model.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    solver.parameters.num_workers = 1
    assert solver.solve(model.model) == cp_model.OPTIMAL
    assert run.objective is not None
    # seconds are rounded down, each once
    most = len(model.r.nets) * len(model.calls) + 2 * model.r.n_items
    assert run.objective * model.scale - most <= solver.objective_value <= run.objective * model.scale + 1


def test_hint_is_complete_and_accepted() -> None:
    """Every variable has a hint, and all hints together are a solution with the value of the plan."""
    seeds = some(range(150), 5)
    hints = [found for seed in seeds if (found := _hinted(random_problem(seed))) is not None]
    assert len(hints) > len(seeds) // 3
    for run, model in hints:
        _accepted(run, model)


def test_hint_of_a_network() -> None:
    """The same on a network with host ops between calls."""
    problem = with_objective(generate("moe", training=False, devices=3), "latency")
    found = _hinted(problem)
    assert found is not None
    _accepted(*found)


def test_first_solution_is_the_hint() -> None:
    """The search starts at the hinted plan: its first solution is as good."""
    for seed in some(range(40), 3):
        found = _hinted(random_problem(seed, ops=9))
        if found is None:
            continue
        run, model = found
        values: list[float] = []

        class Watch(cp_model.CpSolverSolutionCallback):
            def on_solution_callback(self) -> None:
                values.append(self.objective_value)  # noqa: B023

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.presolve_inclusion_work_limit = 0
        solver.solve(model.model, Watch())
        assert run.objective is not None
        assert values[0] <= run.objective * model.scale + 1
