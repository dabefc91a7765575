"""The speed of every job of a snapshot under a hidden truth, where tasks fit, and how far jobs get; compiled.

A step takes the compute of the slowest worker plus the synchronisation through the busiest link. Whoever is on the
same server adds to the compute; whoever crosses the same link adds to the synchronisation. These are the formulas of
`gangplan.instances.placement.rate` (docs/placement.md) with more known: what parameter servers do to those beside them,
servers and links of unequal quality, and a synchronisation that is measured and not proportional to bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Bools, Bools2, Floats, Floats2, Ints, Ints2, inner, kernel

CONTENTION, PAIRS, LINKS = range(3)
"""How jobs slow one another down: by contention; by a table of pairs on a server; by a table of pairs on a link."""
SPREADS = 5
"""Numbers of servers of which a table of pairs on links knows speeds: up to 1, 2, 4, 8 and more."""


class Hidden(NamedTuple):
    """A truth: K types, m servers, X links of L levels, Q rows of a table.

    Attributes:
        mode: one of those above.
        link: by which link a server's traffic leaves its group of each level, the server itself first, (L, m).
        step: seconds of a step on one server, alone, (K,).
        sync: seconds that are added when the busiest link carries the model once, and twice, in each direction, (K, 2).
        batches: that make an epoch, (K,).
        host: what a task adds to the time of another on its server, as a share of it: row the one that suffers, column
            the one that is there, workers of each type and then parameter servers, (2 K, 2 K).
        socket: by how much that is multiplied on each server, (m,).
        duty: share of the time that a job of each type loads the links that it crosses, (K,).
        quality: bandwidth of each link, 1 being that of which `sync` was measured, (X,).
        row: of the table, for a type on so many servers, (K, SPREADS).
        kept: share of its speed that the row keeps beside the column, (Q, Q).
        alone: seconds of a step of each row of the table alone, (Q,).
    """

    mode: int
    link: Ints2
    step: Floats
    sync: Floats2
    batches: Floats
    host: Floats2
    socket: Floats
    duty: Floats
    quality: Floats
    row: Ints2
    kept: Floats2
    alone: Floats


class Where(NamedTuple):
    """The fields of `Snapshots`, see there."""

    first: Ints
    kind: Ints
    rows: Ints
    server: Ints
    workers: Ints
    ps: Ints


class SpeedScratch(NamedTuple):
    """What is written to between two snapshots.

    Attributes:
        tasks: workers of each type and parameter servers of each type on each server, (m, 2 K).
        load: duties of the jobs that cross each link, (X,).
        marked: links that a job crosses, (X,).
        links: that a job crosses, the first of them, (X,).
        behind: its workers and parameter servers behind each of them, (X, 2).
    """

    tasks: Floats2
    load: Floats
    marked: Bools
    links: Ints
    behind: Ints2


@inner
def scratch(hidden: Hidden) -> SpeedScratch:
    """Return empty scratch."""
    links, types = len(hidden.quality), len(hidden.step)
    return SpeedScratch(
        np.zeros((len(hidden.socket), 2 * types)),
        np.zeros(links),
        np.zeros(links, dtype=np.bool_),
        np.empty(links, dtype=np.int64),
        np.empty((links, 2), dtype=np.int64),
    )


@inner
def crossed(link: Ints2, where: Where, job: int, begin: int, links: Ints, behind: Ints2) -> int:
    """Write the links that a job crosses, level by level, and its tasks behind each, and return the end.

    Args:
        link: by which link a server's traffic leaves its group of each level, (L, m).
        where, job: the job.
        begin: of what is written.
        links: that it crosses, (X,).
        behind: its workers and parameter servers behind each of them, (X, 2).
    """
    for level in range(len(link)):
        end = begin
        for row in range(where.rows[job], where.rows[job + 1]):
            own, at = link[level, where.server[row]], begin
            while at < end and links[at] != own:
                at += 1
            if at == end:
                end += 1
                links[at], behind[at, 0], behind[at, 1] = own, 0, 0
            behind[at, 0] += where.workers[row]
            behind[at, 1] += where.ps[row]
        if end < begin + 2:
            break
        begin = end
    return begin


@inner
def enter(hidden: Hidden, where: Where, begin: int, end: int, use: SpeedScratch, sign: float) -> None:
    """Add the tasks and the duties of jobs, or take them off."""
    types = len(hidden.step)
    for job in range(begin, end):
        kind = where.kind[job]
        for row in range(where.rows[job], where.rows[job + 1]):
            use.tasks[where.server[row], kind] += sign * where.workers[row]
            use.tasks[where.server[row], types + kind] += sign * where.ps[row]
        for at in range(crossed(hidden.link, where, job, 0, use.links, use.behind)):
            use.load[use.links[at]] += sign * hidden.duty[kind]


@inner
def suffers(hidden: Hidden, where: Where, job: int, part: int, use: SpeedScratch) -> float:
    """Return by what the slowest worker (`part` 0) or parameter server (1) of a job is slowed down, 1 being alone."""
    types, kind, worst = len(hidden.step), where.kind[job], 1.0
    for row in range(where.rows[job], where.rows[job + 1]):
        if (where.ps[row] if part else where.workers[row]) == 0:
            continue
        server, more = where.server[row], 0.0
        for other in range(2 * types):
            more += hidden.host[part * types + kind, other] * use.tasks[server, other]
        more -= hidden.host[part * types + kind, kind] * where.workers[row]
        more -= hidden.host[part * types + kind, types + kind] * where.ps[row]
        worst = max(worst, 1.0 + hidden.socket[server] * more)
    return worst


@inner
def synchronises(hidden: Hidden, where: Where, job: int, use: SpeedScratch) -> float:
    """Return the seconds of synchronisation of a job, through the link on which it takes longest."""
    kind, worst, workers, servers = where.kind[job], 0.0, 0, 0
    for row in range(where.rows[job], where.rows[job + 1]):
        workers += where.workers[row]
        servers += where.ps[row]
    for at in range(crossed(hidden.link, where, job, 0, use.links, use.behind)):
        here, beside = use.behind[at, 0], use.behind[at, 1]
        times = 2.0 * (workers - 1) / workers
        if servers > 0:
            times = (here * (servers - beside) + beside * (workers - here)) / servers
        once, twice = hidden.sync[kind, 0], hidden.sync[kind, 1]
        seconds = once * times if times < 1.0 else once + (twice - once) * (times - 1.0)
        if times > 2.0:
            seconds = twice * times / 2.0
        shared = 1.0 + max(use.load[use.links[at]] - hidden.duty[kind], 0.0)
        worst = max(worst, seconds * shared / hidden.quality[use.links[at]])
    return worst


@inner
def on_servers(hidden: Hidden, where: Where, job: int, use: SpeedScratch) -> float:
    """Return the seconds of a step by the table of pairs on a server: each task there takes its share, one by one."""
    kind, worst = where.kind[job], 1.0
    for row in range(where.rows[job], where.rows[job + 1]):
        slower = 1.0
        for other in range(len(hidden.step)):
            beside = use.tasks[where.server[row], other] - (other == kind)
            if beside > 0.0:
                slower /= hidden.kept[hidden.row[kind, 0], hidden.row[other, 0]] ** beside
        worst = max(worst, slower)
    return float(hidden.step[kind] * worst)


@inner
def spread(where: Where, job: int) -> int:
    """Return which of the `SPREADS` a job has."""
    at, size = 0, 1
    while size < where.rows[job + 1] - where.rows[job] and at < SPREADS - 1:
        size *= 2
        at += 1
    return at


@inner
def on_links(hidden: Hidden, where: Where, begin: int, end: int, job: int, use: SpeedScratch) -> float:
    """Return the seconds of a step by the table of pairs on links: each job that shares one takes its share."""
    mine = hidden.row[where.kind[job], spread(where, job)]
    seconds = hidden.alone[mine]
    for at in range(crossed(hidden.link, where, job, 0, use.links, use.behind)):
        use.marked[use.links[at]] = True
    for other in range(begin, end):
        meet = False
        for at in range(crossed(hidden.link, where, other, 0, use.links, use.behind)):
            meet = meet or use.marked[use.links[at]]
        if other != job and meet:
            seconds /= hidden.kept[mine, hidden.row[where.kind[other], spread(where, other)]]
    use.marked[:] = False
    return float(seconds)


@inner
def write_speeds(hidden: Hidden, where: Where, begin: int, end: int, use: SpeedScratch, out: Floats) -> None:
    """Write the epochs a second of the jobs of one snapshot."""
    enter(hidden, where, begin, end, use, 1.0)
    for job in range(begin, end):
        kind, workers = where.kind[job], 0
        for row in range(where.rows[job], where.rows[job + 1]):
            workers += where.workers[row]
        if hidden.mode == CONTENTION:
            step = hidden.step[kind] * suffers(hidden, where, job, 0, use)
            sync = synchronises(hidden, where, job, use)
            if sync > 0.0:
                step += sync * suffers(hidden, where, job, 1, use)
        elif hidden.mode == PAIRS:
            step = on_servers(hidden, where, job, use)
        else:
            step = on_links(hidden, where, begin, end, job, use)
        out[job] = workers / (step * hidden.batches[kind])
    enter(hidden, where, begin, end, use, -1.0)


@kernel
def all_speeds(hidden: Hidden, where: Where) -> Floats:
    """Return the epochs a second of each job of all snapshots, (n,)."""
    out, use = np.zeros(len(where.kind)), scratch(hidden)
    for at in range(len(where.first) - 1):
        write_speeds(hidden, where, where.first[at], where.first[at + 1], use, out)
    return out


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
