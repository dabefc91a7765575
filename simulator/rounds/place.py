"""GPUs of a round, compiled: a job stays where it was if it can, larger jobs first; leases are written as they end."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .state import HELD, LEASES, NOW, RUNNING, STAMP


@kernel
def place(s: Any) -> None:
    """Give the chosen of each type their GPUs, extending leases; end the leases of all others."""
    for i in range(s.counts[RUNNING]):
        if s.mark[s.running[i]] != s.counts[STAMP]:
            close(s, s.running[i])
    first = 0
    for j in range(len(s.room)):
        row = s.chosen[j, : s.many[j]].copy()
        _largest_first(row, s.gpus)
        taken = np.zeros(s.room[j], dtype=np.bool_)
        free, i = 0, 0
        while i < len(row):
            upto = i
            while upto < len(row) and s.gpus[row[upto]] == s.gpus[row[i]]:
                if s.kind[row[upto]] >= 0 and (s.kind[row[upto]] != j or not _extend(s, row[upto], taken, first)):
                    close(s, row[upto])
                upto += 1
            for at in range(i, upto):
                if s.kind[row[at]] < 0:
                    free = _start(s, row[at], j, taken, free, first)
            i = upto
        first += s.room[j]


@kernel
def _largest_first(row: Any, gpus: Any) -> None:
    for i in range(1, len(row)):
        job, at = row[i], i
        while at and gpus[row[at - 1]] < gpus[job]:
            row[at] = row[at - 1]
            at -= 1
        row[at] = job


@kernel
def _extend(s: Any, job: int, taken: Any, first: int) -> bool:
    """Keep a job's GPUs unless a larger one has got one of them."""
    at = s.own_at[job]
    for i in range(at, at + s.gpus[job]):
        if taken[s.own[i] - first]:
            return False
    for i in range(at, at + s.gpus[job]):
        taken[s.own[i] - first] = True
    return True


@kernel
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


@kernel
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
