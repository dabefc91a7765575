"""What a policy of a round-based scheduler is."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

Index = NDArray[np.int64]


class Policy(Protocol):
    """Decides shares of time; the mechanism turns them into leases.

    Attributes:
        in_order: whether types are filled in the cluster's order, else in a random one each round.
        strict: whether a job without a share on a type never runs there, even if GPUs would idle.
    """

    in_order: bool
    strict: bool

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return each active job's share of time on each type, float64 (a, k), at most 1 in all.

        Args:
            active: the jobs that are there, ascending, int64 (a,); none where all that came are done.
            left: steps they still have to do, int64 (a,).
            age: seconds since they were submitted, float64 (a,).
        """
