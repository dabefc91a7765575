"""GPUs of a round, compiled: a job stays where it was if it can, larger jobs first; leases are written as they end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .state import ACTIVE, HELD, LEASES, NOW


@njit(cache=True)
def place(s: Any, chosen: Any, many: Any) -> None:
    """Give the chosen of each type their GPUs, extending leases; end the leases of all others."""
    stays = np.zeros(len(s.submit), dtype=np.bool_)
    first = 0
    for j in range(len(many)):
        row = chosen[j]
        _largest_first(row, many[j], s.gpus)
        taken = np.zeros(s.room[j], dtype=np.bool_)
        free, i = 0, 0
        while i < many[j]:
            upto = i
            while upto < many[j] and s.gpus[row[upto]] == s.gpus[row[i]]:
                if s.kind[row[upto]] == j:
                    stays[row[upto]] = _extend(s, row[upto], taken, first)
                upto += 1
            for at in range(i, upto):
                job = row[at]
                if not stays[job]:
                    close(s, job)
                    free = _start(s, job, j, taken, free, first)
                    stays[job] = True
            i = upto
        first += s.room[j]
    for i in range(s.counts[ACTIVE]):
        if not stays[s.ranking[0, i]]:
            close(s, s.ranking[0, i])


@njit(cache=True)
def _largest_first(row: Any, count: int, gpus: Any) -> None:
    for i in range(1, count):
        job, at = row[i], i
        while at and gpus[row[at - 1]] < gpus[job]:
            row[at] = row[at - 1]
            at -= 1
        row[at] = job


@njit(cache=True)
def _extend(s: Any, job: int, taken: Any, first: int) -> bool:
    """Keep a job's GPUs unless a larger one has got one of them."""
    at = s.own_at[job]
    for i in range(at, at + s.gpus[job]):
        if taken[s.own[i] - first]:
            return False
    for i in range(at, at + s.gpus[job]):
        taken[s.own[i] - first] = True
    return True


@njit(cache=True)
def _start(s: Any, job: int, kind: int, taken: Any, free: int, first: int) -> int:
    """Open a lease on the lowest free GPUs of a type; return where to look for more."""
    at = s.own_at[job]
    for i in range(at, at + s.gpus[job]):
        while taken[free]:
            free += 1
        taken[free] = True
        s.own[i] = first + free
    s.kind[job] = kind
    s.open_steps[job] = 0
    s.open_span[job, 0] = s.times[NOW]
    return free


@njit(cache=True)
def close(s: Any, job: int) -> None:
    """Write the open lease of a job, if it has one."""
    if s.kind[job] < 0:
        return
    row, held, at = s.counts[LEASES], s.counts[HELD], s.own_at[job]
    s.lease[row, 0], s.lease[row, 1], s.lease[row, 2] = job, s.kind[job], s.open_steps[job]
    s.span[row] = s.open_span[job]
    for i in range(s.gpus[job]):
        s.held[held + i] = s.own[at + i]
    s.counts[LEASES] += 1
    s.counts[HELD] += s.gpus[job]
    s.kind[job] = -1
