"""Where tasks fit, and how far running jobs get in an interval, compiled."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.compiled.kernel import Bools, Bools2, Floats, Floats2, inner, kernel

from .speeds import Hidden, Where, scratch, write_speeds

_SLACK = 1e-9
"""Of demands that add up to what there is."""


@inner
def room_for(free: Floats, need: Floats, most: int) -> int:
    """Return how many tasks of a demand fit into what a server has free, up to `most`."""
    fits = float(most)
    for x in range(len(need)):
        if need[x] > 0.0:
            fits = min(fits, np.floor(free[x] / need[x] * (1.0 + _SLACK) + _SLACK))
    return int(max(fits, 0.0))


@inner
def reach(free: Floats2, worker: Floats, ps: Floats, workers: int, servers: int, extra: int, need: Floats) -> int:
    """Return how many servers, from the first on, hold all tasks when server `extra` has `need` less; m + 1 if none do.

    Server by server, `best[w]` is the most parameter servers that find a place besides w workers.
    """
    if workers + servers == 0:
        return 0
    best, beside = np.full(workers + 1, -1), np.empty(workers + 1, dtype=np.int64)
    best[0] = 0
    rest = np.empty(free.shape[1])
    for s in range(len(free)):
        for x in range(len(rest)):
            rest[x] = free[s, x] - (need[x] if s == extra else 0.0)
        most = room_for(rest, worker, workers)
        for here in range(most + 1):
            beside[here] = room_for(rest, ps, servers)
            for x in range(len(rest)):
                rest[x] -= worker[x]
        for w in range(workers, -1, -1):
            found = -1
            for here in range(min(most, w) + 1):
                if best[w - here] >= 0:
                    found = max(found, min(servers, best[w - here] + beside[here]))
            best[w] = found
        if best[workers] >= servers:
            return s + 1
    return len(free) + 1


@kernel
def servers_for(free: Floats2, worker: Floats, ps: Floats, workers: int, servers: int) -> int:
    """Return how many servers, from the first on, hold all tasks of a job in what is free, (m, 3); m + 1 if none do."""
    return reach(free, worker, ps, workers, servers, -1, worker)


@inner
def mask_row(free: Floats2, worker: Floats, ps: Floats, workers: int, servers: int, need: Floats, row: Bools) -> None:
    """Mark where a task of some need may go so that these other tasks still fit."""
    enough = reach(free, worker, ps, workers, servers, -1, worker)
    for s in range(len(free) if enough <= len(free) else 0):
        if room_for(free[s], need, 1) == 1:  # beyond those that are enough for the others, one is as good as any
            row[s] = s >= enough or reach(free, worker, ps, workers, servers, s, need) <= len(free)


@kernel
def task_mask(free: Floats2, worker: Floats, ps: Floats, workers: int, servers: int) -> Bools2:
    """Return where a worker and a parameter server may go so that all other tasks still fit, (2, m)."""
    mask = np.zeros((2, len(free)), dtype=np.bool_)
    if workers > 0:
        mask_row(free, worker, ps, workers - 1, servers, worker, mask[0])
    if servers > 0:
        mask_row(free, worker, ps, workers, servers - 1, ps, mask[1])
    return mask


@kernel
def advance(hidden: Hidden, where: Where, left: Floats, now: float, until: float) -> tuple[Floats, Floats, Floats]:
    """Run jobs up to a time; whoever ends leaves, and speeds are known anew.

    Args:
        hidden: the truth.
        where: one snapshot of n jobs.
        left: epochs that each has to do, (n,).
        now, until: seconds.

    Returns:
        Of each job the epochs it did, when it ended, infinite if it did not, and its speed at the beginning.
    """
    n = len(left)
    kind, rows, speed = where.kind.copy(), where.rows.copy(), np.zeros(n)
    server, workers, ps = where.server.copy(), where.workers.copy(), where.ps.copy()
    done, end, opening = np.zeros(n), np.full(n, np.inf), np.zeros(n)
    here, use, index = Where(where.first, kind, rows, server, workers, ps), scratch(hidden), np.arange(n)
    count, begun = n, False
    while count > 0:
        write_speeds(hidden, here, 0, count, use, speed)
        if not begun:
            opening[:], begun = speed, True
        step = until - now
        for at in range(count):
            step = min(step, (left[index[at]] - done[index[at]]) / speed[at])
        kept, used = 0, 0
        for at in range(count):
            job = index[at]
            done[job] += speed[at] * step
            if now + (left[job] - done[job]) / speed[at] <= now + 1e-6:
                done[job], end[job] = left[job], now + step
                continue
            index[kept], kind[kept] = job, kind[at]
            begin, stop = rows[at], rows[at + 1]
            rows[kept] = used
            for row in range(begin, stop):
                server[used], workers[used], ps[used] = server[row], workers[row], ps[row]
                used += 1
            kept += 1
        rows[kept] = used
        now += step
        if now >= until:
            break
        count = kept
    return done, end, opening
