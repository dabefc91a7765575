"""Workloads by name: the published sizes, harder mixes, and windows of real traces, with the cluster of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload

from .workloads import CUTS, LARGE, SMALL, Mix

TEST, VALIDATION, TRAINING = 0, 1_000_000, 2_000_000
"""The first seeds to test on, to choose by, and to learn from."""

DATA = "../shared/data"
"""The folder of published traces."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A cluster and its workloads.

    Attributes:
        name: of `SUITES`.
        fleet, proximity: the cluster.
        draw: makes of a seed the jobs, and the durations that policies are told, None for the true ones.
        slots, backlog: jobs of the queue that TopDRL sees, and of how many behind them it sees the number.
        width: GPUs of the widest job.
        step: seconds of a row of TopDRL's image.
    """

    name: str
    fleet: Fleet
    proximity: Proximity
    draw: Callable[[int], tuple[Workload, FloatArray | None]]
    slots: int = 20
    backlog: int = 5
    width: int = 8
    step: float = 1.0


MIXES = {
    "small": SMALL,
    "large": LARGE,
    "expensive": replace(SMALL, arrival=0.36),
    "mixed": replace(SMALL, gpus=32, arrival=0.073),
    "loaded": replace(SMALL, arrival=0.71),
    "uncertain": SMALL,
    "rush": replace(SMALL, jobs=450, rush=2.0),
}
"""All but ``loaded`` and ``rush``, 1.2, have a load of about 1: GPU seconds that the jobs take where they run fastest,
over those of the cluster until the last arrives. Communication is four times as dear in ``expensive``; gangs of
``mixed`` have up to 32 GPUs; of ``uncertain`` policies know only the mean of each of four classes of jobs, about which
durations are lognormal. In ``rush`` the middle third of the jobs comes twice as fast: by least work 20 wait on average,
where 4 do in ``small``."""
TRACES = ("philly", "pollux")
SUITES = (*MIXES, *TRACES)
SPREAD = 0.8
"""Standard deviation of the logarithm of durations in ``uncertain``."""


def suite(name: str, data: str | PathLike[str] = DATA) -> Suite:
    """Return the suite of a name.

    Args:
        name: one of `SUITES`.
        data: the folder of published traces, for those of `TRACES`.

    Raises:
        InstanceError: if there is none of that name, or its trace is not there.
    """
    fleet = Fleet.regular(2, 4, 4)
    if name in TRACES:
        from . import traces

        made: Suite = getattr(traces, name)(name, fleet, data)
        return made
    if name not in MIXES:
        raise InstanceError("suite", f"{name!r} is not one of {', '.join(SUITES)}")
    mix, proximity = MIXES[name], Proximity()
    if name == "expensive":
        proximity = Proximity(intensity={"": 4.0})
    draw = told_means(mix) if name == "uncertain" else _told_all(mix)
    slots, backlog = (100, 10) if name == "large" else (20, 5)
    return Suite(name, fleet, proximity, draw, slots, backlog, mix.gpus, mix.step)


def _told_all(mix: Mix) -> Callable[[int], tuple[Workload, None]]:
    return lambda seed: (mix.draw(seed), None)


def told_means(mix: Mix) -> Callable[[int], tuple[Workload, FloatArray]]:
    """Return what draws jobs of lognormal durations, and tells the means of their classes."""
    cuts = np.array(CUTS) * mix.length

    def draw(seed: int) -> tuple[Workload, FloatArray]:
        work = mix.draw(seed)
        rng = np.random.default_rng([seed, 1])
        kind = np.searchsorted(cuts[1:-1], work.duration / mix.step, side="right")
        mean = ((cuts[:-1] + cuts[1:]) / 2)[kind] * mix.step
        factor = rng.lognormal(-(SPREAD**2) / 2, SPREAD, len(mean))
        return replace(work, duration=mean * factor), mean

    return draw
