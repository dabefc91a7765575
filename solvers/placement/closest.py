"""TopDRL's allocators: the idle GPUs closest to a first one, which is chosen in three ways.

After Ayadi et al. (TopDRL, JPDC 204, 2025) and the group's earlier public code, as our notes on it have them.
"""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray

from .gang import nearest_first, take
from .state import State


def nearest(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Take the idle GPUs nearest to the first node that has one."""
    return take(nearest_first(state, int(np.argmax(room > 0))), room, degree)


def nearest_by_size(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Take the idle GPUs nearest to a node that the size of the gang picks.

    One GPU: the emptiest node of the rack with the fewest idle GPUs; two to four: the node that is filled best, or
    the emptiest there is; more: the emptiest node of the rack with the most.
    """
    gpus, free = degree * int(state.batch.each[j]), state.free_gpu
    if 1 < gpus <= 4:
        able = np.flatnonzero(room >= degree)
        seed = int(able[np.argmin(free[able])]) if len(able) else int(np.argmax(room))
    else:
        racks, idle = _idle(state, room)
        rack = racks[int(np.argmin(idle) if gpus <= 1 else np.argmax(idle))]
        inside = np.flatnonzero((state.batch.group[1] == rack) & (room > 0))
        seed = int(inside[np.argmax(free[inside])])
    return take(nearest_first(state, seed), room, degree)


def nearest_to_centre(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Take the idle GPUs nearest to the middle one of the rack that has the most of them."""
    racks, idle = _idle(state, room)
    inside = np.flatnonzero((state.batch.group[1] == racks[int(np.argmax(idle))]) & (room > 0))
    reached = np.cumsum(room[inside])
    seed = int(inside[np.searchsorted(reached, (reached[-1] + 1) // 2)])
    order = nearest_first(state, seed)
    distance = np.argsort(np.abs(order - seed), kind="stable")
    level = (state.batch.group != state.batch.group[:, seed][:, None]).sum(axis=0)[order[distance]]
    return take(order[distance][np.argsort(level, kind="stable")], room, degree)


def _idle(state: State, room: IntArray) -> tuple[IntArray, IntArray]:
    """Return the racks where the gang has room, and the idle GPUs that it can use in each."""
    nodes = np.flatnonzero(room)
    racks, inverse = np.unique(state.batch.group[1][nodes], return_inverse=True)
    return racks, np.bincount(inverse, weights=room[nodes]).astype(np.int32)
