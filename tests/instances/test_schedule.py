"""Jobs over time: what makes a problem, what a plan is worth, argued by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError, RampTopology, dump, load, verify
from gangplan.instances.generators.jobs import moldable
from gangplan.instances.schedule import (
    MoldableJob,
    NodePool,
    Pool,
    SchedulePlan,
    ScheduleProblem,
    holds,
    total,
)
from gangplan.instances.workload import Workload

A = MoldableJob("a", (1, 2), (10.0, 6.0))
B = MoldableJob("b", (2,), (5.0,), release=1.0, weight=3.0, value=20.0)
NAMES = ("a", "b")


def pool(goal: str = "weighted_completion", **changes: Any) -> ScheduleProblem:
    """Return a and b on two GPUs."""
    return ScheduleProblem((A, B), Pool(2), goal, **changes)


@pytest.mark.parametrize(
    ("goal", "changes", "value"),
    [
        # a on two GPUs from 0 to 6, b from 6 to 11
        ("weighted_completion", {}, 6 + 3 * 11),
        ("mean_jct", {}, (6 + 10) / 2),
        ("makespan", {}, 11),
        ("blocked", {}, 0),
        ("throughput", {"horizon": 10.0}, 3),
        ("throughput", {"horizon": 11.0}, 0),
    ],
)
def test_goals(goal: str, changes: dict[str, Any], value: float) -> None:
    """Every goal is what the hand says."""
    assert verify(pool(goal, **changes), SchedulePlan(NAMES, [1, 0], [0, 6])).objective == value


@pytest.mark.parametrize(
    ("goal", "value"),
    [("weighted_completion", 10 + 20), ("mean_jct", (10 + 20) / 2), ("makespan", 10 + 20), ("blocked", 20)],
)
def test_left_out(goal: str, value: float) -> None:
    """A job left out costs its value."""
    assert verify(pool(goal), SchedulePlan(NAMES, [0, -1], [0, 0])).objective == value


def test_anyone_may_be_blocked() -> None:
    """Where the goal is who is blocked, a job without a value costs 1, and its weight where it is throughput."""
    plan = SchedulePlan(NAMES, [-1, -1], [0, 0])
    assert verify(pool("blocked"), plan).objective == 1 + 20
    assert verify(pool("throughput", horizon=9.0), plan).objective == 1 + 3
    assert verify(pool("makespan"), plan).violations == ("run: job a is left out, and it must run",)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (SchedulePlan(NAMES, [1, 0], [0, 5]), "capacity: the cluster has 4 GPUs in use at 5 s, of 2"),
        (SchedulePlan(NAMES, [1, 0], [6, 0]), "release: job b starts at 0 s, released at 1 s"),
        (SchedulePlan(NAMES, [2, 0], [0, 6]), "job a has degree 2 of a menu of 2: write its index, 1, for 2 GPUs"),
        (
            SchedulePlan(NAMES, [7, 0], [0, 6]),
            "job a has degree 7 of a menu of 2: indices are from 0 to 1, or -1 to leave it out",
        ),
        (SchedulePlan(("a",), [1], [0]), "the plan places 1 jobs, the problem has 2"),
        (SchedulePlan(("a", "c"), [1, 0], [0, 6]), "job 1 of the plan is c, of the problem b"),
        (
            SchedulePlan(("b", "a"), [0, 1], [6, 0]),
            "job 0 of the plan is b, of the problem a: name them in the order of the problem",
        ),
    ],
)
def test_violations(plan: SchedulePlan, words: str) -> None:
    """What is wrong is said."""
    verdict = verify(pool(), plan)
    assert verdict.violations == (words,) and verdict.objective is None


def test_deadline() -> None:
    """A job that runs is over by its deadline."""
    problem = ScheduleProblem((replace(A, deadline=8.0),), Pool(2))
    assert verify(problem, SchedulePlan(("a",), [1], [2])).ok
    assert verify(problem, SchedulePlan(("a",), [1], [2.5])).violations == (
        "deadline: job a ends at 8.5 s, due at 8 s",
    )


def rows(degree: int, *held: tuple[int, int], capacity: Any = None) -> tuple[str, ...]:
    """Return what is wrong with a job of one degree on some (node, GPUs)."""
    capacity = NodePool(3, 4) if capacity is None else capacity
    problem = ScheduleProblem((MoldableJob("x", (degree,), (1.0,)),), capacity)
    node, gpus = zip(*held, strict=True)
    return verify(problem, SchedulePlan(("x",), [0], [0], [0] * len(held), node, gpus)).violations


def test_consolidation() -> None:
    """A job on one node, or full nodes and one more; nothing else."""
    assert rows(3, (1, 3)) == rows(6, (0, 4), (2, 2)) == rows(8, (2, 4), (0, 4)) == ()
    spread = "consolidation: job x of 6 GPUs fills not all of its nodes but one"
    assert rows(6, (0, 3), (2, 3)) == (spread,)
    assert rows(3, (0, 2), (1, 1)) == (spread.replace("6", "3"),)
    assert rows(3, (0, 2)) == ("gang: job x holds 2 GPUs in its rows, it runs on 3",)
    assert rows(3, (7, 3)) == ("job x is on node 7 of 3",)
    assert rows(5, (0, 5))[-1] == "capacity: node 0 has 5 GPUs in use at 0 s, of 4"


def test_two_jobs_on_a_node() -> None:
    """A node carries what it has at any moment, and one end is the next start."""
    jobs = tuple(MoldableJob(name, (2,), (0.1,)) for name in "abc")
    problem = ScheduleProblem(jobs, NodePool(1, 4))
    plan = SchedulePlan(tuple("abc"), [0] * 3, [0.0, 0.0, 0.1], [0, 1, 2], [0, 0, 0], [2, 2, 2])
    assert verify(problem, plan).ok
    assert not verify(problem, replace(plan, start=[0.0, 0.0, 0.09])).ok


def test_blocks() -> None:
    """On a RAMP cluster a job is on a block that PAC-ML knows; server 2 g racks + ... of a 2 x 2 x 2 cluster."""
    ramp = RampTopology(2, 2, 2)
    assert rows(2, (0, 1), (1, 1), capacity=ramp) == ()  # two servers of a rack
    assert rows(2, (0, 1), (6, 1), capacity=ramp) == ()  # a diagonal: group and rack differ
    assert rows(2, (0, 1), (7, 1), capacity=ramp)[0].startswith("block: the 2 servers of job x are no block")
    assert holds(ramp, 4) and not holds(ramp, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MoldableJob("x", (), ()), "degrees: names no number of GPUs"),
        (lambda: MoldableJob("x", (2, 1), (1, 2)), r"degrees\[1\]: 1 does not ascend"),
        (lambda: MoldableJob("x", (1,), (1, 2)), "durations: has 2 entries for 1 degrees"),
        (lambda: MoldableJob("x", (1,), (-1.0,)), r"durations\[0\]: -1.0 is negative"),
        (lambda: MoldableJob("x", (1,), (1.0,), deadline=float("nan")), "deadline: nan is not finite"),
        (lambda: MoldableJob("x", (1,), (1.0,), release=2**64), r"release: \d{20} does not fit into 64 bits"),
        (lambda: Pool(0), "gpus: 0 is not positive"),
        (lambda: NodePool(True), "nodes: True is not a whole number"),
        (lambda: pool("fame"), "goal: 'fame' is not one of"),
        (lambda: pool(horizon=3.0), "horizon: 3.0 does not go with the goal"),
        (lambda: pool("throughput"), "horizon: None does not go with the goal"),
        (lambda: ScheduleProblem((A, A), Pool(1)), r"jobs\[1\].name: 'a' is a duplicate"),
        (lambda: SchedulePlan(NAMES, [0, -2], [0, 0]), r"degree\[1\]: -2 is neither an index nor -1"),
        (lambda: SchedulePlan(NAMES, [0, 0], [0, -1]), r"start\[1\]: -1.0 is negative"),
        (lambda: moldable(fraction=-1.0), "fraction: -1.0 is negative"),
        (lambda: moldable(capacity="heap"), "capacity: 'heap' is not one of pool, nodes, ramp"),
    ],
)
def test_bad_input(make: Any, words: str) -> None:
    """What is wrong is named, with the value found."""
    with pytest.raises(InstanceError, match=words):
        make()


@pytest.mark.parametrize("capacity", ["pool", "nodes", "ramp"])
@pytest.mark.parametrize("goal", ["weighted_completion", "throughput"])
def test_generated(capacity: str, goal: str) -> None:
    """The same seed makes the same problem, another one another, and documents keep it."""
    made = moldable(9, seed=3, capacity=capacity, goal=goal, fraction=1.0, optional=0.5, rigid=0.5)
    assert dump(made) == dump(moldable(9, seed=3, capacity=capacity, goal=goal, fraction=1.0, optional=0.5, rigid=0.5))
    assert dump(load(dump(made))) == dump(made)
    assert dump(made) != dump(moldable(9, seed=4, capacity=capacity, goal=goal, fraction=1.0, optional=0.5, rigid=0.5))
    assert total(made.capacity) == 32
    for job in made.jobs:
        assert list(job.durations) == sorted(job.durations, reverse=True)
        assert all(seconds % 60 == 0 for seconds in (job.release, *job.durations))
        work = [d * p for d, p in zip(job.degrees, job.durations, strict=True)]
        assert work == sorted(work)


def test_trace() -> None:
    """A trace becomes rigid jobs released as submitted; shares of GPUs are refused."""
    work = Workload(("x", "y"), np.array([0.0, 2.0]), np.array([1, 2]), np.array([3.0, 4.0]))
    problem = ScheduleProblem.of(work, Pool(2))
    assert problem.jobs == (MoldableJob("x", (1,), (3.0,)), MoldableJob("y", (2,), (4.0,), release=2.0))
    assert problem.goal == "mean_jct"
    with pytest.raises(InstanceError, match=r"share\[0\]: 0.5 is not 1"):
        ScheduleProblem.of(replace(work, share=np.array([0.5, 1.0])), Pool(2))
