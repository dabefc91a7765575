"""Least attained service in discrete queues, as Tiresias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number

from ..rows import Long
from ..view import View

_SLACK = 1e-9


class Tiresias:
    """Run jobs that have held few GPU seconds before those that have held many; no duration is known.

    Discretised 2D-LAS of Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning" (NSDI 2019): the
    service attained, GPUs times time, picks one of the queues between the thresholds; the lower goes first, and within
    a queue the earlier submitted. Promotion of starving jobs is left out.

    Args:
        thresholds: GPU seconds, ascending; by default one and ten GPU hours.
    """

    preemptive = True
    steady = True

    def __init__(self, thresholds: Sequence[float] = (3600.0, 36000.0)) -> None:
        for i, value in enumerate(thresholds):
            require_number(value, f"thresholds[{i}]", positive=True)
            if i and value <= thresholds[i - 1]:
                raise InstanceError(f"thresholds[{i}]", f"{value!r} does not ascend")
        self.thresholds = np.array(thresholds, dtype=np.float64)
        self._reached = self.thresholds * (1 - _SLACK)  # waking at the very time, rounding may leave a little

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by queue."""
        return self._reached.searchsorted(view.attained(jobs), "right").astype(np.float64)

    def wake(self, view: View) -> float:
        """Look again when a running job comes to the next queue, if anyone waits."""
        if not len(view.waiting):
            return np.inf
        running = view.running
        attained = view.attained(running)
        queue = self._reached.searchsorted(attained, "right")
        on = queue < len(self.thresholds)
        if not on.any():
            return np.inf
        seconds = (self.thresholds[queue[on]] - attained[on]) / view.degree[running[on]]
        return float(max(view.now + seconds.min(), np.nextafter(view.now, np.inf)))
