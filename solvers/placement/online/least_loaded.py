"""Least loaded: the node that has most left."""

from __future__ import annotations

from gangplan.instances.arrays import FloatArray

from .best_fit import left
from .policy import Scored, hundredths
from .slots import Slots
from .units import Long, Need


class LeastLoaded(Scored):
    """Balance the load: take the node where the weighted sum of what is left is greatest, and its emptiest GPU."""

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by what the task leaves in them, see `best_fit.left`."""
        return hundredths(left(state, wanted, slots)), state.free[slots, 0]
