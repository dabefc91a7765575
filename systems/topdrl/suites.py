"""Workloads by name: the published sizes, harder mixes, and windows of real traces, with the cluster of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.published import DATA
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.mixes import MIXES, TRAINING, VALIDATION, told_means
from gangplan.simulator.gangs.traces import pollux_seconds, read_jobs
from gangplan.simulator.gangs.traffic import fit

WINDOW = 150
"""Jobs of a window."""
SPLIT = {TRAINING: (0.0, 0.6), VALIDATION: (0.6, 0.7), 0: (0.7, 1.0)}
"""From which seed on which part of Philly's time is drawn from: what is learned from lies before what is tested on."""


def philly(name: str, fleet: Fleet, data: str | PathLike[str]) -> ClusterSuite:
    """Return windows of consecutive jobs of Microsoft's Philly (Jeon et al., ATC 2019)."""
    trace, proximity = read_jobs("philly", str(data))

    def draw(seed: int) -> tuple[Workload, None]:
        begin, end = next(part for first, part in SPLIT.items() if seed >= first)
        low, high = int(begin * trace.n_jobs), int(end * trace.n_jobs) - WINDOW
        at = int(np.random.default_rng(seed).integers(low, high + 1))
        return fit(trace.take(np.arange(at, at + WINDOW)), fleet, proximity), None

    return ClusterSuite(
        name, fleet, proximity, draw, width=fleet.n_gpus, step=float(np.quantile(trace.duration, 0.9)) / 30
    )


def pollux(name: str, fleet: Fleet, data: str | PathLike[str]) -> ClusterSuite:
    """Return Pollux's jobs in the order of its trace from a drawn one on, as long as `pollux_seconds` draws.

    How much each model pays for being apart is fitted to its measured steps.
    """
    trace, proximity = read_jobs("pollux", str(data))
    n = trace.n_jobs
    gap = np.diff(trace.submit, append=trace.submit[-1] * (1 + 1 / n))

    def draw(seed: int) -> tuple[Workload, None]:
        rng = np.random.default_rng(seed)
        order = (np.arange(n) + rng.integers(n)) % n
        jobs = pollux_seconds(trace.take(order), rng)
        submit = np.append(0.0, np.cumsum(gap[order])[:-1])
        return fit(replace(jobs, submit=submit), fleet, proximity), None

    return ClusterSuite(name, fleet, proximity, draw, width=fleet.n_gpus, step=600.0)


@dataclass(frozen=True, slots=True)
class ClusterSuite:
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


Suite = ClusterSuite
"""Its name up to release 0.2.1, for one more."""


TRACES = ("philly", "pollux")
SUITES = (*MIXES, *TRACES)


def suite(name: str, data: str | PathLike[str] = DATA) -> ClusterSuite:
    """Return the suite of a name.

    Args:
        name: one of `SUITES`.
        data: the folder of published traces, for those of `TRACES`.

    Raises:
        InstanceError: if there is none of that name, or its trace is not there.
    """
    fleet = Fleet.regular(2, 4, 4)
    if name in TRACES:
        return (philly if name == "philly" else pollux)(name, fleet, data)
    require_choice(name, "suite", SUITES)
    mix, proximity = MIXES[name], Proximity()
    if name == "expensive":
        proximity = Proximity(intensity={"": 4.0})
    draw = told_means(mix) if name == "uncertain" else lambda seed: (mix.draw(seed), None)
    slots, backlog = (100, 10) if name == "large" else (20, 5)
    return ClusterSuite(name, fleet, proximity, draw, slots, backlog, mix.gpus, mix.step)
