"""A rule that waits for close GPUs: a job starts where it is little slower than at its best, or not yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gangplan.instances.arrays import require_number

from .allocate import CLOSEST
from .arrays import Cluster, Jobs, State
from .decode import Listing, run_list
from .step import least_cost


@dataclass(frozen=True, slots=True)
class Patient:
    """Start jobs in the order of log length + a log GPUs + b log least slowdown, each once it finds close GPUs.

    The least slowdown is that on an empty cluster. A job that would be more than exp(c) times as slow as that waits, as
    long as anything runs; those behind it may pass. The defaults are the best of cross-entropy search over 176
    workloads with training seeds.

    Attributes:
        gpus: a.
        slowdown: b.
        patience: c, at least 0.
    """

    gpus: float = 0.777
    slowdown: float = 0.639
    patience: float = 0.091
    allocator: ClassVar[str] = "closest"

    def __post_init__(self) -> None:
        for name in ("gpus", "slowdown"):
            require_number(abs(getattr(self, name)), name)
        require_number(self.patience, "patience")

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        run_list(jobs, cluster, state, self.listing(jobs, cluster), np.inf)

    def listing(self, jobs: Jobs, cluster: Cluster) -> Listing:
        """Return the rule as a list of these jobs."""
        least = 1 + jobs.intensity * least_cost(cluster)[jobs.gpus]
        key = np.log(np.maximum(jobs.expected, 1e-9)) + self.gpus * np.log(jobs.gpus) + self.slowdown * np.log(least)
        with np.errstate(divide="ignore"):
            most = (least * np.exp(self.patience) - 1) / jobs.intensity + 1e-9
        return Listing(key, np.full(len(key), CLOSEST), most, np.zeros(len(key), dtype=np.int64))
