"""Max-min fairness that takes all types for equally fast: least attained service (Narayanan et al., OSDI 2020, 4.1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..cluster import Cluster
from ..jobs import RoundJobs
from .max_min_fairness_perf import MaxMinFairnessPerf


class MaxMinFairness(MaxMinFairnessPerf):
    """As the heterogeneity-aware policy, with every speed 1 where the job runs at all."""

    in_order = False

    def __init__(self, jobs: RoundJobs, cluster: Cluster, seed: int) -> None:
        super().__init__(replace(jobs, speed=(jobs.speed > 0).astype(np.float64)), cluster, seed)
