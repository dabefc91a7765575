"""What is drawn: states of clusters in which there is something to decide, graphs, and networks of any numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.learned.graph.compiled import Graph, shapes
from gangplan.learned.graph.schema import Schema
from gangplan.learned.online.candidates import CandidateScratch
from gangplan.learned.online.episodes import observe, play
from gangplan.learned.online.guard import EVERYTHING, RULES
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.online.schema import SCHEMA
from gangplan.learned.online.settings import GnnSettings
from gangplan.simulator.gangs.arrays import GpuRacks, Jobs, State, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.formula import PATIENT
from gangplan.simulator.gangs.mixes import TRAINING, VALIDATION, Mix
from gangplan.simulator.gangs.traffic import TRAIN, VALIDATE, Episode

if TYPE_CHECKING:
    from gangplan.learned.training.network import GraphNetwork

FAR = 1e9
CORRECTED = (PATIENT, *RULES[1:])
"""Rules: that which networks are drawn to correct, and two more."""
SMALL = GnnSettings(width=8, rounds=2)
UNEQUAL = replace(Fleet.regular(3, 3, 8), gpus=np.array([8, 4, 2, 8, 8, 1, 2, 4, 3], dtype=np.int32))


class World(NamedTuple):
    """A cluster, jobs, how things are, and room to work in."""

    jobs: Jobs
    cluster: GpuRacks
    state: State
    s: CandidateScratch

    @property
    def graph(self) -> Graph:
        """What was observed last."""
        return self.s.graph

    def observe(self) -> int:
        """Write candidates and graph, and return how many candidates there are."""
        return int(observe(*self, drawn(0, 0.0).net, PATIENT, False))

    def x(self) -> np.ndarray:
        """Return the features of all nodes of the graph."""
        return self.graph.x[: self.graph.kind[-1]].copy()

    def play(self, policy: GnnPolicy, rule: int = 0, learned: bool = True, until: int = EVERYTHING) -> int:
        """Go on until so many jobs have arrived."""
        return int(play(*self, policy.net, CORRECTED[rule], learned, until, EVERYTHING))

    def again(self, jobs: Jobs | None = None) -> World:
        """Return the same before the first job arrives, or other jobs there."""
        jobs = jobs or self.jobs
        return World(jobs, self.cluster, begin(jobs, self.cluster), CandidateScratch(self.cluster))


def world_of(fleet: Fleet, jobs: Jobs) -> World:
    """Return a cluster before the first job arrives."""
    cluster = cluster_of(fleet, Proximity())
    return World(jobs, cluster, begin(jobs, cluster), CandidateScratch(cluster))


def drawn(seed: int, spread: float = 0.3, settings: GnnSettings = SMALL, **options: bool) -> GnnPolicy:
    """Return a policy whose every number is drawn; with a spread of 0 it is the rule."""
    rng = np.random.default_rng(seed)
    named = shapes(SCHEMA, settings.width, settings.rounds, settings.messages, ranged=True)
    tensors = {name: (spread * rng.normal(size=shape)).astype(np.float32) for name, shape in named.items()}
    for name, x in tensors.items():
        if name.startswith("range_"):  # nothing is unlike what it was trained on
            x[:] = [[-FAR], [FAR]]
    return GnnPolicy(tensors, settings, **options)


def short(number: int, jobs: int = 25, first: int = TRAINING, *, gpus: object = None) -> Episode:
    """Return an episode of a number, on a small cluster whatever is asked for, with a sixth of the jobs."""
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


NAMES = ("a", "b", "c", "d")


def draw_schema(rng: np.random.Generator) -> Schema:
    """Return a schema of up to four kinds, some of whose relations go from a kind to itself."""
    names = NAMES[: rng.integers(1, 5)]
    kinds = {name: tuple(f"{name}{i}" for i in range(rng.integers(1, 6))) for name in names}
    ends = [(str(rng.choice(names)), f"r{i}", str(rng.choice(names))) for i in range(rng.integers(0, 6))]
    return Schema(kinds, tuple(ends), str(rng.choice(names)), int(rng.integers(1, 4)))


def draw_graph(schema: Schema, rng: np.random.Generator) -> Graph:
    """Return a graph in arrays that are longer than what counts, with nonsense behind it; some kinds have no nodes."""
    counts = rng.integers(0, 7, len(schema.kinds)) * (rng.random(len(schema.kinds)) < 0.8)
    kind = np.append(0, np.cumsum(counts)).astype(np.int64)
    x = np.full((kind[-1] + 3, schema.width), np.nan, np.float32)
    for k, names in enumerate(schema.kinds.values()):
        rows = slice(kind[k], kind[k + 1])
        x[rows] = 0
        x[rows, : len(names)] = rng.normal(size=(counts[k], len(names)))
    ends, relation = [], [0]
    for a, b in schema.ends:
        edges = rng.integers(0, 12) if counts[a] and counts[b] and rng.random() < 0.8 else 0
        ends += [(kind[a] + rng.integers(counts[a]), kind[b] + rng.integers(counts[b])) for _ in range(edges)]
        relation.append(relation[-1] + edges)
    source, target = np.full((2, len(ends) + 5), -1)
    source[: len(ends)], target[: len(ends)] = np.array(ends, np.int64).reshape(-1, 2).T
    weight = np.append(rng.uniform(0.1, 2, len(ends)), np.full(5, np.nan)).astype(np.float32)
    return Graph(x, kind, source.copy(), target.copy(), weight, np.array(relation))


@pytest.fixture
def make_graphs() -> Callable[[int, int], tuple[Schema, list[Graph]]]:
    """Return what draws a schema and some graphs of it."""

    def make(seed: int, count: int) -> tuple[Schema, list[Graph]]:
        rng = np.random.default_rng(seed)
        schema = draw_schema(rng)
        return schema, [draw_graph(schema, rng) for _ in range(count)]

    return make


@pytest.fixture
def make_network(one_thread: None) -> Callable[..., Any]:
    """Return what makes a network whose every number is drawn, the last layer, too."""
    import torch

    from gangplan.learned.training.network import GraphNetwork

    def make(schema: Schema, seed: int, *, messages: bool = True) -> GraphNetwork:
        torch.manual_seed(seed)
        network = GraphNetwork(schema, 4 + seed % 5, seed % 4, messages=messages, ranged=True)
        for tensor in network.parameters():
            torch.nn.init.normal_(tensor, std=0.5)
        return network

    return make
