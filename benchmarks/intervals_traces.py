"""Traces on which intervals of start times are judged, and how long the scheduler thinks that jobs run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.systems.topdrl.suites import suite

from .policies_traces import CROSSCHECK, OPENB, PHILLY

DURATIONS = ("known", "limits", "history")
"""What the scheduler is told: how long jobs run; a limit; nothing, so that it takes medians of those before."""
FACTOR, SPREAD, SEED = 3.0, 1.0, 7
"""A limit is log-normally so many times too long in the median, with this deviation of its logarithm; never too
short."""
_DRAWS = 12
"""Runs of Pollux' trace, one after the other."""


@dataclass(frozen=True, slots=True)
class Case:
    """A trace on equal nodes, consolidated.

    Attributes:
        name: of the row.
        nodes: how many.
        make: the jobs by data folder.
        gpus: of a node.
        tuned: whether settings were chosen on it.
    """

    name: str
    nodes: int
    make: Callable[[Path], Workload]
    gpus: int = 8
    tuned: bool = False


def _file(name: str, queue: str, data: Path) -> Workload:
    """Return whole GPUs and durations only."""
    if not (data / name).exists():
        raise InstanceError("data", f"there is no {name}")
    work = read_trace(data / name).workload
    work = work.only(queue) if queue else work
    return Workload(work.names, work.submit, work.gpus, work.duration)


def _drawn(process: str, seed: int, gpus: str, load: float, nodes: int, jobs: int, data: Path) -> Workload:
    sizes = np.array([[float(x) for x in part.split(":")] for part in gpus.split(",")]).T
    rate = load * 8 * nodes / (float(sizes[0] @ sizes[1] / sizes[1].sum()) * 3600.0)
    return arrivals(jobs, rate, seed, process=process, gpus=gpus, duration="lognormal", mean=3600.0)


def _pollux(data: Path) -> Workload:
    """Return runs of Pollux' 160 jobs, with durations drawn, one after the other."""
    parts = [suite("pollux", data).draw(seed)[0] for seed in range(_DRAWS)]
    late = np.cumsum([0.0, *(part.submit.max() for part in parts[:-1])])
    submit = np.concatenate([part.submit + more for part, more in zip(parts, late, strict=True)])
    gpus, seconds = (np.concatenate([getattr(part, name) for part in parts]) for name in ("gpus", "duration"))
    return Workload(tuple(map(str, range(len(submit)))), submit, gpus, seconds)


def _philly(queue: str, nodes: int, tuned: bool = False) -> Case:
    return Case(f"Philly, {queue}", nodes, partial(_file, PHILLY, queue), tuned=tuned)


_SMALL, _WIDE = "1:6,2:2,4:1,8:1", "1:4,2:2,4:2,8:2,16:1,32:0.5"
CASES = (
    _philly("0e4a51", 6),
    _philly("7f04ca", 10),
    Case("Pollux", 8, _pollux, gpus=4),
    Case("generated, poisson", 16, partial(_drawn, "poisson", 11, _WIDE, 0.85, 16, 4000)),
    Case("generated, burst", 16, partial(_drawn, "burst", 12, _WIDE, 0.85, 16, 4000)),
    Case("generated, diurnal", 16, partial(_drawn, "diurnal", 13, _WIDE, 0.85, 16, 4000)),
    Case("openb", 4, partial(_file, OPENB, "")),
    _philly("6c71a0", 6),
    _philly("b436b2", 9),
    _philly("103959", 4, tuned=True),
    _philly("2869ce", 6, tuned=True),
    Case("Philly, 1,000 jobs of ee9e8c", 20, partial(_file, CROSSCHECK, ""), tuned=True),
    Case("generated, diurnal, tuned on", 8, partial(_drawn, "diurnal", 2, _SMALL, 0.9, 8, 4000), tuned=True),
)


def told(work: Workload, durations: str) -> bool | FloatArray:
    """Return what `SchedulerPolicy` is told of durations."""
    if durations != "limits":
        return durations == "known"
    factor = np.random.default_rng(SEED).lognormal(np.log(FACTOR), SPREAD, work.n_jobs)
    return np.asarray(work.duration * np.maximum(factor, 1.0))
