"""The running jobs as columns, and which of them may be stopped for a waiting one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..state import SchedulerState


class RunningArrays(NamedTuple):
    """The n running jobs by submission; arrays are not to be changed.

    Attributes:
        row: of the first part of each in the tables of `RunningJobs`, int64 (n,).
        serial: their serial numbers, ascending, int64 (n,).
        end, since, price, settled, ready: see `RunningJob`, float64 (n,).
        payer: the account that pays, int64 (n,).
        level: the class, int64 (n,).
        wide: GPUs, int64 (n,).
        used: what they hold of what queues share, int64 (3, n).
    """

    row: np.ndarray
    serial: np.ndarray
    end: np.ndarray
    since: np.ndarray
    price: np.ndarray
    settled: np.ndarray
    ready: np.ndarray
    payer: np.ndarray
    level: np.ndarray
    wide: np.ndarray
    used: np.ndarray

    @classmethod
    def of(cls, state: SchedulerState) -> RunningArrays:
        """Return the jobs that run."""
        (end, since, price, settled, _), (_, wide, _, serial), used = state.running.table()
        ready, payer, level = state.running.standing()
        serial, row, job = np.unique(serial, return_index=True, return_inverse=True)
        first = [x[row] for x in (end, since, price, settled, ready, payer, level, wide)]
        sums = [np.bincount(job, used[r], len(row)).astype(np.int64) for r in range(3)]
        return cls._make([row, serial, *first, np.stack(sums)])


@dataclass(frozen=True, slots=True)
class Victims:
    """Those that may be stopped for a job, as `RunningArrays` has them; arrays are not to be changed.

    Attributes:
        cause: of each running job, an index of `CAUSES`, int64 (n,).
        over: number of the account that holds more than its share, 0 where that is not the cause, int64 (n,).
        level: their classes, int64 (n,).
        floor: of these accounts, the share down to which it may be brought, if not its guarantee.
    """

    cause: np.ndarray
    over: np.ndarray
    level: np.ndarray
    floor: Mapping[int, float]
