"""One policy on every ground that shows what it needs, and a checker that notices what is wrong with one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan import Scheduler
from gangplan.hybrid.bench.makers import QueueDraw
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.policies.picking import SchedulerPick
from gangplan.simulator.ground import evaluate, values
from gangplan.simulator.picking import WAIT, DecisionView, check_picks
from gangplan.systems import ground_of


class Shortest:
    """Start the shortest job that fits."""

    needs = ("seconds",)

    def act(self, scene: DecisionView) -> int:
        """Return its place."""
        return int(np.where(scene.fits, scene.columns["seconds"], np.inf).argmin())


class Longest(Shortest):
    """Start the longest job that fits."""

    def act(self, scene: DecisionView) -> int:
        """Return its place."""
        return int(np.where(scene.fits, scene.columns["seconds"], -np.inf).argmax())


GROUNDS: dict[str, tuple[Any, str]] = {
    "topdrl": (lambda: ground_of("topdrl")(jobs=60), "sjf"),
    "harmony": (lambda: ground_of("harmony")(jobs=60), "alone"),
    "queue": (lambda: QueueDraw(trace="philly", jobs=80, gpus=8), "sjf"),
}
"""Grounds, and the rule of each that is the shortest first."""


@pytest.mark.parametrize("name", GROUNDS)
def test_a_policy_runs_on_every_ground(name: str) -> None:
    """The shortest first decides as the ground's own rule of that kind does, the longest first otherwise."""
    make, own = GROUNDS[name]
    ground = make()
    makers = {"shortest": ground.picks(Shortest), "longest": ground.picks(Longest), "own": ground.policy(own)}
    runs, first = evaluate(ground, makers, range(2)), next(iter(ground.figures))
    assert values(runs, "shortest", first) == pytest.approx(values(runs, "own", first))
    assert (values(runs, "longest", first) != values(runs, "own", first)).any()


def test_in_the_scheduler() -> None:
    """It ranks whom it picks, and the others wait."""
    scheduler = Scheduler(Fleet.regular(1, 1, 4), SchedulerPick(Longest()))
    for name, seconds in (("a", 10.0), ("b", 20.0), ("c", 30.0)):
        scheduler.submit(GangJob(name, "any", (2,)), seconds)
    assert [start.job for start in scheduler.decide(60.0).starts] == ["c", "b"]


def test_what_a_ground_does_not_show() -> None:
    """What is needed and not shown is named, also where jobs do not wait at all."""
    policy = type("Prices", (Shortest,), {"needs": ("price",)})
    with pytest.raises(InstanceError, match="needs 'price'"):
        QueueDraw("philly", 9, 8).picks(policy)
    with pytest.raises(InstanceError, match="shows no jobs that wait"):
        ground_of("pacml")(profiles=("none",)).picks(Shortest)


class First(Shortest):
    """Start the first job that fits: by the order of the jobs."""

    def act(self, scene: DecisionView) -> int:
        """Return its place."""
        return int(scene.fits.argmax())


class Any_(Shortest):  # noqa: N801
    """Start a job, whether it fits or not."""

    def act(self, scene: DecisionView) -> int:
        """Return its place."""
        return int(scene.columns["seconds"].argmin())


class Writes(Shortest):
    """Write into what it is shown."""

    def act(self, scene: DecisionView) -> int:
        """Spoil the seconds."""
        scene.columns["seconds"][:] = 0.0
        return WAIT


def test_the_checker() -> None:
    """A sound policy passes; one that picks by order, starts what does not fit, or writes, does not."""
    check_picks(Shortest)
    with pytest.raises(AssertionError, match="order of the jobs"):
        check_picks(First)
    with pytest.raises(InstanceError, match="no job that fits"):
        check_picks(Any_)
    with pytest.raises(ValueError, match="read-only"):
        check_picks(Writes)


def test_a_policy_that_never_picks() -> None:
    """One that lets everybody wait in every scene is refused, and one without `needs` is told so."""
    with pytest.raises(AssertionError, match="lets all wait"):
        check_picks(type("Waits", (Shortest,), {"act": lambda self, scene: WAIT}))
    with pytest.raises(AssertionError, match="has no `needs`"):
        check_picks(type("Needless", (), {"act": Shortest.act}))


class Nobody(Shortest):
    """Let all wait."""

    def act(self, scene: DecisionView) -> int:
        """Return nobody."""
        return WAIT


@pytest.mark.parametrize("name", ["topdrl", "harmony"])
def test_who_lets_all_wait_for_ever(name: str) -> None:
    """Where nobody runs and nobody is to come a policy may not wait: the error says so, and the run ends."""
    ground = ground_of(name)(jobs=3)
    with pytest.raises(InstanceError, match="waiting for good"):
        evaluate(ground, {"nobody": ground.picks(Nobody)}, [0])


@pytest.mark.parametrize(
    ("made", "words"),
    [({"needs": None}, "`needs` is None"), ({"__init__": lambda self, x: None}, "cannot be made without arguments")],
)
def test_what_is_no_policy(made: dict[str, Any], words: str) -> None:
    """Columns that are none, and arguments that nobody gives, are told."""
    with pytest.raises(InstanceError, match=words):
        ground_of("topdrl")(jobs=3).picks(type("Odd", (Shortest,), made))
