"""Where the policy is trained and judged: clusters, the jobs that arrive on them, and what their users accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from gangplan.instances import RampTopology
from gangplan.instances.arrays import FloatArray
from gangplan.instances.generators import generate
from gangplan.simulator.ramp import (
    DISTRIBUTIONS,
    Blocks,
    Case,
    Fractions,
    JobType,
    arrivals,
    read_types,
)
from gangplan.simulator.ramp.step import Units

from .network import Graphs, encode
from .tables import Long, Tables, Times, tables, times_of

PUBLISHED = (4, 4, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """Jobs that arrive one after the other in a `Scenario`, n of them.

    Attributes:
        name: of the setting.
        kind: index into the scenario's types, int64 (n,).
        beta: float64 (n,).
        gap: time since the job before, float64 (n,), 0 for the first.
        horizon: until when jobs have to end to count as published.
    """

    name: str
    kind: Long
    beta: FloatArray
    gap: FloatArray
    horizon: float


@dataclass(frozen=True)
class Scenario:
    """One cluster and sets of job types; an episode is of one set.

    Attributes:
        topology: of the cluster.
        sets: by name; all types of a set have the same units.
    """

    topology: RampTopology
    sets: dict[str, tuple[JobType, ...]] = field(repr=False)

    @cached_property
    def types(self) -> tuple[JobType, ...]:
        """Return the types of all sets, one set after the other."""
        return tuple(kind for types in self.sets.values() for kind in types)

    @cached_property
    def tables(self) -> Tables:
        """Return the cluster's arrays."""
        return tables(self.types[0].blocks)

    @cached_property
    def times(self) -> Times:
        """Return the types' arrays."""
        return times_of(self.types)

    @cached_property
    def graphs(self) -> Graphs:
        """Return the types' op graphs."""
        return encode([kind.graph for kind in self.types])

    def episode(self, name: str, case: Case, label: str = "") -> Episode:
        """Return a case of the set `name`, under another name if there is a `label`."""
        start = 0
        for other, types in self.sets.items():
            if other == name:
                break
            start += len(types)
        gap = np.diff(case.submit, prepend=case.submit[0])
        return Episode(
            label or name, start + np.asarray(case.model, np.int64), np.asarray(case.fraction), gap, case.horizon
        )

    def draw(
        self,
        name: str,
        fractions: Fractions | str,
        seed: int,
        n: int,
        *,
        load: float = 1.0,
        poisson: bool = False,
        label: str = "",
    ) -> Episode:
        """Return an episode of a set, see `gangplan.simulator.ramp.arrivals`."""
        case = arrivals(self.sets[name], fractions, seed, n=n, load=load, poisson=poisson)
        return self.episode(name, case, label)


def published(profiles: str | Path, units: Sequence[Units], size: Sequence[int] = PUBLISHED) -> Scenario:
    """Return the five published models on a cluster, a set for each of the units."""
    topology = RampTopology(*size)
    blocks = Blocks(topology)
    return Scenario(topology, {unit: read_types(profiles, blocks=blocks, units=unit) for unit in units})


def various(size: Sequence[int], seed: int, units: Sequence[Units], *, sets: int = 2, kinds: int = 4) -> Scenario:
    """Return networks made by this project's generators on a cluster, `sets` of them in each of `units`."""
    rng = np.random.default_rng(seed)
    topology = RampTopology(*size)
    blocks = Blocks(topology)
    found: dict[str, tuple[JobType, ...]] = {}
    for unit in units:
        for i in range(sets):
            found[f"{unit} {i}"] = tuple(network(rng, blocks, unit, k) for k in range(kinds))
    return Scenario(topology, found)


_NETWORKS = ("gpt", "bert", "resnet", "vgg", "gnmt", "inception")


def network(rng: np.random.Generator, blocks: Blocks, units: Units, k: int) -> JobType:
    """Return the type of a network that a generator makes."""
    kind = str(rng.choice(_NETWORKS))
    graph = generate(kind, training=True, devices=1, device_type=str(rng.choice(("V100", "A100")))).graph
    alone = float(graph.time[0].sum())
    # jobs of 5 to 50 s on one server, as the published ones
    steps = max(1, round(float(np.exp(rng.uniform(np.log(5.0), np.log(50.0)))) / alone))
    return JobType.of(graph, name=f"{kind} {k}", blocks=blocks, units=units, steps=steps)


def anything(rng: np.random.Generator) -> tuple[Fractions, float, bool]:
    """Draw a distribution of beta, a load, and whether arrivals are Poisson: for training beside the published."""
    if rng.random() < 0.5:
        fractions = DISTRIBUTIONS[str(rng.choice(list(DISTRIBUTIONS)))]
    else:
        low, high = np.sort(rng.uniform(0.1, 1.0, 2))
        fractions = Fractions(location=float(low), upper=float(min(1.0, max(high, low + 0.1))))
    return fractions, float(rng.uniform(0.6, 1.4)), bool(rng.random() < 0.3)


VALIDATION, TRAINING = 1_000_000, 2_000_000
"""Where the seeds of cases begin; those below a million are for tests."""

EPISODE = 2000
"""Jobs of an episode to train on."""


def published_cases(scenario: Scenario) -> Callable[[np.random.Generator], Episode]:
    """Return what draws episodes of the published settings."""
    settings = [(unit, name) for unit in scenario.sets for name in DISTRIBUTIONS]

    def draw(rng: np.random.Generator) -> Episode:
        unit, name = settings[int(rng.integers(len(settings)))]
        return scenario.draw(unit, name, TRAINING + int(rng.integers(2**30)), EPISODE)

    return draw


def any_cases(scenario: Scenario) -> Callable[[np.random.Generator], Episode]:
    """Return what draws episodes of other users and loads."""
    names = list(scenario.sets)

    def draw(rng: np.random.Generator) -> Episode:
        fractions, load, poisson = anything(rng)
        name = names[int(rng.integers(len(names)))]
        seed = TRAINING + int(rng.integers(2**30))
        return scenario.draw(name, fractions, seed, EPISODE, load=load, poisson=poisson)

    return draw
