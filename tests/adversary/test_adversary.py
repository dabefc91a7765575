"""A small share of what ``python -m tests.adversary`` does, and the documents that were made by hand."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gangplan
from gangplan import Cluster, DeviceType
from gangplan.instances import InstanceError, OpGraph, PartitionProblem, StepProblem
from gangplan.instances.certificates import verify_bound
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.instances.schedule import MoldableJob, Pool, SchedulePlan, ScheduleProblem
from gangplan.instances.verify import verify

from . import attack as module
from .attack import attack
from .brute import EARLY, _timed, optimum
from .draw import CASES, problem
from .statuses import statuses

QUICK = [case for case in CASES if case[0] not in ("stages", "placement")]


def test_no_certificate_of_a_tiny_problem_proves_too_much() -> None:
    """Certificates as made, and with one thing changed, prove no more than the best of all plans."""
    counts, seen = Counter[str](), dict[str, list[Any]]()
    for objective, variant in QUICK:
        for seed in range(3):
            drawn = problem(objective, variant, seed)
            best, plan = optimum(drawn)
            assert attack(drawn, best, plan, random.Random(seed), counts, seen) == [], (objective, variant, seed)
    assert counts["mutations"] > 400
    for kind in ("of another problem", "item of another problem"):
        assert counts[f"{kind}: weaker or still true"] + counts[f"{kind}: refused"] > 10


def test_the_attack_sees_a_checker_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker that adds a thousandth to each bound is found out."""
    monkeypatch.setattr(module, "verify_bound", lambda *x: verify_bound(*x) * Fraction(1001, 1000))
    drawn = [problem("throughput", "free", seed) for seed in range(6)]
    assert any(attack(x, *optimum(x), random.Random(0), Counter()) for x in drawn)


@pytest.mark.parametrize(("objective", "variant"), [case for case in CASES if case[0] != "stages"][::3])
def test_what_solve_says_of_a_tiny_problem_holds(objective: str, variant: str) -> None:
    """Neither OPTIMAL nor INFEASIBLE nor a bound is contradicted by all plans."""
    for seed in range(2):
        drawn = problem(objective, variant, seed)
        assert statuses(drawn, optimum(drawn)[0], "auto", 0.5) == [], seed


def test_jobs_that_share_a_gpu_may_disturb_one_another_less_than_beside() -> None:
    """Two jobs on the halves of a GPU slow each other down by 1, on two GPUs of the node by 9: the best is 2 + 2."""
    fleet = Fleet.regular(racks=1, nodes=1, gpus=2, gpu_type="a")
    speeds = SpeedModel(("m",), ("a",), [[1.0]], [0.0], [0.0], [[9.0]], [[1.0]])
    jobs = tuple(GangJob(name, "m", (1,), Demand(0.5)) for name in "ab")
    drawn = PlacementProblem(fleet, jobs, speeds)
    assert optimum(drawn)[0] == 4
    for method in ("auto", "bounds"):
        assert statuses(drawn, 4.0, method) == []


def chain(ops: int, devices: int, kind: Any = PartitionProblem, **more: Any) -> Any:
    """Return a chain of ops of a second each on some devices."""
    n = np.ones(ops)
    graph = OpGraph(tuple(map(str, range(ops))), ("a",), n[None], n, n, n, range(ops - 1), range(1, ops), n[1:])
    return kind(graph, Cluster.flat((DeviceType("a"), devices), bandwidth=1e9), **more)


def tree(**changes: Any) -> dict[str, Any]:
    """Return a tree of one leaf with something else in it."""
    return {"argument": "tree", "threshold": 3, "splits": [], "leaves": [[]]} | changes


def deep(levels: int) -> Any:
    """Return lists in lists."""
    data: list[Any] = []
    for _ in range(levels):
        data = [data]
    return data


HUGE = 10**100_000
FORGED = {
    "huge numbers": [
        tree(threshold=HUGE), tree(threshold=-HUGE), tree(splits=[[HUGE, 0, 1, 2]]), tree(splits=[[1, 0, HUGE, 2]]),
        tree(leaves=[[[HUGE, 1]]]), tree(leaves=[[[0, -HUGE]]]), {"argument": "path", "ops": [HUGE]},
        {"argument": "ideals", "threshold": HUGE, "steps": 5}, {"argument": "ideals", "threshold": 3, "steps": HUGE},
        {"argument": "shares", "seconds": [-HUGE], "bytes": [0]},
    ],
    "no numbers": [tree(threshold=x) for x in (float("nan"), float("inf"), "1e999", "NaN", "1/0", "٣", "3\n", True)],
    "lists in lists": [deep(100_000), tree(leaves=deep(9**6)), tree(threshold=deep(9**6)), {"argument": deep(9**6)}],
    "nodes of two parents": [tree(splits=[[1, 0, i + 1, i + 1] for i in range(40)])],
    "loops": [tree(splits=[[1, 0, 0, 1]]), tree(splits=[[1, 0, 2, 1], [2, 0, 1, 2]])],
    "keys that are no text": [{"argument": "tree", 1: 2, "x": 3}, {1: 2}],
    "denominators": [{"argument": "path", "ops": [0], "x": 1}, {"argument": "shares", "bytes": [0],
                     "seconds": [f"1/{3**500 + i}" for i in range(50)]}],
    "many searches": [{"argument": "best", "parts": [{"argument": "ideals", "threshold": 3, "steps": 9**7}] * 99}],
}  # fmt: skip
"""Documents that are refused, each at once."""


@pytest.mark.parametrize("name", FORGED)
def test_forged_documents_are_refused(name: str) -> None:
    """Whatever a document says, the only error is an `InstanceError`, in a moment."""
    for document in FORGED[name]:
        for about in (chain(6, 2, variant="free"), chain(6, 2), chain(6, 2, StepProblem)):
            with pytest.raises(InstanceError):
                verify_bound(about, document)


def test_a_deep_tree_takes_as_long_as_it_is() -> None:
    """A tree of 20,000 splits one below the other is looked at in a moment, and a million rows are not made."""
    n = 20_000
    splits = [[1, 0, n + i, i + 1] for i in range(n - 1)] + [[1, 0, 2 * n - 1, 2 * n]]
    assert verify_bound(chain(6, 2, variant="free"), tree(splits=splits, leaves=[[]] * (n + 1))) == 0
    with pytest.raises(InstanceError, match="too large"):
        verify_bound(chain(2000, 64), tree())


def test_a_bound_is_a_float() -> None:
    """What is proved of a problem without a plan is no number beyond floats, and nothing below them."""
    tight = chain(3, 1, StepProblem)
    tight = StepProblem(tight.graph, Cluster.flat((DeviceType("a", memory=1.0), 1), bandwidth=1.0))
    few = f"1/{10**700}"
    assert float(verify_bound(tight, {"argument": "shares", "seconds": [few], "bytes": [1]})) > 1e300


def test_a_tiny_release_makes_units_small() -> None:
    """With times of 1e70 units no start is lost: this schedule costs 1.0003e10."""
    jobs = (("a", 1e10, 1e30), ("b", 0.0, None), ("c", 1e-45, None))
    drawn = ScheduleProblem(tuple(MoldableJob(n, (1,), (1e6,), r, value=v) for n, r, v in jobs), Pool(3))
    best = verify(drawn, SchedulePlan(("a", "b", "c"), [0, 0, 0], [1e10, 0.0, 1e-45])).objective
    assert best == pytest.approx(1.0003e10)
    document = {"argument": "starts", "threshold": 2 * 10**10, "times": [], "prices": [], "steps": 1000}
    with pytest.raises(InstanceError, match="costs less"):
        verify_bound(drawn, document)


def test_transfers_may_be_early_too() -> None:
    """With contention each of 20 ops and of 19 transfers between them begins a billionth of the makespan early."""
    n, seconds = 20, np.full((2, 20), np.inf)
    seconds[np.arange(n) % 2, np.arange(n)] = 1.0
    zero, size = np.zeros(n), np.full(n - 1, 1e-12)
    graph = OpGraph(tuple(map(str, range(n))), ("a", "b"), seconds, zero, zero, zero, range(n - 1), range(1, n), size)
    two = Cluster.flat((DeviceType("a"), 1), (DeviceType("b"), 1), bandwidth=1.0)
    drawn, device = StepProblem(graph, two, contention=True), [i % 2 for i in range(n)]
    order = [x for i in range(n) for x in ((i, -1), (i, 1 - i % 2))][:-1]
    best = verify(drawn, _timed(drawn, device, order, EARLY * 19.9999)[0]).objective
    assert best and best < 20 * (1 - 3e-8)
    threshold = str(20 * (1 - Fraction(1, 10**12)))
    for document in (
        {"argument": "path", "ops": list(range(n))},
        {"argument": "together", "threshold": threshold, "steps": 10**6},
    ):
        assert best * (1 - 1e-8) < verify_bound(drawn, document) <= best


def test_certify_passes_over_times_that_clocks_do_not_tell_apart() -> None:
    """With runs of 1e12 s and of 1e-4 s no search over starts can be checked, and none is made."""
    jobs = (MoldableJob("a", (1,), (1e12,), 1e-9), MoldableJob("b", (1,), (1e-4,), 1e-9))
    for goal in ("weighted_completion", "makespan"):
        problem = ScheduleProblem(jobs, Pool(1), goal)
        assert gangplan.solve(problem, time_limit=1.0, workers=1, certify=True).certified is not None


def test_no_job_is_done_before_it_is_there() -> None:
    """On Unix time a run of 1e-8 s may start 4e-7 s early; its JCT is then 0, and not below what is proved."""
    drawn = ScheduleProblem((MoldableJob("j", (1,), (1e-8,), 1.7e9),), Pool(1), "mean_jct")
    found = verify(drawn, SchedulePlan(("j",), [0], [np.nextafter(1.7e9, 0)]))
    assert found.ok and found.objective == 0
