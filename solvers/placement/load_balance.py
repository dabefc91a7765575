"""Load balancing: each task to the node that is least loaded."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray

from .gang import spread
from .state import State


def load_balance(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Give each worker the node whose share of GPUs in use, or of cores if that is more, is least."""
    fleet, demand = state.batch.problem.fleet, state.batch.jobs[j].worker
    gpus, cores = np.maximum(fleet.gpus, 1e-300), np.maximum(fleet.cpu, 1e-300)
    load = np.maximum(1 - state.free_gpu / gpus, 1 - state.free_cpu / cores)

    def score(node: int, count: int) -> float:
        by_gpu = 1 - (state.free_gpu[node] - count * demand.gpu) / gpus[node]
        return float(max(by_gpu, 1 - (state.free_cpu[node] - count * demand.cpu) / cores[node]))

    return spread(score, load, room, degree)
