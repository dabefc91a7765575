"""`Scheduler` learns from the speeds that jobs report, and places by them."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler

FLEET = Fleet.regular(racks=1, nodes=4, gpus=2)


class Cluster:
    """A loop of a user: jobs of models a and b of one GPU, which hurt one another, or their own kind instead."""

    def __init__(self, reports: bool = True, **options: Any) -> None:
        self.scheduler = Scheduler(FLEET, **options)
        self.reports, self.own, self.where, self.count, self.now = reports, False, dict[str, str](), 0, 0.0
        self.rng = random.Random(1)

    def speed(self, name: str) -> float:
        """Return how fast a job is: half as fast beside one that hurts it."""
        beside = [other for other in self.where if other != name and self.where[other] == self.where[name]]
        hurt = any((other[0] == name[0]) == self.own for other in beside)
        return (100.0 if name[0] == "a" else 1.0) * (0.5 if hurt else 1.0)

    def go(self, rounds: int, models: str = "") -> list[dict[str, str]]:
        """Run rounds of jobs of these models, or of three to eight at random; return where those of each round were."""
        found = []
        for _ in range(rounds):
            for model in models or self.rng.choices("ab", k=self.rng.randrange(3, 9)):
                self.scheduler.submit(GangJob(f"{model}{self.count}", model, (1,)), 100.0, now=self.now)
                self.count += 1
                for start in self.scheduler.decide(10.0).starts:
                    self.where[start.job] = next(iter(start.nodes))
            self.now += 10.0
            for name in self.where if self.reports else ():
                self.scheduler.report(name, self.speed(name), now=self.now)
            found.append(dict(self.where))
            for name in [*self.where]:
                self.scheduler.finish(name, now=self.now)
            self.where.clear()
        return found

    def mixed(self, rounds: int) -> int:
        """Return on how many nodes of the last of so many rounds both models are."""
        self.go(rounds - 1)
        last = self.go(1, "abbaabba")[0]
        both = [{name[0] for name in last if last[name] == node} for node in FLEET.names]
        return sum(len(models) == 2 for models in both)


def test_it_separates_who_hurt_one_another_and_recovers() -> None:
    """It mixes both models at first, then keeps them apart, and mixes them again once it hurts to be alike."""
    cluster = Cluster(forget=0.99)
    assert cluster.mixed(1) > 0
    assert cluster.mixed(30) == 0
    learned = cluster.scheduler.learned
    assert learned is not None and learned.used and learned.error < learned.alone
    assert learned.slowdown["a"]["b"] > 1.5 > learned.slowdown["a"]["a"]
    cluster.own = True
    assert cluster.mixed(60) == 4


def test_without_reports_nothing_is_learned() -> None:
    """A scheduler that hears no speeds mixes models to the end, and one that heard too few decides as it does."""
    silent, few = Cluster(reports=False), Cluster()
    assert silent.go(3) == few.go(3)
    assert silent.mixed(30) > 0 and silent.scheduler.learned is None
    assert few.scheduler.learned is not None and not few.scheduler.learned.used


def test_speeds_that_tell_nothing_are_not_used() -> None:
    """Where no job minds any other, decisions are those without reports."""
    cluster, silent = Cluster(), Cluster(reports=False)
    cluster.speed = lambda name: 3.0  # type: ignore[method-assign]
    assert cluster.go(30) == silent.go(30)


def test_a_snapshot_carries_the_model() -> None:
    """A scheduler restored from JSON amid a round believes the same, separates at once, and goes on alike."""
    first, second = Cluster(), Cluster()
    first.go(30)
    first.scheduler.submit(GangJob("a-runs", "a", (1,)), 100.0)
    first.scheduler.decide(10.0)
    second.scheduler.restore(json.loads(json.dumps(first.scheduler.snapshot())))
    for cluster in (first, second):
        cluster.count, cluster.now = 1000, first.now
        cluster.scheduler.report("a-runs", 100.0)
        cluster.scheduler.finish("a-runs")
    one, other = first.scheduler.learned, second.scheduler.learned
    assert one is not None and other is not None and other.used
    assert other.slowdown["a"] == pytest.approx(one.slowdown["a"], rel=1e-3)
    assert first.go(3, "abab") == second.go(3, "abab")
    assert second.mixed(1) == 0


VALUES: list[Any] = [None, True, -1, 10**400, float("nan"), "x", [], {}, [[1]]]


def test_any_value_in_what_was_learned() -> None:
    """A snapshot with any value in it is refused, and nothing has changed, or one can go on from it."""
    cluster = Cluster()
    cluster.go(2)
    cluster.scheduler.submit(GangJob("a-runs", "a", (1,)), 100.0)
    cluster.scheduler.decide(10.0)
    good = json.loads(json.dumps(cluster.scheduler.snapshot()))
    paths = [("learned",), *(("learned", key) for key in good["learned"])]
    paths += [("learned", "model", key) for key in good["learned"]["model"]]
    paths += [
        ("learned", "model", key, 0) for key, value in good["learned"]["model"].items() if isinstance(value, list)
    ]
    for path in paths:
        for value in VALUES:
            bad = copy.deepcopy(good)
            holder: Any = bad
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = value
            scheduler = Scheduler(FLEET)
            try:
                scheduler.restore(bad)
            except InstanceError as error:
                assert str(error).startswith("snapshot") and scheduler.running == ()
            else:
                scheduler.submit(GangJob("new", "b", (1,)), 1.0)
                assert scheduler.decide(10.0).starts
                json.dumps(scheduler.snapshot(), allow_nan=False)


def test_refusals() -> None:
    """A speed is positive and of a job that runs; of a forgetting factor there is a range."""
    scheduler = Scheduler(FLEET)
    scheduler.submit(GangJob("waits", "m", (1,)))
    for speed in (0.0, -1.0, float("nan"), float("inf"), "fast", None):
        with pytest.raises(InstanceError, match=r"speed|waits"):
            scheduler.report("waits", speed)  # type: ignore[arg-type]
    scheduler.decide(60.0)
    with pytest.raises(InstanceError, match="not known"):
        scheduler.report("other", 1.0)
    with pytest.raises(InstanceError, match="speed"):
        scheduler.report("waits", 0.0)
    assert scheduler.learned is None
    for forget in (0.0, 1.5):
        with pytest.raises(InstanceError, match="forget"):
            Scheduler(FLEET, forget=forget)


def test_gangs_failures_and_stops_keep_count() -> None:
    """Gangs over nodes, nodes that fail and jobs that stop are placed and counted right with learned speeds."""
    cluster = Cluster(price=1.0)
    cluster.go(20)
    scheduler = cluster.scheduler
    assert scheduler.learned is not None and scheduler.learned.used
    scheduler.submit(GangJob("wide", "a", (5,)), 1000.0)
    start = scheduler.decide(10.0).starts[0]
    assert len(start.nodes) == 3
    scheduler.report("wide", 5.0, now=cluster.now + 10.0)
    assert scheduler.fail_node(next(iter(start.nodes))) == ("wide",)
    assert [x.job for x in scheduler.decide(10.0).starts] == ["wide"]
    scheduler.submit(GangJob("short", "b", (6,)), 1.0, now=scheduler.now + 2.0)  # once it got on for its price
    decision = scheduler.decide(10.0)
    assert [stop.job for stop in decision.stops] == ["wide"] and decision.starts[0].job == "short"
    scheduler.finish("short", now=cluster.now + 20.0)
    scheduler.decide(10.0)
    scheduler.finish("wide", now=cluster.now + 30.0)
    assert scheduler._state.learned is not None and not scheduler._state.learned._tasks.any()
