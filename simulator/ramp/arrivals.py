"""What arrives: PAC-ML's published workloads, and others of other models, loads and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, IntArray, frozen, require, require_number

from .beta import DISTRIBUTIONS, Fractions
from .blocks import Blocks
from .jobs import JobType
from .step import OP_SECONDS, Units

INTERVAL = 1.0
"""Seconds between two published arrivals: 1000 of the published unit, which is ms of compute."""

SERVERS, SEQUENTIAL = 32, 29.94516
"""Of the published set-up: servers, and mean sequential completion time in seconds; together 94% of capacity."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Jobs that arrive one after the other, n of them. Times are in the unit of the types.

    Attributes:
        types: what arrives, all on the same blocks and in the same units.
        submit: float64 (n,), ascending.
        model: int32 (n,), index into `types`.
        fraction: float64 (n,), beta: the most that a job may take, of its sequential completion time.
        horizon: when counting ends; a published figure counts jobs still running then as blocked.
    """

    types: tuple[JobType, ...]
    submit: FloatArray
    model: IntArray
    fraction: FloatArray
    horizon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", tuple(self.types))
        _same(self.types)
        object.__setattr__(self, "submit", frozen(self.submit, np.float64, "submit", (None,)))
        n = len(self.submit)
        require(np.isfinite(self.submit) & (self.submit >= 0), self.submit, "submit", "is not a time from 0 on")
        ascends = np.diff(self.submit, prepend=0.0) >= 0
        require(ascends, self.submit, "submit", "does not ascend")
        object.__setattr__(self, "model", frozen(self.model, np.int32, "model", (n,)))
        known = (self.model >= 0) & (self.model < len(self.types))
        require(known, self.model, "model", f"is not one of the {len(self.types)} types")
        object.__setattr__(self, "fraction", frozen(self.fraction, np.float64, "fraction", (n,)))
        good = np.isfinite(self.fraction) & (self.fraction > 0)
        require(good, self.fraction, "fraction", "is not a positive number")
        require_number(self.horizon, "horizon")

    @property
    def n_jobs(self) -> int:
        """How many jobs arrive."""
        return len(self.submit)

    @property
    def blocks(self) -> Blocks:
        """The blocks of the cluster."""
        return self.types[0].blocks

    @property
    def units(self) -> Units:
        """The unit of all times."""
        return self.types[0].units

    @property
    def limit(self) -> FloatArray:
        """Return the longest completion time that each user accepts, float64 (n,)."""
        sequential = np.array([kind.sequential for kind in self.types])
        return np.asarray(self.fraction * sequential[self.model])


def arrivals(
    types: Sequence[JobType],
    fractions: Fractions | str,
    seed: int,
    *,
    n: int = 1000,
    load: float = 1.0,
    poisson: bool = False,
) -> Case:
    """Draw a case: by default, of the five published models on the published cluster, by the published protocol.

    The first job arrives at 0 and the next ones at equal intervals; models are drawn without replacement from an
    even pool.

    Args:
        types: what arrives, e.g. from `gangplan.simulator.ramp.profiles.read_types`.
        fractions: a distribution of beta, or the name of a published one.
        seed: of the generator.
        n: how many jobs.
        load: sequential work offered a second and server, as a multiple of the published (94% of capacity).
        poisson: exponential gaps of the same mean instead of equal ones.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    types = tuple(types)
    _same(types)
    require_number(n, "n", positive=True, whole=True)
    require_number(load, "load", positive=True)
    require_number(seed, "seed", whole=True)
    if isinstance(fractions, str):
        if fractions not in DISTRIBUTIONS:
            raise InstanceError("distribution", f"{fractions!r} is not one of {', '.join(DISTRIBUTIONS)}")
        fractions = DISTRIBUTIONS[fractions]
    rng = np.random.default_rng(seed)
    model = rng.permutation(np.arange(n) % len(types))
    beta = fractions.sample(n, rng)
    gap = interval(types, load)
    submit: FloatArray = np.arange(n, dtype=np.float64) * gap
    if poisson:
        submit = np.concatenate([[0.0], np.cumsum(rng.exponential(gap, n - 1))])
    return Case(types, submit, model, beta, float(submit[-1]) + gap)


def interval(types: Sequence[JobType], load: float = 1.0) -> float:
    """Return the time between arrivals at a load, in the unit of the types; `INTERVAL` for the published set-up."""
    unit = OP_SECONDS[types[0].units]
    work = float(np.mean([kind.sequential for kind in types])) / unit / SEQUENTIAL
    # rounded, for the published models make 1 but for the digits that the constant lacks
    return INTERVAL * unit * round(work, 5) * SERVERS / types[0].blocks.n_servers / load


def _same(types: tuple[JobType, ...]) -> None:
    if not types:
        raise InstanceError("types", "names no type of job")
    for i, kind in enumerate(types):
        if kind.units != types[0].units:
            raise InstanceError(f"types[{i}].units", f"{kind.units!r} differ from those of the first type")
        if (kind.blocks.topology, kind.blocks.degrees) != (types[0].blocks.topology, types[0].blocks.degrees):
            raise InstanceError(f"types[{i}].blocks", "are of another cluster than those of the first type")
