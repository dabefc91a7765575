"""Where the policy is trained and judged: clusters, the jobs that arrive on them, and what their users accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gangplan.instances import RampTopology
from gangplan.solvers.compiled.kernel import Floats, Ints

from ..arrivals import Case, Fractions, arrivals
from ..jobs import Blocks, JobType, read_types
from ..step import Units
from .recipe import TRAINING
from .tables import Tables, Times, tables, times_of

EPISODE = 2000
"""Jobs of an episode to train on."""
SHORTEST = 0.15
"""Of its steps, that a model is trained for at least where it is for fewer."""


class Episode(NamedTuple):
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
        return times_of(self.types, published=True)

    def episode(self, name: str, case: Case, label: str = "") -> Episode:
        """Return a case of the set `name`, under another name if there is a `label`."""
        names = list(self.sets)
        start = sum(len(self.sets[other]) for other in names[: names.index(name)])
        gap = np.diff(case.submit, prepend=case.submit[0])
        # copies, for arrays that are read-only are of another type to the compiler
        return Episode(
            label or name, start + np.array(case.model, np.int64), np.array(case.fraction), gap, case.horizon
        )

    def draw(
        self, name: str, fractions: Fractions | str, seed: int, n: int, *, load: float = 1.0, label: str = ""
    ) -> Episode:
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
