"""Annealing: what it makes is what solvers make of it, it keeps what must be kept, and ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import Cluster, DeviceType, StepPlan, StepProblem, verify
from gangplan.instances.generators.families import make
from gangplan.solvers import native
from gangplan.solvers.partition.step.methods import METHODS, SUITE
from gangplan.solvers.partition.step.model import Prepared, prepare
from gangplan.solvers.partition.step.timing import Workroom, placed
from gangplan.solvers.run import Run

from .conftest import SOURCE, found_by_heft, graph

FAMILIES = ("layered", "fork_join", "series_parallel", "pipeline")


def problem(seed: int, ops: int = 60) -> StepProblem:
    """Return a problem, every second one with contention."""
    found = make("step", FAMILIES[seed % 4], seed, ops)
    assert isinstance(found, StepProblem)
    return replace(found, contention=seed % 2 == 1)


def search(seed: int) -> tuple[Prepared, Any]:
    """Return a problem and a search from HEFT's plan, run from the source, if there is one."""
    found = found_by_heft(problem(seed))
    if found is None:
        pytest.skip("HEFT finds no plan")
    p, where, start = found
    return p, SOURCE.Annealing(SOURCE.Workroom(p), where, start)


@pytest.mark.parametrize("seed", range(6))
def test_lengths_are_those_of_the_decoder(seed: int) -> None:
    """Devices and order of the best plan give, decoded as solvers do, the very makespan that the search has seen."""
    p, s = search(seed)
    for i in range(5):
        SOURCE.anneal(s, 100 * i, 500, 1e-2, 1_000, i)
        q = prepare(p.problem)
        plan = placed(q, Workroom(q), np.array(s.best_where), np.array(s.best_order))
        assert verify(p.problem, plan).objective == pytest.approx(s.best, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_moves_keep_memory_and_can_be_taken_back(seed: int) -> None:
    """After each move devices hold what they have room for, and taken back it leaves no trace."""
    p, s = search(seed)
    s.random, found = native.Random(seed), 0
    for _ in range(300):
        before, device = s.where.copy(), s.room.device.copy()
        if SOURCE.propose(p.arrays, s):
            found += 1
            assert (np.bincount(s.where, p.group_memory, p.n_devices) <= p.room * (1 + 1e-12)).all()
            assert np.isfinite(p.arrays.work[s.where, np.arange(p.n_groups)]).all()
            assert (s.room.device == s.where[p.group_of]).all()
        SOURCE.take_back(p.arrays, s)
        assert (s.where == before).all() and (s.room.device == device).all()
    assert found > 20


@pytest.mark.usefixtures("processor_clock")
@pytest.mark.parametrize("seed", range(4))
def test_never_worse_than_the_start(seed: int) -> None:
    """Every plan is feasible and better than the one before, from the first plan on."""
    asked = problem(seed, 100)
    start = solve(asked, time_limit=10, method="heft", workers=1)
    if start.plan is None:
        pytest.skip("HEFT finds no plan")
    result = solve(asked, time_limit=0.3, method="local_search", workers=1, initial=start.plan)
    lengths = [found.objective for found in result.trace]
    assert lengths == sorted(set(lengths), reverse=True) and lengths[0] == start.objective
    assert result.plan is not None and verify(asked, result.plan).ok
    assert result.wall_seconds < 10


def test_one_seed_one_trace() -> None:
    """Where the search ends by itself, the same seed gives the same plans, and another seed others."""
    asked = problem(4, 100)
    runs = [solve(asked, time_limit=60, method="local_search", workers=1, seed=seed) for seed in (1, 1, 2)]
    assert {run.stop_reason for run in runs} <= {"methods exhausted", "claimed"}
    same, again, other = ([found.objective for found in run.trace] for run in runs)
    assert same == again != other


@pytest.mark.parametrize("contention", [False, True])
def test_a_plan_on_devices_that_are_left_out(contention: bool) -> None:
    """Of thousands of devices the last are left out: a plan that is given there is not where a search begins."""
    many = Cluster.flat((DeviceType("gpu"), 2100), bandwidth=1.0)
    problem = StepProblem(graph([1.0] * 3, [(0, 1), (1, 2)], output=0.3), many, contention=contention)
    run = Run(problem, time_limit=10.0)
    p = SUITE.prepare(run)
    run.offer(StepPlan(problem.graph.names, np.full(3, 2099), np.arange(3) * 1.5), "somebody")
    METHODS["local_search"].function(run, p)
    assert p.partial and [found.by for found in run.trace] == ["somebody"]
