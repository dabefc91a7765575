"""Workloads by name: the published sizes, harder mixes, and windows of real traces, with the cluster of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.published import DATA, published
from gangplan.instances.readers.measured import Steps, read_measured
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.mixes import MIXES, TRAINING, VALIDATION, told_means
from gangplan.simulator.gangs.step import at_best

PHILLY = "philly/philly.csv.gz"
CLUSTERS = ("0e4a51", "2869ce", "7f04ca", "e13805", "ee9e8c")
"""The virtual clusters of Philly in which at least a fifth of the jobs are gangs."""
WINDOW = 150
"""Jobs of a window."""
SPLIT = {TRAINING: (0.0, 0.6), VALIDATION: (0.6, 0.7), 0: (0.7, 1.0)}
"""From which seed on which part of Philly's time is drawn from: what is learned from lies before what is tested on."""

POLLUX = "pollux/workload-6.csv"
HOURS = {
    **dict.fromkeys(("cifar10", "ncf"), (0.1, 1.0)),
    **dict.fromkeys(("bert", "deepspeech2"), (1.0, 10.0)),
    **dict.fromkeys(("yolov3", "imagenet"), (10.0, 100.0)),
}
"""GPU hours of the jobs of a model, from and to (Qiao et al., OSDI 2021): the trace does not say them. ImageNet's, of
100 to 1,000, are cut: one job would be most of a window."""


def philly(name: str, fleet: Fleet, data: str | PathLike[str]) -> Suite:
    """Return windows of consecutive jobs of Microsoft's Philly (Jeon et al., ATC 2019)."""
    trace = read_trace(published(data, PHILLY)).workload
    kept = np.flatnonzero(np.isin(trace.queue, CLUSTERS) & (trace.duration > 0))
    trace = trace.take(kept[np.argsort(trace.submit[kept], kind="stable")])
    proximity = Proximity()

    def draw(seed: int) -> tuple[Workload, None]:
        begin, end = next(part for first, part in SPLIT.items() if seed >= first)
        low, high = int(begin * trace.n_jobs), int(end * trace.n_jobs) - WINDOW
        at = int(np.random.default_rng(seed).integers(low, high + 1))
        return fit(trace.take(np.arange(at, at + WINDOW)), fleet, proximity), None

    return Suite(name, fleet, proximity, draw, width=fleet.n_gpus, step=float(np.quantile(trace.duration, 0.9)) / 30)


def pollux(name: str, fleet: Fleet, data: str | PathLike[str]) -> Suite:
    """Return Pollux's jobs in the order of its trace from a drawn one on, as long as drawn in the bounds of `HOURS`.

    How much each model pays for being apart is fitted to its measured steps.
    """
    trace = read_trace(published(data, POLLUX), seconds=dict.fromkeys(HOURS, 1.0)).workload
    tables = (x for m in HOURS for x in read_measured(published(data, f"pollux/{m}-placements.csv")))
    proximity = Proximity()
    proximity = replace(
        proximity, intensity={t.name: fit_intensity(t, proximity) for t in tables if isinstance(t, Steps)}
    )
    n = trace.n_jobs
    gap = np.diff(trace.submit, append=trace.submit[-1] * (1 + 1 / n))

    def draw(seed: int) -> tuple[Workload, None]:
        rng = np.random.default_rng(seed)
        order = (np.arange(n) + rng.integers(n)) % n
        jobs = trace.take(order)
        low, high = np.log(np.array([HOURS[m] for m in jobs.model])).T
        seconds = np.exp(rng.uniform(low, high)) * 3600 / jobs.gpus
        submit = np.append(0.0, np.cumsum(gap[order])[:-1])
        return fit(replace(jobs, submit=submit, duration=seconds), fleet, proximity), None

    return Suite(name, fleet, proximity, draw, width=fleet.n_gpus, step=600.0)


def load(workload: Workload, fleet: Fleet, proximity: Proximity) -> float:
    """Return the GPU seconds that jobs take at their fastest, over those of the cluster until the last is submitted."""
    span = float(workload.submit.max() - workload.submit.min())
    work = float(at_best(workload, fleet, proximity).duration @ workload.gpus)
    return work / (fleet.n_gpus * span) if span > 0 else float("inf")


def fit(workload: Workload, fleet: Fleet, proximity: Proximity) -> Workload:
    """Return the jobs with gangs of at most all GPUs, submitted from 0 on and so fast that the load is 1."""
    capped = replace(
        workload, submit=workload.submit - workload.submit.min(), gpus=np.minimum(workload.gpus, fleet.n_gpus)
    )
    return replace(capped, submit=capped.submit * load(capped, fleet, proximity))


def fit_intensity(steps: Steps, proximity: Proximity) -> float:
    """Return how intense a model's communication is, by its measured steps on one node and on several, at least 0.

    With as many workers and as large a batch, a step on several nodes takes (1 + i c) / (1 + i c1) of the time on one,
    c and c1 the costs. Least squares over (1 + i c1) ratio = 1 + i c give i; all nodes are of one rack.
    """
    cost = (steps.workers - steps.nodes) * proximity.node + (steps.nodes - 1) * proximity.rack
    alone: dict[tuple[int, float], list[float]] = {}
    for k in np.flatnonzero(steps.nodes == 1).tolist():
        alone.setdefault((int(steps.workers[k]), float(steps.batch[k])), []).append(float(steps.seconds[k]))
    above, below = 0.0, 0.0
    for k in np.flatnonzero(steps.nodes > 1).tolist():
        workers = int(steps.workers[k])
        together = alone.get((workers, float(steps.batch[k])))
        if together:
            ratio = float(steps.seconds[k]) / float(np.mean(together))
            slope = float(cost[k]) - ratio * (workers - 1) * proximity.node
            above, below = above + (ratio - 1) * slope, below + slope**2
    if not below:
        raise InstanceError(
            "placement", f"{steps.name} was not measured with as many workers on one node and on several"
        )
    return max(above / below, 0.0)


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


TRACES = ("philly", "pollux")
SUITES = (*MIXES, *TRACES)


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
        return (philly if name == "philly" else pollux)(name, fleet, data)
    require_choice(name, "suite", SUITES)
    mix, proximity = MIXES[name], Proximity()
    if name == "expensive":
        proximity = Proximity(intensity={"": 4.0})
    draw = told_means(mix) if name == "uncertain" else lambda seed: (mix.draw(seed), None)
    slots, backlog = (100, 10) if name == "large" else (20, 5)
    return Suite(name, fleet, proximity, draw, slots, backlog, mix.gpus, mix.step)
