"""Jobs of sizes and durations fitted to published traces."""

from __future__ import annotations

from math import ceil

import numpy as np

from gangplan.instances.workload import Workload

_GRAIN, _LONGEST = 60.0, 7 * 86400.0
TRACES: dict[str, tuple[tuple[int, float, float, float], ...]] = {
    # Jeon et al., ATC 2019, 82,247 jobs; without the sizes of fewer than 50 jobs
    "philly": (
        *((1, 0.9317, 6.72, 1.97), (2, 0.0221, 4.52, 3.27), (4, 0.0227, 9.11, 2.78)),
        *((8, 0.02, 9.65, 2.79), (16, 0.0024, 9.27, 3.34), (32, 0.0008, 8.83, 2.47)),
    ),
    # Weng et al., ATC 2023, the 6,203 pods with GPUs
    "openb": ((1, 0.9881, 6.56, 1.9), (2, 0.0024, 7.68, 2.45), (4, 0.0024, 5.94, 2.59), (8, 0.0071, 7.51, 2.68)),
}
"""Fitted to published traces: GPUs of a job, share of the jobs, mean and deviation of the logarithm of its seconds."""


def traced_jobs(family: str, jobs: int, gpus: int, rng: np.random.Generator) -> Workload:
    """Draw jobs of a trace's sizes and durations, whole minutes, at 1.2 times what so many GPUs do."""
    menu = np.array([row for row in TRACES[family] if row[0] <= gpus])
    kind = rng.choice(len(menu), jobs, p=menu[:, 1] / menu[:, 1].sum())
    size, seconds = menu[kind, 0].astype(int), np.exp(rng.normal(menu[kind, 2], menu[kind, 3]))
    duration = np.array([_GRAIN * ceil(min(x, _LONGEST) / _GRAIN) for x in seconds])
    between = float((size * duration).mean()) / (1.2 * gpus)
    submit = np.floor(np.cumsum(rng.exponential(between, jobs)) / _GRAIN) * _GRAIN
    return Workload(tuple(map(str, range(jobs))), submit - submit[0], size, duration)
