"""States of clusters of many sizes in which there is something to decide, and networks whose numbers are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.learned.graph.compiled import Graph, shapes
from gangplan.learned.online.candidates import CandidateScratch, scratch_of
from gangplan.learned.online.episodes import observe, play
from gangplan.learned.online.graph import SCHEMA, graph_room
from gangplan.learned.online.guard import EVERYTHING, RULES
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.online.settings import GnnSettings
from gangplan.simulator.gangs.arrays import Cluster, Jobs, State, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.mixes import TRAINING, VALIDATION, Mix
from gangplan.simulator.gangs.traffic import TRAIN, VALIDATE, Episode

FAR = 1e9
SMALL = GnnSettings(width=8, rounds=2)
UNEQUAL = replace(Fleet.regular(3, 3, 8), gpus=np.array([8, 4, 2, 8, 8, 1, 2, 4, 3], dtype=np.int32))


class World(NamedTuple):
    """A cluster, jobs, how things are, and room to work in."""

    jobs: Jobs
    cluster: Cluster
    state: State
    s: CandidateScratch
    graph: Graph

    def observe(self) -> int:
        """Write candidates and graph, and return how many candidates there are."""
        return int(observe(*self, drawn(0, 0.0).net, RULES[0], False))

    def x(self) -> np.ndarray:
        """Return the features of all nodes of the graph."""
        return self.graph.x[: self.graph.kind[-1]].copy()

    def play(self, policy: GnnPolicy, rule: int = 0, learned: bool = True, until: int = EVERYTHING) -> int:
        """Go on until so many jobs have arrived."""
        return int(play(*self, policy.net, RULES[rule], learned, until, EVERYTHING))

    def again(self, jobs: Jobs | None = None) -> World:
        """Return the same before the first job arrives, or other jobs there."""
        jobs = jobs or self.jobs
        s = scratch_of(self.cluster)
        return World(jobs, self.cluster, begin(jobs, self.cluster), s, graph_room(self.cluster, s))


def world_of(fleet: Fleet, jobs: Jobs) -> World:
    """Return a cluster before the first job arrives."""
    cluster = cluster_of(fleet, Proximity())
    s = scratch_of(cluster)
    return World(jobs, cluster, begin(jobs, cluster), s, graph_room(cluster, s))


def drawn(seed: int, spread: float = 0.3, settings: GnnSettings = SMALL, **options: bool) -> GnnPolicy:
    """Return a policy whose every number is drawn; with a spread of 0 it is the rule."""
    rng = np.random.default_rng(seed)
    named = shapes(SCHEMA, settings.width, settings.rounds, settings.messages, ranged=True)
    tensors = {name: (spread * rng.normal(size=shape)).astype(np.float32) for name, shape in named.items()}
    for name, x in tensors.items():
        if name.startswith("range_"):  # nothing is unlike what it was trained on
            x[:] = [[-FAR], [FAR]]
    return GnnPolicy(tensors, settings, **options)


def short(number: int, jobs: int = 25, first: int = TRAINING) -> Episode:
    """Return an episode of a number, on a small cluster, with a sixth of the jobs."""
    ground = VALIDATE[0] if first == VALIDATION else TRAIN[number % 2]
    return ground.episode(first + number, max(jobs // 6, 10))


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Return what makes jobs of a mix, a cluster, and the state when at least so many have arrived."""

    def make(seed: int = 0, arrived: int = 40, fleet: Fleet | None = None, scale: float = 1.0, **mix: float) -> World:
        fleet = fleet or Fleet.regular(2, 4, 4)
        most = {"gpus": min(8, fleet.n_gpus), "arrival": min(1.0, 0.6 * fleet.n_gpus / 32)}
        draw = Mix(**{"jobs": 60, "step": scale} | most | mix).draw(seed)  # type: ignore[arg-type]
        world = world_of(fleet, jobs_of(draw, Proximity()))
        if arrived == 0:
            return world
        for until in range(arrived, len(world.jobs.submit)):  # and on until there is a choice
            world.play(drawn(0, 0.0), learned=False, until=until)
            if world.observe() > 2:
                break
        return world

    return make


@pytest.fixture
def make_policy() -> Callable[..., GnnPolicy]:
    """Return what makes a policy whose every number is drawn."""
    return drawn


@pytest.fixture
def unequal() -> Fleet:
    """Return three racks of nodes of one to eight GPUs."""
    return UNEQUAL
