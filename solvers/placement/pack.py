"""Tetris: each task to the node whose free resources point where its demand does."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray

from .gang import spread
from .state import State


def pack(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Give each worker the node with the largest dot product of demand and free resources.

    Both are in shares of the largest node (Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM
    2014, section 3.2); there is no term for remote input, a gang reads none from its nodes.
    """
    fleet, demand = state.batch.problem.fleet, state.batch.jobs[j].worker
    need = np.array([demand.gpu, demand.cpu, demand.memory, demand.nic])
    largest = np.array([max(1e-300, float(x.max())) for x in (fleet.gpus, fleet.cpu, fleet.memory, fleet.nic)])
    weight = need / largest**2
    aligned = weight @ np.stack([state.free_gpu, state.free_cpu, state.free_memory, state.free_nic])
    less = float(weight @ need)
    return spread(lambda node, count: count * less - float(aligned[node]), -aligned, room, degree)
