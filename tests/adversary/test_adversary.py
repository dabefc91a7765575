"""A small share of what ``python -m tests.adversary`` does, and the documents that were made by hand."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gangplan import Cluster, DeviceType
from gangplan.instances import InstanceError, OpGraph, PartitionProblem, StepProblem
from gangplan.instances.certificates import verify_bound
from gangplan.instances.schedule import MoldableJob, Pool, SchedulePlan, ScheduleProblem
from gangplan.instances.verify import verify

from .attack import attack
from .brute import optimum
from .draw import CASES, problem

QUICK = [case for case in CASES if case[0] not in ("stages", "placement")]


@pytest.mark.parametrize(("objective", "variant"), QUICK)
def test_no_certificate_of_a_tiny_problem_proves_too_much(objective: str, variant: str) -> None:
    """Certificates as made, and with one thing changed, prove no more than the best of all plans."""
    counts = Counter[str]()
    for seed in range(4):
        drawn = problem(objective, variant, seed)
        best, plan = optimum(drawn)
        assert attack(drawn, best, plan, random.Random(seed), counts) == [], seed
    assert counts["mutations"] > 40


def test_the_attack_sees_a_checker_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker that adds a thousandth to each bound is found out."""
    monkeypatch.setattr("tests.adversary.attack.verify_bound", lambda *x: verify_bound(*x) * Fraction(1001, 1000))
    drawn = problem("step", "", 0)
    best, plan = optimum(drawn)
    assert best and attack(drawn, best, plan, random.Random(0), Counter())


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
    "no numbers": [tree(threshold=x) for x in (float("nan"), float("inf"), "1e999", "NaN", "1/0", "٣", "3\n", True, None)],
    "lists in lists": [deep(100_000), tree(leaves=deep(100_000)), tree(threshold=deep(100_000)), {"argument": deep(9**6)}],
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


def test_no_job_is_done_before_it_is_there() -> None:
    """On Unix time a run of 1e-8 s may start 4e-7 s early; its JCT is then 0, and not below what is proved."""
    drawn = ScheduleProblem((MoldableJob("j", (1,), (1e-8,), 1.7e9),), Pool(1), "mean_jct")
    found = verify(drawn, SchedulePlan(("j",), [0], [np.nextafter(1.7e9, 0)]))
    assert found.ok and found.objective == 0
