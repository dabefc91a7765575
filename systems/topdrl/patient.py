"""`Patient`, the rule that waits for close GPUs, on TopDRL's ground."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gangplan.solvers.placement.online.patient import Patient as Rule

from .allocate import CLOSEST
from .arrays import Cluster, Jobs, State
from .decode import Listing, run_list
from .step import least_cost


@dataclass(frozen=True, slots=True)
class Patient(Rule):
    """The rule on TopDRL's ground, where a job gets the closest GPUs."""

    allocator: ClassVar[str] = "closest"

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        run_list(jobs, cluster, state, self.listing(jobs, cluster), np.inf)

    def listing(self, jobs: Jobs, cluster: Cluster) -> Listing:
        """Return the rule as a list of these jobs."""
        least = 1 + jobs.intensity * least_cost(cluster)[jobs.gpus]
        key = np.log(np.maximum(jobs.expected, 1e-9)) + self.gpus * np.log(jobs.gpus) + self.slowdown * np.log(least)
        with np.errstate(divide="ignore"):
            most = (self.most(least) - 1) / jobs.intensity
        return Listing(key, np.full(len(key), CLOSEST), most, np.zeros(len(key), dtype=np.int64))
