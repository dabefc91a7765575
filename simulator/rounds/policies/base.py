"""What a policy is, and what several share."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..cluster import Cluster
from ..jobs import RoundJobs

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


class Groups:
    """Jobs that an allocation treats alike, so that its LP has a row a group and not a row a job.

    Args:
        key: what tells jobs apart, float64 (n, c).
    """

    def __init__(self, key: FloatArray) -> None:
        rows, first, of = np.unique(key, axis=0, return_index=True, return_inverse=True)
        self.rows: FloatArray = rows
        self.first: Index = first
        self.of: Index = of.reshape(-1)

    def count(self, active: Index) -> tuple[Index, Index, Index]:
        """Return (groups that are there, int64 (m,), jobs of each, and the row of each active job among them)."""
        many = np.bincount(self.of[active], minlength=len(self.rows))
        there = np.flatnonzero(many)
        place = np.zeros(len(self.rows), dtype=np.int64)
        place[there] = np.arange(len(there))
        return there, many[there], place[self.of[active]]


def equal_speed(jobs: RoundJobs, cluster: Cluster) -> FloatArray:
    """Return the steps a second that each job would make on an equal mix of all GPUs, float64 (n,)."""
    room = np.array(cluster.count, dtype=np.float64)
    result: FloatArray = jobs.speed @ (room / room.sum())
    return result
