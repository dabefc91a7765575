"""Least interference first: where the jobs that are there mind least, and matter least."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray

from .gang import take
from .state import State


def least_interference(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Fill nodes in the order of the interference that job j adds to and gets from those there, then the roomiest.

    It is the sum, over the jobs on a node, of what each of the two adds to the compute of the other: the policy LIF
    that Harmony (Bao, Peng and Wu, INFOCOM 2019) is compared with.
    """
    speeds, model = state.batch.problem.speeds, state.batch.model[j]
    mutual = state.present @ (speeds.host[model] + speeds.host[:, model])
    nodes = np.flatnonzero(room)
    order = nodes[np.lexsort([nodes, -room[nodes], mutual[nodes]])].astype(np.int32)
    return take(order, room, degree)
