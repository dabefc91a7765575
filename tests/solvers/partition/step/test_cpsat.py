"""CP-SAT for step time: each constraint on a case by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, Level, StepPlan, StepProblem, TreeTopology
from gangplan.instances.graph import with_backward
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.tiny import random_step as random_problem

from .conftest import cluster, graph

TOOLS = suite("step")


def solved(problem: StepProblem) -> Run:
    """Solve within a minute."""
    run = Run(problem, time_limit=60)
    prepared = TOOLS.prepare(run)
    if not run.infeasible:
        TOOLS.methods["cpsat"].run(run, prepared)
    return run


def check(problem: StepProblem, optimum: float) -> StepPlan:
    """Assert that the optimum is found and proved, and return the plan."""
    run = solved(problem)
    assert run.objective == pytest.approx(optimum, rel=1e-6)
    assert run.bound is None or run.bound <= optimum * (1 + 1e-6)
    assert run.stop_reason == "claimed"
    plan: StepPlan = run.plan
    return plan


def test_solvers_agree() -> None:
    """CP-SAT and enumeration find the same optimum of 100 tiny problems, or the same none."""
    none = 0
    for seed in range(100):
        problem = random_problem(seed)
        best = TOOLS.optimum(problem)
        run = solved(problem)
        assert run.stop_reason == "claimed", seed
        if best is None:
            assert run.infeasible, seed
        else:
            assert run.objective == pytest.approx(best, rel=1e-6), seed
        none += best is None
    assert 0 < none < 50


def test_one_at_a_time() -> None:
    """(D) three ops of 2 s on two devices take 4 s: two of them share a device, though nothing is sent."""
    plan = check(StepProblem(graph([2, 2, 2], []), cluster(2)), 4.0)
    assert len(set(plan.device.tolist())) == 2


def test_nothing_in_the_middle_of_an_op() -> None:
    """(D) an op of no time waits too: a device busy with b lets the colocated c start only before or after it.

    a (1 s) sends to c at once, which takes no time; c and b (4 s) share the only device b runs on. b needs nothing,
    so it starts at 0 and c follows at 4, then d (2 s) ends at 6; c at 1 needs b to start at 1: b ends at 5, d at 3.
    """
    problem = StepProblem(graph([1, 4, 0, 2], [(0, 2), (2, 3)], colocation=[-1, 0, 0, -1]), cluster(3))
    check(problem, 5.0)


def test_delay_by_level() -> None:
    """(P) with two servers of one device each, 1 byte takes 4 s; with one server of two it takes 1 s.

    a (1 s) feeds b and c (3 s each). On one device they take 7 s; apart within a server 1 + 1 + 3 = 5 s, and between
    servers 1 + 4 + 3 = 8 s, so then one device is best.
    """
    fork = graph([1, 3, 3], [(0, 1), (0, 2)], 1.0)
    check(StepProblem(fork, cluster(2)), 5.0)
    check(StepProblem(fork, cluster(2, servers=2)), 7.0)


def test_slow_inside_fast_between() -> None:
    """(P) nobody promises that delays grow with the level: here 1 byte takes 4 s in a server and 1 s between two."""
    fork = graph([1, 3, 3], [(0, 1), (0, 2)], 1.0)
    plan = check(StepProblem(fork, cluster(4, servers=2, near=0.25, far=1.0)), 5.0)
    assert set((plan.device // 2).tolist()) == {0, 1}


def test_memory() -> None:
    """(M) a chain of two ops of 2 bytes on devices of 3 has to be cut: 1 + 1 s and 1 s of sending; 2 s with 4 bytes."""
    chain = graph([1, 1], [(0, 1)], 1.0, memory=[2, 2])
    check(StepProblem(chain, cluster(2, memory=3)), 3.0)
    check(StepProblem(chain, cluster(2, memory=4)), 2.0)


def test_colocation() -> None:
    """(G) two ops of 2 s side by side take 2 s, and 4 s if they are of one class."""
    check(StepProblem(graph([2, 2], []), cluster(2)), 2.0)
    check(StepProblem(graph([2, 2], [], colocation=[0, 0]), cluster(2)), 4.0)


def test_types() -> None:
    """(A) an op that only the slow type runs is there, the other where it is fast: max(3, 1) s."""
    ops = graph([1, 1], [])
    ops = replace(ops, device_types=("gpu", "old"), time=np.array([[1, np.inf], [5, 3]]))
    kinds = (DeviceType("gpu"), DeviceType("old"))
    level = TreeTopology.regular((Level("server", 1.0),), (2,))
    plan = check(StepProblem(ops, Cluster(kinds, np.array([1, 0], dtype=np.int32), level)), 3.0)
    assert plan.device.tolist() == [1, 0]


def test_links_carry_one_thing_at_a_time() -> None:
    """(K) a and b (1 s) on one device, c and d (5 s) on two others: with contention one transfer of 1 s waits.

    Memory keeps a and b with nothing else, and c and d apart. a ends at 1, b at 2; the outputs leave one device, from 1
    to 2 and from 2 to 3, so c starts at 2 and d at 3 anyway. Outputs of 2 s leave from 1 to 3 and, waiting for the
    link, from 3 to 5: d ends at 10; without contention at 2 + 2 + 5 = 9.
    """
    for contention, size, optimum in ((True, 1.0, 8.0), (True, 2.0, 10.0), (False, 2.0, 9.0)):
        pairs = graph([1, 1, 5, 5], [(0, 2), (1, 3)], size, memory=[1, 1, 2, 2], colocation=[0, 0, -1, -1])
        check(StepProblem(pairs, cluster(3, memory=2), contention), optimum)


def test_no_plan() -> None:
    """Three ops of 2 bytes do not fit on two devices of 3, though together they have the room."""
    run = solved(StepProblem(graph([1, 1, 1], [], memory=[2, 2, 2]), cluster(2, memory=3)))
    assert run.plan is None
    assert run.infeasible


def test_pipeline_of_two_stages() -> None:
    """Two stages of 1 s forward and 2 s back, two micro-batches, nothing sent: 9 s on two devices.

    The last stage has 2 + 4 s of work, none before 1 s and 2 s of the other's after it: 1 + 6 + 2 = 9 s.
    """
    one = with_backward(graph([1, 1], [(0, 1)]), np.array([[2.0, 2.0]]), np.zeros(2))
    n = one.n_ops
    ops = replace(
        one,
        names=tuple(f"{name}{k}" for k in range(2) for name in one.names),
        **{field: np.tile(getattr(one, field), 2) for field in ("time", "memory", "parameter_bytes")},
        **{field: np.tile(getattr(one, field), 2) for field in ("activation_bytes", "edge_bytes", "backward")},
        source=np.concatenate([one.source, one.source + n]),
        target=np.concatenate([one.target, one.target + n]),
        colocation=np.tile(one.colocation, 2),
        twin=np.concatenate([one.twin, one.twin + n]),
    )
    check(StepProblem(ops, cluster(2)), 9.0)
