"""What an episode is made of: a workload, the menus of its jobs, and by when they must be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, frozen, require, require_number
from gangplan.instances.workload import Workload

from ..options import Menu


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The jobs of an episode, n of them.

    Attributes:
        workload: the jobs.
        menu: the degrees they may run at; by default each runs on the GPUs it asked for.
        limit: the longest duration in seconds at which a job is still worth running, float64 (n,): a degree that takes
            longer is not on offer. `DegreeEnv` reads it where jobs may be blocked.
    """

    workload: Workload
    menu: Menu | None = None
    limit: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            limit = frozen(self.limit, np.float64, "limit", (self.workload.n_jobs,))
            object.__setattr__(self, "limit", limit)
            require(limit >= 0, limit, "limit", "is not a number from 0 on")


Cases = Callable[[np.random.Generator], Case]
"""Draws the case of the next episode; all of its choices come from the generator."""


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Poisson arrivals of jobs with lognormal durations, at a given load.

    Attributes:
        gpus: of the cluster, for the load.
        jobs: how many.
        load: GPU seconds asked for a second over `gpus`.
        sizes: the numbers of GPUs that jobs ask for, each as likely as the others.
        mean: of the durations, whole seconds from 1 up.
        spread: standard deviation of their logarithms.
        degrees: on offer to every job besides what it asks for, by `Menu.scaling`; none if it is empty.
        fraction: a job's `limit` is the time it takes at its least degree, times a number drawn evenly between these
            two (PAC-ML's maximum acceptable fraction of the sequential completion time); no limit if it is `None`.
    """

    gpus: int = 32
    jobs: int = 30
    load: float = 0.9
    sizes: tuple[int, ...] = (1, 2, 4, 8)
    mean: float = 600.0
    spread: float = 1.0
    degrees: tuple[int, ...] = ()
    fraction: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for field in ("gpus", "jobs"):
            require_number(getattr(self, field), field, positive=True, whole=True)
        for field in ("load", "mean"):
            require_number(getattr(self, field), field, positive=True)
        require_number(self.spread, "spread")
        for field in ("sizes", "degrees"):
            for i, value in enumerate(getattr(self, field)):
                require_number(value, f"{field}[{i}]", positive=True, whole=True)
        if not self.sizes:
            raise InstanceError("sizes", "is empty")
        if self.fraction is not None and not 0 <= self.fraction[0] <= self.fraction[1]:
            raise InstanceError("fraction", f"{self.fraction!r} are not two numbers from 0 on, ascending")

    def __call__(self, rng: np.random.Generator) -> Case:
        """Draw a case."""
        gap = self.mean * float(np.mean(self.sizes)) / (self.load * self.gpus)
        duration = rng.lognormal(np.log(self.mean) - self.spread**2 / 2, self.spread, self.jobs)
        workload = Workload(
            names=tuple(map(str, range(self.jobs))),
            submit=np.cumsum(rng.exponential(gap, self.jobs)),
            gpus=rng.choice(self.sizes, self.jobs),
            duration=np.maximum(np.round(duration), 1.0),
        )
        menu = Menu.scaling(workload, self.degrees) if self.degrees else Menu.rigid(workload)
        limit = None
        if self.fraction is not None:
            limit = np.round(rng.uniform(*self.fraction, self.jobs), 2) * menu.duration[menu.first[:-1]]
        return Case(workload, menu, limit)
