"""What users, queues or sizes of jobs got of a schedule: waits, completion times, GPU-hours and their cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.instances.workload import Workload

from ..outcome import Outcome
from .series import available_gpus, period

HOUR = 3600.0
SIZES = ((1, "1 GPU"), (2, "2 GPUs"), (4, "3-4 GPUs"), (8, "5-8 GPUs"), (16, "9-16 GPUs"), (32, "17-32 GPUs"))
"""Classes of sizes: the largest number of GPUs of each, and its name."""
SIZE_NAMES = (*(name for _, name in SIZES), "more than 32 GPUs")
GROUPINGS = ("user", "queue", "size")


@dataclass(frozen=True, slots=True)
class GroupMetrics:
    """Hold what the jobs of a user, of a queue or of a size got; times in seconds, those of jobs that ran.

    Attributes:
        name: empty for the jobs of which the trace does not say it.
        jobs, rejected: that ran, and that were rejected.
        mean_wait, p95_wait: from submission to the first start.
        mean_jct, p95_jct: from submission to the finish.
        gpu_hours: what they held, shares added up, restoring included.
        share: of the GPU time from the first submission to the last finish, without nodes that were down.
        cost: GPU-hours at a price, `None` without one.
    """

    name: str
    jobs: int
    rejected: int
    mean_wait: float
    p95_wait: float
    mean_jct: float
    p95_jct: float
    gpu_hours: float
    share: float
    cost: float | None


def groups(outcome: Outcome, by: str, gpu_hour_price: float | None = None) -> list[GroupMetrics]:
    """Return what each user, queue or class of sizes got: sizes ascending, others with most GPU-hours first.

    Args:
        by: one of `GROUPINGS`.
        gpu_hour_price: of an hour of one GPU, in any currency.
    """
    names, member = members(outcome.workload, by)
    work, ran = outcome.workload, outcome.admitted
    hours = np.bincount(member[outcome.row_job], weights=outcome.held, minlength=len(names)) / HOUR
    _, last = period(outcome)
    there = float(available_gpus(outcome).integral(np.array([last]))[0]) / HOUR
    result = []
    for k, name in enumerate(names):
        mine = member == k
        own = mine & ran
        waits = _mean_and_p95(outcome.start[own] - work.submit[own])
        jcts = _mean_and_p95(outcome.finish[own] - work.submit[own])
        held, rejected = float(hours[k]), int((mine & ~ran).sum())
        share = held / there if there > 0 else 0.0
        cost = None if gpu_hour_price is None else held * gpu_hour_price
        result.append(GroupMetrics(name, int(own.sum()), rejected, *waits, *jcts, held, share, cost))
    return result if by == "size" else sorted(result, key=lambda group: (-group.gpu_hours, group.name))


def _mean_and_p95(seconds: FloatArray) -> tuple[float, float]:
    return (float(seconds.mean()), float(np.quantile(seconds, 0.95))) if len(seconds) else (0.0, 0.0)


def members(workload: Workload, by: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of groups that have jobs, and the group of each job, int64 (n,)."""
    require_choice(by, "by", GROUPINGS)
    if by == "size":
        kind, index = np.unique(np.searchsorted([top for top, _ in SIZES], workload.gpus), return_inverse=True)
        return [SIZE_NAMES[i] for i in kind.tolist()], np.asarray(index, dtype=np.int64)
    words: tuple[str, ...] = getattr(workload, by)
    number = {name: i for i, name in enumerate(dict.fromkeys(words))}
    return list(number), np.array([number[name] for name in words], dtype=np.int64)
