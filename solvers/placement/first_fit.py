"""First fit: the nodes in their order."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray

from .gang import take
from .state import State


def first_fit(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Fill the nodes in their order."""
    return take(np.arange(len(room), dtype=np.int32), room, degree)
