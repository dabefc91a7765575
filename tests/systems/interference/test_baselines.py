"""What each rule does with a task, argued by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.learned_speeds import slower_link
from gangplan.instances import InstanceError
from gangplan.systems.interference.baselines import SCORES, ScoreRule, run
from gangplan.systems.interference.case import InterferenceCase, harmony_fleet
from gangplan.systems.interference.cases import TRAINING, poisson
from gangplan.systems.interference.environment import WORKER, Environment, check
from gangplan.systems.interference.truths import TESTBED, HiddenTruth, TrueJobs, contention


def waiting(workers: list[int], servers: list[int], kinds: list[int], epochs: list[float]) -> Environment:
    """Return an environment of six servers with such jobs, all there at once."""
    jobs = TrueJobs(TESTBED, np.zeros(len(workers)), kinds, workers, servers, epochs)  # type: ignore[arg-type]
    return Environment(InterferenceCase(harmony_fleet(6), jobs, contention(harmony_fleet(6), 0)))


@pytest.mark.parametrize(
    ("score", "server"),
    [("first", 0), ("best", 1), ("lb", 2), ("tetris", 2), ("lif", 2)],
)
def test_one_task(score: str, server: int) -> None:
    """A worker beside an empty server 0 if numbers count, the fullest 1 if packing does, else the empty 2.

    Server 0 has a parameter server (a quarter of its cores), 1 a worker (half of its GPUs) and two of these, the others
    nothing.
    """
    env = waiting([2, 1, 1], [4, 0, 0], [1, 3, 3], [9, 9, 9])
    for kind, at in ((WORKER, 1), (1, 1), (1, 1), (1, 0), (1, 0), (WORKER, 0)):
        if (kind, at) != (WORKER, 0):
            env.place(0, kind, at)
    env.place(0, WORKER, 3)
    assert env.current < 0
    ScoreRule(score).place(env)
    assert list(env.rows(1)) == [server]


def test_together() -> None:
    """Workers and parameter servers share a server that holds them all; spread they do not."""
    env = waiting([2], [2], [1], [9])
    ScoreRule("lb", together=True).place(env)
    assert env.rows(0) == {0: (2, 2)}
    env = waiting([2], [2], [1], [9])
    ScoreRule("lb").place(env)
    assert env.rows(0) == {0: (1, 0), 1: (1, 0), 2: (0, 1), 3: (0, 1)}


def test_shortest_first() -> None:
    """Where one of two jobs fits, it is the one with less profiled compute."""
    for order, chosen in (("arrival", 1), ("shortest", 2)):
        env = waiting([11, 2, 2], [0, 0, 0], [1, 1, 1], [5, 90, 9])
        env.place_whole(0, {s: (2 - (s == 5), 0) for s in range(6)})
        ScoreRule("first", order).place(env)
        assert env.waiting == [1, 2]
        env = waiting([10, 2, 2], [0, 0, 0], [1, 1, 1], [5, 90, 9])
        env.place_whole(0, dict.fromkeys(range(5), (2, 0)))
        ScoreRule("first", order).place(env)
        assert env.rows(chosen) == {5: (2, 0)} and len(env.waiting) == 1


def test_patience() -> None:
    """A job waits for one server that holds it, as long as its patience lasts, and then takes two."""
    env = waiting([1, 1, 2], [0, 0, 0], [1, 1, 1], [5, 1e6, 1e6])
    env.free[2:] = 0.0
    env.place(0, WORKER, 0)
    env.place(1, WORKER, 1)
    rule = ScoreRule("first", together=True, patience=2)
    rule.place(env)
    assert env.waiting == [2] and env.current < 0
    later = waiting([1, 1, 2], [0, 0, 0], [1, 1, 1], [1e6, 1e6, 1e6])
    later.free[2:] = 0.0
    later.place(0, WORKER, 0)
    later.place(1, WORKER, 1)
    for _ in range(3):
        assert later.waiting == [2]
        rule.place(later)
        later.end_interval()
    assert later.waiting == [] and later.rows(2) == {0: (1, 0), 1: (1, 0)}


def test_bad_names() -> None:
    """A rule or an order that is unknown is named."""
    with pytest.raises(InstanceError, match="score: 'wurst' is not one of"):
        ScoreRule("wurst")
    with pytest.raises(InstanceError, match="order: 'longest' is not one of"):
        ScoreRule("lb", "longest")
    assert set(SCORES) == {"first", "best", "lb", "tetris", "lif"}


def test_the_truth_may_change() -> None:
    """Links at a tenth of their speed slow jobs down from then on alone, and the check knows both truths."""
    case = poisson(TRAINING, jobs=60, kind="ps", load=0.8)
    assert isinstance(case.truth, HiddenTruth)
    slow, at = case.truth, 20 * case.interval
    for link in range(len(slow.hidden.quality)):
        slow = slower_link(slow, link, 0.1)
    usual, later = run(case, ScoreRule("lb")), run(case, ScoreRule("lb"), (at, slow))
    early = usual.finish <= at
    assert early.any() and (usual.finish[early] == later.finish[early]).all()
    assert later.finish[~early].mean() > 1.2 * usual.finish[~early].mean()
    assert check(later.outcome(), (at, case.truth)) == []
    assert any("epochs" in fault for fault in check(later.outcome()))
