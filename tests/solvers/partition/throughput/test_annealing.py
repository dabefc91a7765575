"""Annealing: the loads it keeps, the plans it offers, and its clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan import generate
from gangplan.instances import Cluster, DeviceType, OpGraph, PartitionPlan, PartitionProblem, verify
from gangplan.solvers import Run, native
from gangplan.solvers.partition import offer_draft
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.throughput import kernels
from gangplan.solvers.partition.throughput.annealing import local_search
from gangplan.solvers.partition.throughput.methods import METHODS, ReducedThroughput
from gangplan.solvers.partition.tiny import random_throughput as random_problem

from ...uncompiled import uncompiled

VARIANTS = ("contiguous", "convex", "free")


def searched(problem: PartitionProblem, seed: int = 0, workers: int = 1, seconds: float = 20.0) -> tuple[Run, Any]:
    """Return the run after a draft, or PipeDream's plan, and local search, and what the first plan was worth."""
    run, reduced = Run(problem, time_limit=seconds, seed=seed, workers=workers), ReducedThroughput(problem)
    offer_draft(run)
    if run.plan is None:
        METHODS["pipedream"].run(run, reduced)
    start = run.objective
    local_search(run, reduced.own)
    return run, start


def layered(ops: int = 40, **options: Any) -> PartitionProblem:
    """Return a problem on which PipeDream's plan is not the best."""
    problem = generate("layered", ops=ops, layers=8, training=False, devices=4, seed=3, **options)
    assert isinstance(problem, PartitionProblem)
    return problem


@pytest.mark.parametrize("variant", VARIANTS)
def test_never_worse_and_feasible(variant: str) -> None:
    """On tiny problems in which all constraints bind the plan stays feasible and is never worse than the start."""
    better = 0
    for seed in range(60):
        problem = random_problem(seed, variant, ops=8)
        run, start = searched(problem, seed)
        if start is not None:
            assert run.objective is not None and run.objective <= start
            assert verify(problem, run.plan).ok  # memory, order and types
            better += run.objective < start
    assert better > 5


def test_is_mostly_at_the_optimum_of_tiny_problems() -> None:
    """What enumeration finds it finds too, but for a few that moves do not lead to."""
    found = []
    for seed in range(60):
        problem = random_problem(seed, ops=6)
        run, start = searched(problem)
        if start is not None and run.objective is not None:
            found.append(run.objective <= (optimum(problem) or 0.0) * (1 + 1e-9))
    assert np.mean(found) > 0.9


def test_seed_and_one_worker_say_what_is_found() -> None:
    """Two runs with one seed offer the same plans one after the other; two workers do so too."""
    for workers in (1, 2):
        a, b = (searched(layered(), seed=7, workers=workers)[0] for _ in range(2))
        assert a.stop_reason is None  # it ended by itself
        assert [x.objective for x in a.trace] == [x.objective for x in b.trace]
        assert a.objective < a.trace[0].objective * 0.99


@pytest.mark.usefixtures("processor_clock")
def test_stops_by_the_clock() -> None:
    """A large problem, which it would look at for much longer, is left when the time is up."""
    problem = layered(ops=400)
    searched(layered(), seconds=1.0)  # compiled code is loaded
    run, _ = searched(problem, seconds=0.3)
    assert run.stop_reason == "time limit" and run.seconds() < 10


def test_tight_memory_is_passed_through() -> None:
    """Two groups that fit nowhere else change places, though a plan between does not fit."""
    # 5, 4, 2 and 1 s, none before another; each device has room for two: a b | c d costs 9 and a d | b c 6
    none: Any = np.zeros(0, dtype=np.int32)
    graph = OpGraph(
        names=("a", "b", "c", "d"), device_types=("gpu",), time=np.array([[5.0, 4.0, 2.0, 1.0]]), memory=np.ones(4),
        parameter_bytes=np.zeros(4), activation_bytes=np.zeros(4), source=none, target=none, edge_bytes=np.zeros(0),
        colocation=np.full(4, -1), twin=np.full(4, -1), backward=np.zeros(4, dtype=bool),
    )  # fmt: skip
    problem = PartitionProblem(graph, Cluster.flat((DeviceType("gpu", memory=2.0), 2), bandwidth=1.0), "contiguous")
    run = Run(problem, time_limit=20)
    run.offer(PartitionPlan(graph.names, [0, 0, 1, 1], [0, 0, 1, 1]), "by hand")
    assert run.objective == 9.0
    local_search(run, ReducedThroughput(problem).own)
    assert run.objective == 6.0


SOURCE = uncompiled(native, kernels)
"""Where what kernels call can be called from here."""


def test_loads_are_kept_move_by_move() -> None:
    """After many moves loads, bytes and pins are what counting them anew gives."""
    q = ReducedThroughput(layered()).own
    data, rng = SOURCE.PipelineArrays(q), np.random.default_rng(0)
    plan = SOURCE.PipelineState(data, np.zeros(q.n_groups, dtype=np.int64), np.zeros(4, dtype=np.int64))
    SOURCE.count(data, plan)
    moved = 0
    for _ in range(500):
        g = int(rng.integers(q.n_groups))
        low, high = SOURCE.span(data, plan, g)
        to = int(rng.integers(low, high + 1))
        if to != plan.stage[g]:
            expected = SOURCE.loads(data, plan, g, to)
            old = int(plan.stage[g])
            SOURCE.put(data, plan, g, to)
            assert (plan.load[old], plan.load[to]) == expected
            moved += 1
    assert moved > 100
    kept = [array.copy() for array in (plan.held, plan.load, plan.used)]
    SOURCE.count(data, plan)
    for before, after in zip(kept, (plan.held, plan.load, plan.used), strict=True):
        assert np.allclose(before, after, rtol=1e-9)


def test_what_must_go_along_goes() -> None:
    """With a group all that comes after it in its stage goes to the next one, so that the order holds."""
    q = ReducedThroughput(layered(ops=12)).own
    data, tried = SOURCE.PipelineArrays(q), 0
    for g in range(q.n_groups):
        plan = SOURCE.PipelineState(data, np.zeros(q.n_groups, dtype=np.int64), np.zeros(4, dtype=np.int64))
        SOURCE.count(data, plan)
        plan.who[0], plan.mark[:] = g, -1
        some, must = SOURCE.along(data, plan, 1, 0), {g}
        for a, b in sorted(q.edges):
            must |= {b} if a in must else set()
        assert some == (len(must) if len(must) <= SOURCE.MOST else 0)
        for h in plan.who[:some].tolist():
            SOURCE.put(data, plan, h, 1)
        assert all(plan.stage[a] <= plan.stage[b] for a, b in q.edges)
        tried += some > 1
    assert tried


def test_a_plan_that_parts_what_is_merged() -> None:
    """From a draft, which knows of no groups, it goes on to pipelines, not to stages that turn back."""
    problem = generate("layered", ops=2000, layers=100, degree=2.5, devices=8, training=False, memory=1e15)
    run, reduced = Run(problem, time_limit=5.0), ReducedThroughput(problem)
    offer_draft(run)
    assert run.plan is not None
    first = np.unique(reduced.own.group_of, return_index=True)[1]
    assert (run.plan.device != run.plan.device[first][reduced.own.group_of]).any()
    with run.share(0.4):
        local_search(run, reduced.own)
    assert run.trace[-1].by == "local_search"
