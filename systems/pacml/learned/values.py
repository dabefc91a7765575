"""A table of what free blocks are worth, learned for one distribution of jobs: a quick teacher that is told it.

A state after a decision is worth the sum over degrees and levels of a table's entry at the number of blocks available
then. The entries solve the Bellman equation of the policy they define, by least squares (LSTD(lambda): Boyan, Machine
Learning 2002), again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gangplan.instances import RampTopology
from gangplan.solvers.compiled.kernel import Floats, Floats2, Floats3, Ints, Ints2, kernel

from ..arrivals import ArrivalCase, Fractions, arrivals
from ..jobs import Blocks, JobType, read_types
from ..step import Units
from .features import LEVELS, MOST, SUMS, FeatureScratch, find, remember, scratch_of, turn_of
from .recipe import TRAINING
from .tables import DEGREES, BlockTables, TypeTimes, start_job, tables, times_of

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
    kind: Ints
    beta: Floats
    gap: Floats
    horizon: float


@dataclass(frozen=True)
class Scenario:
    """One cluster and sets of job types; an episode is of one set.

    Attributes:
        topology: of the cluster.
        sets: by name; all types of a set have the same units.
        told: whether rows say which type a job is.
    """

    topology: RampTopology
    sets: dict[str, tuple[JobType, ...]] = field(repr=False)
    told: bool = False

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
        return times_of(self.types, published=True)

    def scratch(self, *, choose: bool) -> FeatureScratch:
        """Return arrays for decisions, see `scratch_of`."""
        return scratch_of(self.tables, choose=choose, kinds=len(self.types) if self.told else 0)

    def episode(self, name: str, case: ArrivalCase, label: str = "") -> ArrivalEpisode:
        """Return a case of the set `name`, under another name if there is a `label`."""
        names = list(self.sets)
        start = sum(len(self.sets[other]) for other in names[: names.index(name)])
        gap = np.diff(case.submit, prepend=case.submit[0])
        # copies, for arrays that are read-only are of another type to the compiler
        return ArrivalEpisode(
            label or name, start + np.array(case.model, np.int64), np.array(case.fraction), gap, case.horizon
        )

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

COUNTED = np.searchsorted(LEVELS, [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 18])
"""Levels that count: not what is free now, for the next job comes a turn later, nor what is far; few, to learn fast."""

STEPS = np.minimum(np.array([0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7]), 7)
"""The column for a number of blocks; from the last on there is one for all."""

SHAPE = len(DEGREES), len(COUNTED), 8
"""Of a table: degrees, levels, columns."""

GAMMA, LAMBDA, RIDGE = 0.98, 0.7, 1e-4
EXPLORE = 0.03


def value_table(
    scenario: Scenario, draw: Draw, rng: np.random.Generator, *, rounds: int = 10, choose: bool = True
) -> Floats3:
    """Return the table of a distribution, float64 `SHAPE`.

    Args:
        rounds: of policy iteration, and episodes in each.
    """
    table = np.zeros(SHAPE) + 0.01 * np.arange(SHAPE[2])  # more free blocks are better
    size = table.size + 1
    place = scratch_of(scenario.tables, choose=choose)
    for i in range(rounds):
        a, b, n = np.zeros((size, size)), np.zeros(size), 0
        for _ in range(rounds):
            episode = draw(rng)
            world, case = (scenario.tables, scenario.times), (episode.kind, episode.beta, episode.gap)
            columns, reward = watch(*case, *world, table, place, int(rng.integers(2**31)))
            _lstd(columns, reward, a, b)
            n += len(reward)
        solved = np.linalg.solve(a + RIDGE * n * np.eye(size), b)[:-1].reshape(SHAPE)
        table = solved if i == 0 else (table + solved) / 2
    return table


@kernel
def column_of(count: int) -> int:
    """Return the column for a number of blocks."""
    return int(STEPS[min(count, len(STEPS) - 1)])


@kernel
def worth(count: Ints2, table: Floats3) -> float:
    """Return what a state is worth by the numbers of blocks available, int64 (CLASSES, N_LEVELS)."""
    total = 0.0
    for q in range(table.shape[0]):
        for level in range(table.shape[1]):
            total += table[q, level, column_of(count[q, COUNTED[level]])]
    return total


@kernel
def weigh(
    end: Floats, now: float, turn: float, tables: BlockTables, times: TypeTimes, m: int, limit: float, table: Floats3,
    scratch: FeatureScratch, out: Floats,
) -> int:  # fmt: skip
    """Write what each candidate of a decision is worth, the acceptance of the job included, and return their number."""
    k = find(end, now, turn, tables, times, m, limit, scratch)
    for i in range(k):
        out[i] = worth(scratch.left[i], table) + (1.0 if i > 0 else 0.0)
    return k


@kernel
def watch(
    kind: Ints,
    beta: Floats,
    gap: Floats,
    tables: BlockTables,
    times: TypeTimes,
    table: Floats3,
    scratch: FeatureScratch,
    seed: int,
) -> tuple[Ints2, Floats]:
    """Play an episode, without chance if the seed is below 0.

    Returns:
        The columns of each state after a decision, and the rewards.
    """
    np.random.seed(max(seed, 0))  # noqa: NPY002 - the only generator that compiled code has; it is its own
    n, width = len(kind), table.shape[0] * table.shape[1]
    columns, reward = np.zeros((n, width), np.int64), np.zeros(n)
    end, sums, out = np.full(tables.n, -1.0), np.zeros(SUMS), np.zeros(MOST)
    now = 0.0
    for i in range(n):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], times.sequential[m], times.efficiency[m], gap[i])
        turn = turn_of(sums, tables.n)
        k = weigh(end, now, turn, tables, times, m, beta[i] * times.sequential[m], table, scratch, out)
        a = int(np.argmax(out[:k]))
        if seed >= 0 and np.random.random() < EXPLORE:  # noqa: NPY002
            a = np.random.randint(k)  # noqa: NPY002
        if a > 0:
            reward[i] = 1.0
            start_job(end, now, scratch.choice[a], m, tables, times, scratch.published)
        at = 0
        for q in range(table.shape[0]):
            for level in COUNTED:
                columns[i, at] = at * table.shape[2] + column_of(scratch.left[a, q, level])
                at += 1
    return columns, reward


@kernel
def _lstd(columns: Ints2, reward: Floats, a: Floats2, b: Floats) -> None:
    """Add an episode to the equations; the last unknown is a constant."""
    size = len(b)
    trace = np.zeros(size)
    for i in range(len(reward) - 1):
        trace *= GAMMA * LAMBDA
        for j in columns[i]:
            trace[j] += 1.0
        trace[size - 1] += 1.0
        for k in range(size):
            z = trace[k]
            if z < 1e-6:
                continue
            for j in columns[i]:
                a[k, j] += z
            for j in columns[i + 1]:
                a[k, j] -= GAMMA * z
            a[k, size - 1] += z * (1 - GAMMA)
            b[k] += z * reward[i + 1]
