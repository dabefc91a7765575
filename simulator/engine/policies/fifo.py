"""First in, first out."""

from __future__ import annotations

from gangplan.instances.arrays import FloatArray

from ..rows import Long
from ..view import View


class FIFO:
    """Run jobs in the order in which they were submitted: the default of Slurm's and of most queues."""

    steady = True

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by submit time."""
        return view.workload.submit[jobs]
