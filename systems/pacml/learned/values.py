"""A table of what free blocks are worth, learned for one distribution of jobs: a quick teacher that is told it.

A state after a decision is worth the sum over degrees and levels of a table's entry at the number of blocks available
then. The entries solve the Bellman equation of the policy they define, by least squares (LSTD(lambda): Boyan, Machine
Learning 2002), again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances import RampTopology
from gangplan.instances.arrays import FloatArray
from gangplan.solvers.native import Random

from ..arrivals import ArrivalCase, Fractions, arrivals
from ..jobs import Blocks, JobType, read_types
from ..step import Units
from .features import MOST, N_LEVELS, DegreeDecision
from .recipe import TRAINING
from .tables import BlockTables, Long, TypeTimes, tables
from .worth import COUNTED, SHAPE, STEPS, Teacher, add_equations

EPISODE = 2000
"""Jobs of an episode to train on."""
SHORTEST = 0.15
"""Of its steps, that a model is trained for at least where it is for fewer."""


class ArrivalEpisode(NamedTuple):
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

    def jobs(self) -> Iterator[tuple[int, float, float]]:
        """Yield type, share and gap of each job."""
        return zip(self.kind.tolist(), self.beta.tolist(), self.gap.tolist(), strict=True)


@dataclass(frozen=True)
class Scenario:
    """One cluster and sets of job types; an episode is of one set.

    Attributes:
        topology: of the cluster.
        sets: by name; all types of a set have the same units.
    """

    topology: RampTopology
    sets: dict[str, tuple[JobType, ...]] = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the tables, which whoever reads this makes anew: `BlockTables` is not pickled."""
        return Scenario, (self.topology, self.sets)

    @cached_property
    def types(self) -> tuple[JobType, ...]:
        """Return the types of all sets, one set after the other."""
        return tuple(kind for types in self.sets.values() for kind in types)

    @cached_property
    def tables(self) -> BlockTables:
        """Return the cluster's arrays."""
        return tables(self.types[0].blocks)

    @cached_property
    def times(self) -> TypeTimes:
        """Return the types' arrays."""
        return TypeTimes(self.types, published=True)

    def decision(self, *, choose: bool) -> DegreeDecision:
        """Return what decisions are made in, of blocks or of degrees."""
        return DegreeDecision(self.tables, choose=choose)

    def episode(self, name: str, case: ArrivalCase, label: str = "") -> ArrivalEpisode:
        """Return a case of the set `name`, under another name if there is a `label`."""
        names = list(self.sets)
        start = sum(len(self.sets[other]) for other in names[: names.index(name)])
        gap = np.diff(case.submit, prepend=case.submit[0])
        return ArrivalEpisode(label or name, start + case.model.astype(np.int64), case.fraction, gap, case.horizon)

    def draw(
        self, name: str, fractions: Fractions | str, seed: int, n: int, *, load: float = 1.0, label: str = ""
    ) -> ArrivalEpisode:
        """Return an episode of a set, see `gangplan.systems.pacml.arrivals`."""
        return self.episode(name, arrivals(self.sets[name], fractions, seed, n=n, load=load), label)


def published(profiles: str | Path, units: Sequence[Units], shorter: int = 0, seed: int = 0) -> Scenario:
    """Return the five published models on the published cluster, a set for each of the units.

    Args:
        shorter: so many more sets for each of the units: the same models, each trained for fewer steps by chance.
    """
    topology, sets = RampTopology(), dict[str, tuple[JobType, ...]]()
    blocks, rng = Blocks(topology), np.random.default_rng([seed, TRAINING, 1])
    for unit in units:
        sets[unit] = read_types(profiles, blocks=blocks, units=unit)
        for i in range(shorter):
            share = np.exp(rng.uniform(np.log(SHORTEST), 0.0, len(sets[unit])))
            steps = [max(1, round(kind.steps * x)) for kind, x in zip(sets[unit], share.tolist(), strict=True)]
            sets[f"{unit} shorter {i}"] = tuple(map(JobType.lasting, sets[unit], steps))
    return Scenario(topology, sets)


Draw = Callable[[np.random.Generator], ArrivalEpisode]
"""Draws an episode."""

RIDGE = 1e-4
EXPLORE = 0.03


def value_table(
    scenario: Scenario, draw: Draw, rng: np.random.Generator, *, rounds: int = 10, choose: bool = True
) -> FloatArray:
    """Return the table of a distribution, float64 `SHAPE`.

    Args:
        rounds: of policy iteration, and episodes in each.
    """
    table = np.zeros(SHAPE) + 0.01 * np.arange(SHAPE[2])  # more free blocks are better
    size = table.size + 1
    decision = scenario.decision(choose=choose)
    for i in range(rounds):
        a, b, n = np.zeros((size, size)), np.zeros(size), 0
        for _ in range(rounds):
            columns, reward = watch(draw(rng), scenario.times, table, decision, int(rng.integers(2**31)))
            add_equations(columns, reward, a, b)
            n += len(reward)
        solved = np.linalg.solve(a + RIDGE * n * np.eye(size), b)[:-1].reshape(SHAPE)
        table = solved if i == 0 else (table + solved) / 2
    return table


def watch(
    episode: ArrivalEpisode, times: TypeTimes, table: FloatArray, decision: DegreeDecision, seed: int
) -> tuple[Long, FloatArray]:
    """Play an episode, without chance if the seed is below 0.

    Returns:
        The columns of each state after a decision, and the rewards.
    """
    n, random = len(episode.kind), Random(max(seed, 0))
    values = Teacher(decision.tables, times, table, choose=not decision.published)
    left, counted = np.asarray(decision.left), (np.arange(SHAPE[0])[:, None] * N_LEVELS + COUNTED).ravel()
    columns, reward, out = np.zeros((n, len(counted)), np.int64), np.zeros(n), np.zeros(MOST)
    decision.begin(times)
    for i, job in enumerate(episode.jobs()):
        k = decision.arrive(*job)
        values.judge(decision, k, out)
        a = int(np.argmax(out[:k]))
        if seed >= 0 and random.uniform() < EXPLORE:
            a = random.below(k)
        if a > 0:
            reward[i] = 1.0
            decision.accept(a)
        columns[i] = left[a, counted]
    return STEPS[np.minimum(columns, len(STEPS) - 1)] + SHAPE[2] * np.arange(len(counted)), reward
