"""Limits that set-up alone would break: it looks at the clock, and a draft needs none of it."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import (
    Cluster,
    DeviceType,
    LatencyProblem,
    OpGraph,
    PartitionProblem,
    StepProblem,
    verify,
    with_objective,
)
from gangplan.instances.generators import generate
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.draft import draft
from gangplan.solvers.partition.step.model import prepare
from gangplan.solvers.processes import can_fork, forked

KINDS = [PartitionProblem, LatencyProblem, StepProblem]


def chain(kind: type, ops: int, devices: int = 4, *, memory: float | None = None, branch: bool = False) -> Any:
    """Return a chain of equal ops, or one in which every second op is passed by."""
    u = np.arange(ops - 1, dtype=np.int32)
    v = u + 1
    if branch:
        u, v = np.concatenate([u, u[:-1:2]]), np.concatenate([v, u[:-1:2] + 2])
    none = np.full(ops, -1)
    graph = OpGraph(
        tuple(f"op{i}" for i in range(ops)),
        ("gpu",),
        np.full((1, ops), 1e-3),
        np.ones(ops),
        np.zeros(ops),
        np.ones(ops),
        u,
        v,
        np.ones(len(u)),
        none,
        none,
        np.zeros(ops, dtype=bool),
    )
    return kind(graph, Cluster.flat((DeviceType("gpu", memory=memory), devices), bandwidth=1e5))


@pytest.mark.parametrize("kind", [PartitionProblem, LatencyProblem])
def test_preparing_looks_at_the_clock(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late the time runs out while a long chain is prepared, a few hundred turns later it ends."""
    problem, looks = chain(kind, 6_000, branch=True), [0]
    tools = suite(problem.objective)

    def stopped(run: Run) -> bool:
        looks[0] += 1
        return looks[0] >= last

    monkeypatch.setattr(Run, "stopped", property(stopped))
    for last in (1, 20, 60):
        looks[0] = 0
        with pytest.raises(TimeoutError):
            tools.prepare(Run(problem, time_limit=60))
        assert looks[0] == last


@pytest.mark.parametrize(
    ("kind", "method"),
    [(kind, m) for kind in KINDS for m in ("auto", *suite(kind.objective).methods) if m in ("auto", "cpsat", "milp")],
)
def test_a_plan_comes_at_any_limit(kind: type, method: str) -> None:
    """Where no method has the time for anything there is a draft, verified, also where memory asks for many devices."""
    for memory in (None, 2_500.0):
        problem = chain(kind, 20_000, 16, memory=memory)
        result = solve(problem, time_limit=0.02, method=method, workers=1)
        assert result.plan is not None
        assert verify(problem, result.plan).ok


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective_seed", range(20))
def test_a_draft_is_a_plan(kind: type, objective_seed: int) -> None:
    """A draft of a random problem is feasible, and comes wherever one device holds all."""
    tools = suite(kind.objective)  # type: ignore[attr-defined]
    problem = tools.random_problem(objective_seed, tools.variants[0])
    run = Run(problem, time_limit=60)
    draft(run)
    able = np.isfinite(problem.time().sum(axis=1))[problem.cluster.type_of]
    whole = able & (problem.graph.memory.sum() <= problem.capacity())
    assert run.plan is not None or not whole.any()
    assert run.plan is None or verify(problem, run.plan).ok


@pytest.mark.parametrize("contention", [False, True])
def test_a_draft_of_a_step_sends_in_time(contention: bool) -> None:
    """Cut by memory, ops wait for what is sent, one transfer after the other."""
    problem = chain(StepProblem, 40, 5, memory=9.0, branch=True)
    problem = StepProblem(problem.graph, problem.cluster, contention)
    run = Run(problem, time_limit=60)
    draft(run)
    assert run.plan is not None
    assert len(set(run.plan.device.tolist())) == 5


def test_a_hundred_thousand_devices() -> None:
    """Of very many devices the first are taken, for plans and not for proofs."""
    problem = chain(StepProblem, 50, 100_000)
    p = prepare(problem)
    assert p.partial
    assert p.level.shape == (2048, 2048)
    result = solve(problem, time_limit=20, method="heft")
    assert (result.status, result.bound) == ("FEASIBLE", None)
    assert solve(problem, time_limit=20, method="bounds").bound is None


def test_twins_without_comparing_rows() -> None:
    """Devices are twins where all others are as far from the one as from the other."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        problem = suite("step").random_problem(int(rng.integers(1000)), "")
        p = prepare(problem)
        level, k = p.level, p.n_devices
        for a in range(k):
            for b in range(a):
                others = [d for d in range(k) if d not in (a, b)]
                like = (level[a, others] == level[b, others]).all() and p.type_of[a] == p.type_of[b]
                assert (p.twins[a] == p.twins[b]) == like


def _forever() -> None:
    while True:
        sum(range(1000))


@pytest.mark.skipif(not can_fork(), reason="no forks on this system")
def test_a_deaf_solver_is_killed() -> None:
    """What does not end is killed once the time is up, what crashes says nothing, errors come through."""
    looks = iter(range(10))
    assert forked(_forever, lambda: next(looks) > 1) is None
    assert forked(lambda: __import__("os")._exit(3), lambda: False) is None
    assert forked(lambda: 7, lambda: False) == 7
    with pytest.raises(ZeroDivisionError):
        forked(lambda: 1 // 0, lambda: False)


def test_a_draft_of_stages_fills_them_from_the_end() -> None:
    """Where no device holds all ops there is a chain of stages, the first of which has most samples under way."""
    problem = with_objective(generate("gpt", layers=24, devices=16, memory=8e9), "stages")
    assert float(problem.need()[0].sum()) > 8e9
    run = Run(problem, time_limit=60)
    draft(run)
    assert run.plan is not None and len(run.plan.degree) > 2


@pytest.mark.skipif(not can_fork(), reason="no forks on this system")
def test_a_fork_waits_for_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that forks while another thread imports a module can import it too, and does not wait forever."""
    (tmp_path / "gangplan_slow.py").write_text("import time\ntime.sleep(1.0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=import_module, args=("gangplan_slow",))
    thread.start()
    while "gangplan_slow" not in sys.modules:
        time.sleep(0.001)
    until = time.perf_counter() + 30.0
    name = forked(lambda: import_module("gangplan_slow").__name__, lambda: time.perf_counter() > until)
    thread.join()
    del sys.modules["gangplan_slow"]
    assert name == "gangplan_slow"
