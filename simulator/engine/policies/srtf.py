"""Shortest remaining time first."""

from __future__ import annotations

from gangplan.instances.arrays import FloatArray

from ..rows import Long
from ..view import View


class SRTF:
    """Run whoever has least left to do, and stop others for it.

    Schrage, "A proof of the optimality of the shortest remaining processing time discipline" (Operations Research
    1968): on one machine no policy has a lower mean completion time. It needs to know durations.
    """

    preemptive = True
    steady = True

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by the work left."""
        return view.left(jobs)
