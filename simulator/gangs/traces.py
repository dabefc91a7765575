"""Jobs of published traces, as long and as wide as they were, and how intense their communication is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.published import published
from gangplan.instances.readers.measured import MeasuredSteps, read_measured
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload

TRACES = {
    "philly": "philly/philly.csv.gz", "openb": "openb/openb_pod_list_default.csv", "pollux": "pollux/workload-6.csv",
}  # fmt: skip
"""Microsoft's (Jeon et al., ATC 2019), Alibaba's (Weng et al., ATC 2023) and Pollux' (Qiao et al., OSDI 2021)."""
CLUSTERS = ("0e4a51", "2869ce", "7f04ca", "e13805", "ee9e8c")
"""The virtual clusters of Philly in which at least a fifth of the jobs are gangs."""
HOURS = {
    **dict.fromkeys(("cifar10", "ncf"), (0.1, 1.0)),
    **dict.fromkeys(("bert", "deepspeech2"), (1.0, 10.0)),
    **dict.fromkeys(("yolov3", "imagenet"), (10.0, 100.0)),
}
"""GPU hours of the jobs of a model, from and to (Qiao et al., OSDI 2021): the trace does not say them. ImageNet's, of
100 to 1,000, are cut: one job would be most of a window."""


@cache
def read_jobs(name: str, data: str) -> tuple[Workload, Proximity]:
    """Return the jobs of a trace that ask for whole GPUs, by submission, and how much they pay for being apart.

    Args:
        name: of `TRACES`; the jobs of ``pollux`` have no durations: `pollux_seconds` draws them.
        data: the folder of published traces.

    Raises:
        InstanceError: if the trace is not there.
    """
    seconds = dict.fromkeys(HOURS, 1.0) if name == "pollux" else None
    trace = read_trace(published(data, TRACES[name]), seconds=seconds).workload
    kept = (trace.duration > 0) & (np.asarray(trace.share) == 1) & (trace.gpus > 0)
    if name == "philly":
        kept &= np.isin(trace.queue, CLUSTERS)
    index = np.flatnonzero(kept)
    trace, proximity = trace.take(index[np.argsort(trace.submit[index], kind="stable")]), Proximity()
    if name != "pollux":
        return trace, proximity
    tables = (x for m in HOURS for x in read_measured(published(data, f"pollux/{m}-placements.csv")))
    found = {t.name: fit_intensity(t, proximity) for t in tables if isinstance(t, MeasuredSteps)}
    return trace, replace(proximity, intensity=found)


def pollux_seconds(jobs: Workload, rng: np.random.Generator) -> Workload:
    """Return jobs of Pollux' models as long as drawn in the bounds of `HOURS`."""
    low, high = np.log(np.array([HOURS[m] for m in jobs.model])).T
    return replace(jobs, duration=np.exp(rng.uniform(low, high)) * 3600 / jobs.gpus)


def fit_intensity(steps: MeasuredSteps, proximity: Proximity) -> float:
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
