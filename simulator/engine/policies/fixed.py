"""Policies that order the queue for good when a job arrives: the table of the fast simulator."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.workload import Workload

from ...trace.policies import POLICIES
from ..rows import Long
from ..view import View


class Fixed:
    """First in first out, shortest or longest job first, fewest GPUs, least work.

    Shortest first has the least mean wait of all that do not preempt, on one machine (Smith, Naval Research Logistics
    Quarterly 1956); longest first keeps the makespan low (Graham, SIAM Journal on Applied Mathematics 1969).

    Args:
        name: one of `gangplan.simulator.trace.POLICIES`.
    """

    steady = True

    def __init__(self, name: str = "fifo") -> None:
        if name not in POLICIES:
            raise InstanceError("name", f"{name!r} is not one of {', '.join(POLICIES)}")
        self.name = name
        self._of: Workload | None = None
        self._keys: FloatArray = np.zeros(0)

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by the table's figure."""
        if self._of is not view.workload:
            self._of, self._keys = view.workload, POLICIES[self.name](view.workload)
        return self._keys[jobs]
