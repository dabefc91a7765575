"""What arrives: PAC-ML's published workloads, and others of other models, loads and clusters.

A user states the most that a job may take, as a fraction beta of its sequential completion time. Published are a
uniform and three skew-normal distributions of beta, drawn to two decimals within [0.1, 1], as moments and pictures but
not as parameters. Those here were fitted: see `DISTRIBUTIONS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import (
    AMOUNT,
    FloatArray,
    IntArray,
    array,
    check_fields,
    limited,
    require_choice,
    require_number,
)

from .jobs import Blocks, JobType
from .step import OP_SECONDS, Units

INTERVAL = 1.0
"""Seconds between two published arrivals: 1000 of the published unit, which is ms of compute."""

SERVERS, SEQUENTIAL = 32, 29.94516
"""Of the published set-up: servers, and mean sequential completion time in seconds; together 94% of capacity."""


LEAST, MOST = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class Fractions:
    """A distribution of beta: skew normal (Azzalini 1985), cut off outside [0.1, 1], or uniform if it has no scale.

    Attributes:
        skew: shape parameter; 0 is normal, below 0 the long tail is on the left.
        location: of the skew normal; of the uniform its lower end.
        scale: of the skew normal, 0 for the uniform.
        upper: where it is cut off, or the upper end of the uniform.
    """

    skew: float = 0.0
    location: float = LEAST
    scale: float = 0.0
    upper: float = MOST

    def __post_init__(self) -> None:
        require_number(self.scale, "scale")
        if not LEAST <= self.upper <= MOST:
            raise InstanceError("upper", f"{self.upper!r} is not from {LEAST} to {MOST}")

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n fractions of two decimals, float64 (n,)."""
        if not self.scale:
            return np.round(rng.uniform(self.location, self.upper, n), 2)
        found = np.empty(0)
        lean = self.skew / np.hypot(1.0, self.skew)
        for _ in range(1000):
            if len(found) >= n:
                return np.round(found[:n], 2)
            z = rng.standard_normal((2, 2 * n))
            drawn = self.location + self.scale * (lean * np.abs(z[0]) + np.sqrt(1 - lean**2) * z[1])
            found = np.append(found, drawn[(drawn >= LEAST) & (drawn <= self.upper)])
        raise InstanceError("location", f"{self.location!r} leaves nearly nothing within [{LEAST}, {self.upper}]")


DISTRIBUTIONS = {
    "A": Fractions(),
    "B": Fractions(4.0, 0.118, 0.195),
    "C": Fractions(0.0, 0.489, 0.110),
    "D": Fractions(-5.0, 0.850, 0.175),
}
"""The published four. Only moments are stated: mean .551, .284, .467, .727, standard deviation .263, .120, .110, .109.

A is as stated. The others were fitted to the published blocking of the constants, which tells how many users accept
half (beta >= .51 for the four models whose speed-up falls short of 2), a quarter or an eighth, while the standard
deviation is kept. That moves means to .279, .489 and .714. For C the stated mean cannot be right: with
constant 2 blocking .5574 about 44% accept half; with the stated moments 36% would.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalCase:
    """Jobs that arrive one after the other, n of them. Times are in the unit of the types.

    Attributes:
        types: what arrives, all on the same blocks and in the same units.
        submit: float64 (n,), ascending.
        model: int32 (n,), index into `types`.
        fraction: float64 (n,), beta: the most that a job may take, of its sequential completion time.
        horizon: when counting ends; a published figure counts jobs still running then as blocked.
        distribution: the published one that fractions are of, empty of others; PAC-ML has a policy for each.
    """

    types: tuple[JobType, ...]
    submit: FloatArray = field(metadata=array(None, holds=AMOUNT, ascending=True))
    model: IntArray = field(metadata=array("submit", of="types", what="types"))
    fraction: FloatArray = field(
        metadata=array("submit", holds=((lambda x: np.isfinite(x) & (x > 0), "is not a positive number"),))
    )
    horizon: float
    distribution: str = limited("", empty=True)

    def __post_init__(self) -> None:
        _same(self.types)
        check_fields(self)

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
) -> ArrivalCase:
    """Draw a case: by default, of the five published models on the published cluster, by the published protocol.

    The first job arrives at 0 and the next ones at equal intervals; models are drawn without replacement from an
    even pool.

    Args:
        types: what arrives, e.g. from `gangplan.systems.pacml.jobs.read_types`.
        fractions: a distribution of beta, or the name of a published one.
        n: how many jobs.
        load: sequential work offered a second and server, as a multiple of the published (94% of capacity).
        poisson: exponential gaps of the same mean instead of equal ones.
    """
    types = tuple(types)
    _same(types)
    require_number(n, "n", positive=True, whole=True)
    require_number(load, "load", positive=True)
    require_number(seed, "seed", whole=True)
    name = ""
    if isinstance(fractions, str):
        require_choice(fractions, "distribution", DISTRIBUTIONS)
        name, fractions = fractions, DISTRIBUTIONS[fractions]
    rng = np.random.default_rng(seed)
    model = rng.permutation(np.arange(n) % len(types))
    beta = fractions.sample(n, rng)
    gap = interval(types, load)
    submit: FloatArray = np.arange(n, dtype=np.float64) * gap
    if poisson:
        submit = np.concatenate([[0.0], np.cumsum(rng.exponential(gap, n - 1))])
    return ArrivalCase(types, submit, model, beta, float(submit[-1]) + gap, name)


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
