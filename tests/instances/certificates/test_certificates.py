"""The checker by hand: what each argument proves, what it refuses, and that it imports no solver."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

import gangplan
from gangplan.instances import InstanceError, LatencyProblem, OpGraph, PartitionProblem, StagesProblem, StepProblem
from gangplan.instances.certificates import GAP, certifies, verify_bound
from gangplan.instances.certificates.exact import PLACES, SLACK, number
from gangplan.instances.verify import TOLERANCE

GPU = gangplan.DeviceType("gpu", memory=4.0)
ALMOST = 1 - 100 * SLACK
"""What the slack of the verifier may cost a bound here."""


def graph(**changes: Any) -> OpGraph:
    """Return a -> b, c -> d of 2, 3, 4 and 1 s and a byte each, outputs of no bytes."""
    n = np.full(4, -1)
    made = OpGraph(
        ("a", "b", "c", "d"), ("gpu",), [[2.0, 3.0, 4.0, 1.0]], np.ones(4), np.ones(4), np.zeros(4),
        [0, 0, 1, 2], [1, 2, 3, 3], np.zeros(4), n, n, np.zeros(4, dtype=bool),
    )  # fmt: skip
    return replace(made, **changes)


def cluster(devices: int) -> gangplan.Cluster:
    """Return so many GPUs of 4 bytes."""
    return gangplan.Cluster.flat((GPU, devices), bandwidth=1.0)


def close(bound: Fraction | float, value: float) -> bool:
    """Return whether a bound is a value less some slack of the verifier."""
    return ALMOST * Fraction(value) < bound < value


def test_the_critical_path_of_a_diamond() -> None:
    """The path a, c, d takes 2 + 4 + 1 s, whatever the devices; what is no path is refused."""
    for problem in (StepProblem(graph(), cluster(3)), LatencyProblem(graph(), cluster(3))):
        assert close(verify_bound(problem, {"argument": "path", "ops": [0, 2, 3]}), 7)
        assert close(verify_bound(problem, {"argument": "path", "ops": [2]}), 4)
        assert verify_bound(problem, {"argument": "path", "ops": []}) == 0
        for ops, where in (([0, 3], r"ops\[1\]"), ([2, 0], r"ops\[1\]"), ([4], r"ops\[0\]"), ([-1], r"ops\[0\]")):
            with pytest.raises(InstanceError, match=where):
                verify_bound(problem, {"argument": "path", "ops": ops})


def test_two_devices_share_ten_seconds() -> None:
    """Ten seconds of work on two devices are five each, whatever they weigh, and four bytes a device are enough."""
    problem = PartitionProblem(graph(), cluster(2), "free")
    assert close(verify_bound(problem, {"argument": "shares", "seconds": [1], "bytes": [0]}), 5)
    assert close(verify_bound(problem, {"argument": "shares", "seconds": ["7/3"], "bytes": ["0"]}), 5)
    # (7 * 10 + 1 * 4 - 2 * 4) / (2 * 7): bytes that do not bind only cost
    assert close(verify_bound(problem, {"argument": "shares", "seconds": [7], "bytes": [1]}), 66 / 14)
    for seconds, size in ([[-1], [0]], [[1, 1], [0]], [[1], [-1]]):
        with pytest.raises(InstanceError, match=r"seconds|bytes"):
            verify_bound(problem, {"argument": "shares", "seconds": seconds, "bytes": size})


def test_bytes_alone_prove_that_there_is_no_plan() -> None:
    """Twelve bytes do not go on two devices of four, and five do not go on one however many there are."""
    weighs = {"argument": "shares", "seconds": [0], "bytes": [1]}
    assert verify_bound(PartitionProblem(graph(memory=np.full(4, 3.0)), cluster(2)), weighs) == inf
    assert verify_bound(PartitionProblem(graph(memory=np.array([5.0, 0, 0, 0])), cluster(9)), weighs) == inf
    # the verifier lets a billionth more in
    assert verify_bound(PartitionProblem(graph(memory=np.full(4, 2 + 1e-9)), cluster(2)), weighs) == 0


def test_a_tree_by_hand() -> None:
    """On two devices c alone takes 4 s and the others 6: no plan is below 5, by the duals of the root alone."""
    problem = PartitionProblem(graph(), cluster(2), "free")
    # columns: Z, then x of each class on each slot; rows: 0 to 3 assign, 4 the symmetry, 5 and 6 the loads
    root = [[g, str(Fraction(int(p), 16))] for g, p in enumerate([2, 3, 4, 1])] + [[5, "1/2"], [6, "1/2"]]
    tree = {"argument": "tree", "threshold": 6, "splits": [], "leaves": [root]}
    assert 0 < verify_bound(problem, tree) <= 6
    found = []
    for k in (2, 4, 8, 16, 32):  # the unit is a power of two near the threshold: with one of them this is the dual
        leaf = [[g, str(Fraction(p, k))] for g, p in enumerate([2, 3, 4, 1])] + root[4:]
        found.append(verify_bound(problem, tree | {"leaves": [leaf]}))
    assert close(max(found), 5)
    # an empty leaf proves nothing, and one that splits on nothing whole is refused
    assert verify_bound(problem, tree | {"leaves": [[]]}) == 0
    with pytest.raises(InstanceError, match="no column of whole numbers"):
        verify_bound(problem, tree | {"splits": [[0, 0, 1, 2]], "leaves": [root, root]})
    with pytest.raises(InstanceError, match="wrong sign"):
        verify_bound(problem, tree | {"leaves": [[[5, "-1/2"]]]})
    with pytest.raises(InstanceError, match="after its parent"):
        verify_bound(problem, tree | {"splits": [[1, 0, 0, 1]], "leaves": [root]})
    with pytest.raises(InstanceError, match="is missing"):
        verify_bound(problem, tree | {"splits": [[1, 0, 1, 2]], "leaves": [root]})


def test_all_pipelines_of_a_diamond() -> None:
    """In two stages a, b and c, d take 5 s each, and nothing less; b and c alone are in any order."""
    problem = PartitionProblem(graph(memory=np.zeros(4)), cluster(2))
    ideals = {"argument": "ideals", "threshold": "5", "steps": 1000}
    assert close(verify_bound(problem, ideals), 5)
    # on three devices a | c | b, d takes 4 s, as c does alone
    assert close(verify_bound(replace(problem, cluster=cluster(3)), ideals | {"threshold": 4}), 4)
    with pytest.raises(InstanceError, match="a pipeline of 3 stages"):
        verify_bound(replace(problem, cluster=cluster(3)), ideals)
    with pytest.raises(InstanceError, match="threshold: a pipeline of 2 stages takes less than 5000001/1000000"):
        verify_bound(problem, ideals | {"threshold": "5000001/1000000"})
    with pytest.raises(InstanceError, match="steps"):
        verify_bound(problem, ideals | {"steps": 1})
    with pytest.raises(InstanceError, match="contiguous"):
        verify_bound(replace(problem, variant="free"), ideals)
    # an output of 2 s over the link, paid where it leaves and where it arrives: a, b | c, d sends a and b
    sends = PartitionProblem(graph(memory=np.zeros(4), edge_bytes=np.full(4, 2.0)), cluster(2))
    assert gangplan.solve(sends, 10.0, workers=1).objective == 9
    assert close(verify_bound(sends, ideals | {"threshold": 9}), 9)
    with pytest.raises(InstanceError, match="takes less"):
        verify_bound(sends, ideals | {"threshold": "91/10"})
    # 3 of 4 bytes each: no two ops on a device, and a device too few
    tight = PartitionProblem(graph(memory=np.full(4, 3.0)), cluster(3))
    assert close(verify_bound(tight, ideals | {"threshold": 1000}), 1000)


def test_all_pipelines_of_replicated_stages() -> None:
    """A chain of 4 s and 2 s, without weights, on three devices: 4 s on two of them, 2 s on one, and nothing less."""
    n = np.full(2, -1)
    made = OpGraph(
        ("a", "b"), ("gpu",), [[4.0, 2.0]], np.zeros(2), np.zeros(2), np.zeros(2), [0], [1], [6.0], n, n, [False] * 2
    )
    # the 6 bytes between them would take 6 s; without that move both on all three take 2 s as well
    free = StagesProblem(made, cluster(3), activations=False)
    seen = {"argument": "recurrence", "threshold": "5/2", "steps": 10**4}
    assert close(verify_bound(free, seen), 2)
    assert close(verify_bound(free, seen | {"threshold": 1}), 1)
    # two devices: both ops on both take 3 s; one each 4 s
    assert close(verify_bound(replace(free, cluster=cluster(2)), seen | {"threshold": 4}), 3)
    # in training weights are synchronised: 4 (m - 1)/m of 3 bytes are 8 s for three replicas, 6 s for two. All on all
    # takes (6 + 8) / 3 s; apart, a on one takes 4 s and b on two 1 s: nothing is better, for a on two takes (4 + 6) / 2
    trains = replace(made, parameter_bytes=np.array([3.0, 0.0]), backward=np.array([False, True]))
    problem = StagesProblem(trains, cluster(3), activations=False, memory_model="none")
    assert close(verify_bound(problem, seen | {"threshold": 100}), 4)
    with pytest.raises(InstanceError, match="steps"):
        verify_bound(free, seen | {"steps": 1})
    with pytest.raises(InstanceError, match="threshold: 0 is not above 0"):
        verify_bound(free, seen | {"threshold": 0})
    # 3 bytes of 4 each: not both on a device, so that 4 s are the least on two, and one device has no room
    tight = replace(free, graph=replace(made, memory=np.full(2, 3.0)), cluster=cluster(2))
    assert close(verify_bound(tight, seen | {"threshold": 9}), 4)
    assert close(verify_bound(replace(tight, cluster=cluster(1)), seen | {"threshold": 9}), 9)


def test_calls_on_a_path() -> None:
    """In the diamond a, c, d take 7 s; b shares a's call or another, and outputs of 2 bytes take 2 s each way."""
    sends = LatencyProblem(graph(memory=np.zeros(4), edge_bytes=np.full(4, 2.0)), cluster(2))
    calls = {"argument": "calls", "ops": [0, 2, 3], "steps": 1000}
    # the path in one call: b goes with it, 10 s; a, or d, or c alone sends and so do others: 7 + 2 + 2 s and more
    assert close(verify_bound(sends, calls), 10)
    # without steps only computing counts
    assert 0 < verify_bound(sends, calls | {"steps": 0}) <= 10
    # 2 of 4 bytes each: two calls of two ops, at the best a, b, then c, d: 5 s, 5 s, and the 2 s of a and b, out and in
    tight = LatencyProblem(graph(memory=np.full(4, 2.0), edge_bytes=np.full(4, 2.0)), cluster(2))
    optimum = gangplan.solve(tight, 10.0, workers=1).objective
    assert optimum == 18
    assert 10 < verify_bound(tight, calls) <= 18
    # 5 bytes go nowhere
    assert verify_bound(LatencyProblem(graph(memory=np.full(4, 5.0)), cluster(2)), calls) == inf
    for ops in ([0, 3], [2, 0], [9], [-1]):
        with pytest.raises(InstanceError, match="ops"):
            verify_bound(sends, calls | {"ops": ops})


def test_calls_with_what_is_aside() -> None:
    """On a, c, d with outputs of 1 s, b before or after d is in the call, 10 s, or takes 3 s besides 7 and 1."""
    for source, target in (([0, 2, 1], [2, 3, 3]), ([0, 2, 3], [2, 3, 1])):
        made = graph(memory=np.zeros(4), edge_bytes=np.ones(3), source=source, target=target)
        problem = LatencyProblem(made, cluster(2))
        assert gangplan.solve(problem, 10.0, workers=1).objective == 10
        assert close(verify_bound(problem, {"argument": "calls", "ops": [0, 2, 3], "steps": 1000}), 10)


def test_calls_have_all_of_a_class() -> None:
    """Two chains of 2 and 4, and 3 and 1 s, whose first ops are a class and so are their second ones: 10 s in all."""
    made = graph(memory=np.zeros(4), source=[0, 1], target=[2, 3], edge_bytes=np.ones(2), colocation=[0, 0, 1, 1])
    problem = LatencyProblem(made, cluster(2))
    assert gangplan.solve(problem, 10.0, workers=1).objective == 10
    assert close(verify_bound(problem, {"argument": "calls", "ops": [0, 2], "steps": 1000}), 10)


def test_groups_of_calls() -> None:
    """In the diamond with outputs of 2 s one call takes 10 s; four calls 2 + 2, 2 + 4 + 2, 2 + 2 + 1 s on a path."""
    sends = LatencyProblem(graph(memory=np.zeros(4), edge_bytes=np.full(4, 2.0)), cluster(2))
    assert gangplan.solve(sends, 10.0, workers=1).objective == 10
    seen = {"argument": "grouped", "threshold": "9999/1000", "steps": 10**4}
    assert close(verify_bound(sends, seen), 9.999)
    with pytest.raises(InstanceError, match="no path shows"):
        verify_bound(sends, seen | {"threshold": "101/10"})
    tight = replace(sends, graph=replace(sends.graph, memory=np.full(4, 3.0)), cluster=cluster(4))
    assert gangplan.solve(tight, 10.0, workers=1).objective == 17
    assert close(verify_bound(tight, seen | {"threshold": "16999/1000"}), 16.999)
    with pytest.raises(InstanceError, match="no path shows"):
        verify_bound(tight, seen | {"threshold": "171/10"})
    assert close(verify_bound(replace(tight, cluster=cluster(3)), seen | {"threshold": 1000}), 1000)
    host = replace(sends, cluster=gangplan.Cluster.flat((replace(GPU, host=True), 2), bandwidth=1.0))
    for problem, wrong, words in ((sends, {"threshold": -1}, "threshold"), (sends, {"steps": 0}, "steps"),
                                  (host, {}, "hosts")):  # fmt: skip
        with pytest.raises(InstanceError, match=words):
            verify_bound(problem, seen | wrong)


def test_around_what_cannot_be_apart() -> None:
    """In the diamond with outputs of 6 s any set but all ops pays 6 s at least, c alone 4 + 6 + 6 s."""
    made = graph(memory=np.zeros(4), edge_bytes=np.full(4, 6.0))
    free = PartitionProblem(made, cluster(4), "free")
    assert gangplan.solve(free, 10.0, workers=1).objective == 10
    seen = {"argument": "around", "threshold": "9999/1000", "steps": 10**4}
    assert close(verify_bound(free, seen), 9.999)
    with pytest.raises(InstanceError, match="some sets"):
        verify_bound(free, seen | {"threshold": "101/10"})
    # three bytes of four each: c is alone
    tight = replace(free, graph=replace(made, memory=np.full(4, 3.0)))
    assert gangplan.solve(tight, 10.0, workers=1).objective == 16
    assert close(verify_bound(tight, seen | {"threshold": "15999/1000"}), 15.999)
    with pytest.raises(InstanceError, match="some sets"):
        verify_bound(tight, seen | {"threshold": "161/10"})
    # with a host nets cost nothing: any op can be alone
    hosts = gangplan.Cluster.flat((replace(GPU, host=True), 4), bandwidth=1.0)
    with pytest.raises(InstanceError, match="some sets"):
        verify_bound(replace(tight, cluster=hosts), seen)
    for wrong, words in (({"threshold": -1}, "threshold"), ({"steps": 0}, "steps")):
        with pytest.raises(InstanceError, match=words):
            verify_bound(free, seen | wrong)


def test_together_or_apart() -> None:
    """In the diamond with outputs of 3 s all ops on one device take 10 s; b alone apart 2 + 3 + 3 + 3 + 1 s."""
    sends = StepProblem(graph(memory=np.zeros(4), edge_bytes=np.full(4, 3.0)), cluster(2))
    assert gangplan.solve(sends, 10.0, workers=1).objective == 10
    # amounts are rounded down: the threshold is a little below
    seen = {"argument": "together", "threshold": "9999/1000", "steps": 10**4}
    assert close(verify_bound(sends, seen), 9.999)
    with pytest.raises(InstanceError, match="no path shows"):
        verify_bound(sends, seen | {"threshold": "101/10"})
    # without outputs b runs beside c, 2 + 4 + 1 s; on one device all are 10 s
    free = StepProblem(graph(memory=np.zeros(4)), cluster(2))
    assert close(verify_bound(free, seen | {"threshold": "6999/1000"}), 6.999)
    with pytest.raises(InstanceError, match="no path shows"):
        verify_bound(free, seen | {"threshold": "71/10"})
    assert close(verify_bound(StepProblem(graph(memory=np.zeros(4)), cluster(1)), seen), 9.999)
    # three bytes of four each: a device for each op, which three devices are not; on four a, c, d takes 7 + 6 s
    tight = StepProblem(graph(memory=np.full(4, 3.0), edge_bytes=np.full(4, 3.0)), cluster(4))
    assert close(verify_bound(tight, seen | {"threshold": "12999/1000"}), 12.999)
    assert close(verify_bound(replace(tight, cluster=cluster(3)), seen | {"threshold": 1000}), 1000)
    for wrong, words in (({"threshold": -1}, "threshold"), ({"steps": 0}, "steps")):
        with pytest.raises(InstanceError, match=words):
            verify_bound(sends, seen | wrong)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "certificate"),
        ({}, "argument"),
        ({"argument": "pat"}, "did you mean path"),
        ({"argument": "path"}, "ops: is missing"),
        ({"argument": "path", "ops": [], "more": 1}, "more: is unknown; known are ops"),
        ({"argument": "path", "ops": [True]}, r"ops\[0\]: True"),
        ({"argument": "path", "ops": 3}, "ops: 3 is not a list"),
        ({"argument": "shares", "seconds": [0.5], "bytes": [0]}, r"seconds\[0\]: 0.5"),
        ({"argument": "shares", "seconds": ["1/0"], "bytes": [0]}, r"seconds\[0\]: '1/0'"),
        ({"argument": "shares", "seconds": ["1e9"], "bytes": [0]}, r"seconds\[0\]: '1e9'"),
        ({"argument": "shares", "seconds": ["9" * 900], "bytes": [0]}, r"seconds\[0\]"),
        ({"argument": "starts", "threshold": 1, "times": [], "prices": [], "steps": 0}, "is about schedule"),
        ({"argument": "best", "parts": [{"argument": "path", "ops": [9]}]}, r"ops\[0\]"),
        ({"argument": "tree", "threshold": 1, "splits": [[1, 2, 3]], "leaves": []}, r"splits\[0\]"),
    ],
)
def test_documents_that_are_none(data: Any, words: str) -> None:
    """What is no certificate of the problem is refused by the field and the value."""
    with pytest.raises(InstanceError, match=words):
        verify_bound(StepProblem(graph(), cluster(3)), data)


def test_the_best_of_several() -> None:
    """A combination proves what its best part does, and nothing without parts; it may not go on for ever."""
    problem = StepProblem(graph(), cluster(1))
    parts = [{"argument": "path", "ops": [0, 2, 3]}, {"argument": "shares", "seconds": [1], "bytes": [0]}]
    assert close(verify_bound(problem, {"argument": "best", "parts": parts}), 10)
    assert verify_bound(problem, {"argument": "best", "parts": []}) == 0
    deep: dict[str, Any] = parts[0]
    for _ in range(10):
        deep = {"argument": "best", "parts": [deep]}
    with pytest.raises(InstanceError, match="inside more than"):
        verify_bound(problem, deep)


def test_slack_covers_what_the_verifier_lets_pass() -> None:
    """The constants of the checker are no less than those of the verifier, which it does not import."""
    assert Fraction(TOLERANCE) < SLACK < 2 * Fraction(TOLERANCE)
    assert 4 * Fraction(np.spacing(1.0)) < PLACES
    assert number("-3/8", "x") == Fraction(-3, 8)


def test_what_certifies() -> None:
    """A millionth of what the objective is above zero is no gap; without a plan only `inf` proves something."""
    assert certifies(Fraction(1) - GAP, 1.0)
    assert not certifies(Fraction(1) - GAP - Fraction(1, 10**12), 1.0)
    assert not certifies(Fraction(10**9 + 1) - GAP * 4, 1e9 + 1, 1e9)
    assert certifies(inf, None) and not certifies(Fraction(1), None) and not certifies(inf, 1.0)


def test_the_checker_imports_no_solver() -> None:
    """Checking a certificate of each kind loads nothing of the solvers, and no solver that is installed."""
    code = """
import sys
from gangplan.instances.certificates import verify_bound
from gangplan.instances.certificates.document import ARGUMENTS
for name in ARGUMENTS:
    ARGUMENTS[name]
import gangplan.instances.certificates.rows
bad = ("gangplan.solvers", "gangplan.hybrid", "highspy", "ortools", "pulp", "scipy")
print([x for x in sys.modules if x.startswith(bad)])
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
