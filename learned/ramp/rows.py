"""What a decision looks like to the network: a row for rejecting the job, and one for each block that could take it.

The counts of the blocks that a candidate leaves are sums of messages; the network's first layer turns them into a sum
of learned ones. See `gangplan.learned.ramp.candidates`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .candidates import CLASSES, N_LEVELS, Desk, find
from .candidates import desk as _desk
from .history import CONTEXT, write_context
from .tables import Tables

JOB = ("beta", "sequential", "acceptable")
CANDIDATE = ("taken", "degree", "turns", "area", "slack", "efficiency", "fast", "wasted")
WIDTH = 2 * CLASSES * N_LEVELS + len(CONTEXT) + len(JOB) + len(CANDIDATE)
"""Features of a row."""

_EPSILON = 1e-9


def desk(tables: Tables, *, choose: bool = True) -> Desk:
    """Return arrays for the rows of one cluster, see `gangplan.learned.ramp.candidates.desk`."""
    return _desk(tables, WIDTH, choose=choose)


@kernel
def write_rows(
    end: Any, now: float, turn: float, tables: Any, jct: Any, sequential: float, beta: float, sums: Any, desk: Any
) -> int:
    """Write the rows of one decision into the desk and return their number; row 0 rejects the job.

    Args:
        end: when each server is free, float64 (n,).
        now: the time.
        turn: the unit of time.
        tables: of the cluster.
        jct: of the job in each shape, float64 (s,).
        sequential: of the job.
        beta: the share of it that is acceptable.
        sums: of the jobs so far, this one included.
        desk: is written.
    """
    context, job, own = np.zeros(len(CONTEXT)), np.zeros(len(JOB)), np.zeros(len(CANDIDATE))
    write_context(sums, (end > now).sum() / tables.n, tables.n, turn, context)
    limit = beta * sequential
    job[0], job[1], job[2] = beta, np.log1p(sequential / (32 * turn)), 0.3 * np.log1p(limit / turn)
    k = find(end, now, turn, tables, jct, limit, desk)
    for i in range(k):
        b = desk.block[i]
        if b >= 0:
            time, size = jct[tables.shape[b]], tables.size[b]
            own[0], own[1], own[2] = 1.0, np.log2(size) / 4, 0.3 * np.log1p(time / turn)
            own[3], own[4], own[5] = time * size / (32 * turn), time / limit, sequential / (time * size)
            own[6], own[7] = tables.fast[tables.shape[b]], np.ceil(time / turn - _EPSILON) - time / turn
        _write(desk.row[i], desk.left[i], tables.n, context, job, own)
    return k


@kernel
def _write(row: Any, count: Any, servers: int, context: Any, job: Any, own: Any) -> None:
    """Write the features: counts by density and presence, then what is known of the past, the job, the candidate."""
    at, scale = 0, 32.0 / servers
    for q in range(CLASSES):
        for level in range(N_LEVELS):
            row[at] = 0.3 * np.log1p(count[q, level] * scale)
            row[at + 1] = 1.0 if count[q, level] > 0 else 0.0
            at += 2
    for part in (context, job, own):
        for value in part:
            row[at] = value
            at += 1
