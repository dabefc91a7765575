"""Best fit, consolidated: the node that the gang fills best, or as few as hold it."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray

from .gang import compact
from .state import State


def best_fit(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Take the node with the fewest idle GPUs that holds the gang; of a larger gang fill nodes, the rest likewise."""
    able = np.flatnonzero(room >= degree)
    if len(able):
        return {int(able[np.argmin(state.free_gpu[able])]): degree}
    return compact(np.flatnonzero(room), room, degree)
