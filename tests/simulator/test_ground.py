"""The checker of grounds passes all that there are, and notices what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from gangplan.hybrid.bench.makers import QueueDraw
from gangplan.instances.placement import Demand, Fleet
from gangplan.instances.placement.job import Task
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES
from gangplan.simulator.ground import Figure, Ground, Maker, check_ground
from gangplan.simulator.replay import saturate
from gangplan.simulator.rounds.jobs import RoundJobs, from_workload, parse_cluster
from gangplan.simulator.rounds.policies import ROUND_POLICIES
from gangplan.simulator.rounds.simulate import simulate_rounds
from gangplan.solvers.placement.online import TASK_POLICIES, TaskMix, make_policy
from gangplan.systems import SYSTEMS, ground_of
from gangplan.systems.interference.baselines import baselines
from gangplan.systems.pacml.ground import Pacml
from gangplan.systems.topdrl.policies import OTHERS
from gangplan.systems.topdrl.rules import SCORES


class RoundsDraw(Ground):
    """Gavel's rounds."""

    figures: ClassVar[Mapping[str, Figure]] = {"mean_jct": Figure("mean JCT", "s")}
    usual, case = ("max_min_fairness_perf",), "rounds"
    cluster = parse_cluster("2xv100+2xk80")

    def draw(self, seed: int) -> RoundJobs:
        """Return a few jobs, which are half as fast on the slower type."""
        rng = np.random.default_rng(seed)
        work = Workload(
            tuple("abcdefgh"), np.cumsum(rng.integers(0, 900, 8)) * 1.0, rng.integers(1, 3, 8),
            rng.integers(100, 5000, 8) * 1.0,
        )  # fmt: skip
        return from_workload(work, {"v100": 1.0, "k80": 0.5}, self.cluster)

    def arrays(self, drawn: RoundJobs) -> Sequence[np.ndarray]:
        """Return the columns."""
        return drawn.submit, drawn.gpus, drawn.steps, drawn.speed

    def policy(self, name: str) -> Maker:
        """Return the name, by which the simulator makes a policy."""
        return lambda drawn, seed: name

    def play(self, policy: Any, drawn: RoundJobs) -> Mapping[str, float]:
        """Simulate, which checks the leases."""
        outcome = simulate_rounds(drawn, self.cluster, policy)
        return {"mean_jct": float((outcome.finish - drawn.submit).mean())}

    def bound(self, drawn: RoundJobs, time_limit: float) -> float:
        """Return the mean of the jobs alone."""
        return float(drawn.workload.duration.mean())


class ReplayDraw(Ground):
    """Tasks that never leave."""

    figures: ClassVar[Mapping[str, Figure]] = {"dropped": Figure("dropped")}
    usual, case = ("first_fit",), "replay"
    fleet = Fleet.regular(1, 4, 4, cpu=16.0)

    def draw(self, seed: int) -> list[Task]:
        """Return a list of tasks."""
        rng = np.random.default_rng(seed)
        return [Task(Demand(float(rng.choice([0.25, 0.5, 1.0, 2.0])), cpu=float(rng.integers(1, 9)))) for _ in range(9)]

    def arrays(self, drawn: list[Task]) -> Sequence[np.ndarray]:
        """Return what they ask for; they come one after the other."""
        return np.arange(len(drawn)), *np.array([(x.demand.gpu, x.demand.cpu) for x in drawn]).T

    def policy(self, name: str) -> Maker:
        """Return what makes the policy of a name."""
        return lambda drawn, seed: make_policy(name, TaskMix.of(drawn), seed)

    def play(self, policy: Any, drawn: list[Task]) -> Mapping[str, float]:
        """Fill the cluster, which refuses what does not fit."""
        done = saturate(self.fleet, drawn, policy)
        assert done.state.allocated <= done.state.capacity
        return {"dropped": float(done.dropped)}

    def bound(self, drawn: list[Task], time_limit: float) -> float:
        """Return that none need be dropped."""
        return 0.0


SMALL: dict[str, Callable[[], Ground]] = {
    "queue": lambda: QueueDraw("philly", 40, 8),
    "topdrl": lambda: ground_of("topdrl")(jobs=15),
    "harmony": lambda: ground_of("harmony")(jobs=15),
    "marl": lambda: ground_of("marl")(jobs=15),
    "pacml": lambda: ground_of("pacml")(jobs=40, models="vgg"),
    "rounds": RoundsDraw,
    "replay": ReplayDraw,
}
"""Grounds of all loops in which somebody decides online."""
DECIDERS: dict[str, tuple[str, ...]] = {
    "queue": ("scheduler", "scheduler-untold", *POLICIES),
    "topdrl": (*SCORES, "sjf+easy+nearest", *OTHERS, "topdrl", "gnn", "gnn-unguarded"),
    "harmony": (*baselines(), "alone-joint", "oracle-joint", "colocate", "harmony"),
    "marl": ("market", "market-packed", "market-ask-1", "agents-lif", "agents-random", "agents-apart", "marl"),
    "pacml": (*Pacml.usual, "smallest+best", "about-4+first", "plans", "learned", "pacml-published"),
    "rounds": tuple(ROUND_POLICIES),
    "replay": tuple(TASK_POLICIES),
}
"""Who decides there, by name."""


@pytest.mark.parametrize("name", SMALL)
def test_who_decides_keeps_the_contract(name: str) -> None:
    """Every ground is what the checker asks for, and whoever decides there decides alike twice and within the bound."""
    assert {*SYSTEMS} <= {*SMALL} == {*DECIDERS}
    check_ground(SMALL[name], policies=DECIDERS[name])


class Above(QueueDraw):
    """Its bound is too high."""

    def bound(self, drawn: Workload, time_limit: float) -> float:
        """Return ten times the bound."""
        return 10 * super().bound(drawn, time_limit)


class Same(QueueDraw):
    """It draws the same from all seeds."""

    def draw(self, seed: int) -> Workload:
        """Return the draw of seed 0."""
        return super().draw(0)


class Drifts(QueueDraw):
    """It draws something else each time."""

    def draw(self, seed: int) -> Workload:
        """Return the draw of a seed that changes."""
        return super().draw(int(np.random.default_rng().integers(1 << 30)))


class Undeclared(QueueDraw):
    """It has a figure that it does not declare."""

    def play(self, policy: Any, drawn: Workload) -> Mapping[str, float]:
        """Return one more."""
        return {**super().play(policy, drawn), "more": 0.0}


class Fickle(QueueDraw):
    """Its policy decides otherwise each time."""

    def policy(self, name: str) -> Maker:
        """Return what puts jobs in any order."""
        part = SimpleNamespace(select=lambda view, jobs: np.random.default_rng().random(len(jobs)))
        return lambda drawn, seed: lambda: part


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Fickle, "mean_jct is .*, then"),
        (Above, "below the bound"),
        (Same, "draw the same"),
        (Drifts, "draws another thing"),
        (Undeclared, "declared are"),
    ],
)
def test_what_is_wrong_is_named(kind: type[QueueDraw], words: str) -> None:
    """A bound that is none, seeds that do not matter or do not suffice, and figures not declared are refused."""
    with pytest.raises(AssertionError, match=words):
        check_ground(lambda: kind("philly", 20, 8))
