"""The speed of every job of a snapshot under a hidden truth, and how far jobs get; compiled.

A step takes the compute of the slowest worker plus the synchronisation through the busiest link. Whoever is on the
same server adds to the compute; whoever crosses the same link adds to the synchronisation. These are the formulas of
`gangplan.instances.placement.rate` (docs/placement.md) with more known: what parameter servers do to those beside them,
servers and links of unequal quality, and a synchronisation that is measured and not proportional to bytes.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, cfunc, final, nogil, void
from numpy.typing import NDArray

if not cython.compiled:
    from gangplan.solvers.native import Float, Floats, Int, Ints, within

    CONTENTION, PAIRS, LINKS = range(3)
    """How jobs slow one another down: by contention; by a table of pairs on a server; by a table of pairs on a link."""


@final
@cclass
class Crossings:
    """The links that jobs cross.

    Attributes:
        link: by which link a server's traffic leaves its group of each level, (L, m).
        links: that are crossed, (c,).
        behind: workers and parameter servers of the job behind each of them, (c, 2).
    """

    def __init__(self, link: NDArray[np.int64], links: Int, most: Int) -> None:
        if not within(link.ravel(), links, False):
            raise ValueError(f"{link} are not below {links}")
        self.link, self.links, self.behind = link, np.zeros(most, np.int64), np.zeros((most, 2), np.int64)


@final
@cclass
class HiddenArrays:
    """The arrays of `truths.Hidden`, see there, and what is written to between two snapshots.

    Attributes:
        tasks: workers of each type and parameter servers of each type on each server, (m, 2 K).
        load: duties of the jobs that cross each link, (X,).
        marked: links that a job crosses, (X,).
        cross: those of one job.
    """

    def __init__(self, hidden: Any) -> None:
        self.mode, link, self.step, self.sync, self.batches, self.host, *rest = hidden
        self.socket, self.duty, self.quality, self.row, self.kept, self.alone = rest
        (levels, m), k, x, q, spreads = link.shape, len(self.step), len(self.quality), len(self.alone), rest[3].shape[1]
        shapes = [(k,), (k, 2), (k,), (2 * k, 2 * k), (m,), (k,), (x,), (k, max(1, spreads)), (q, q), (q,)]
        if [y.shape for y in hidden[2:]] != shapes or not 0 <= self.mode <= LINKS:
            raise ValueError(f"{self.mode}, {[y.shape for y in hidden[2:]]} are no mode of three and not {shapes}")
        if self.mode != CONTENTION and not within(rest[3].ravel(), q, False):
            raise ValueError(f"{rest[3]} are no rows of {q}")
        self.cross, self.tasks = Crossings(link, x, levels * m), np.zeros((m, 2 * k))
        self.load, self.marked = np.zeros(x), np.zeros(x, np.uint8)


@final
@cclass
class SnapshotArrays:
    """The arrays of `Snapshots`, see there, of their own, and the epochs a second of each job, (n,)."""

    def __init__(self, now: Any, types: Int, servers: Int) -> None:
        arrays = [x.copy() for x in (now.first, now.kind, now.rows, now.server, now.workers, now.ps)]
        self.first, self.kind, self.rows, self.server, self.workers, self.ps = arrays
        self.speed, n, rows = np.zeros(len(arrays[1])), len(arrays[1]), len(arrays[3])
        sound = len(self.rows) == n + 1 and len(self.workers) == len(self.ps) == rows
        sound = sound and within(self.first, n + 1, True) and within(self.rows, rows + 1, True)
        if not (sound and within(self.kind, types, False) and within(self.server, servers, False)):
            raise ValueError(f"{arrays} are no jobs of {types} types on {servers} servers")


@cfunc
@nogil
def crossed(to: Crossings, now: SnapshotArrays, job: Int, begin: Int) -> Int:
    """Write the links that a job crosses from `begin` on, level by level, and its tasks behind each; return the end."""
    for level in range(len(to.link)):
        end: Int = begin
        for row in range(now.rows[job], now.rows[job + 1]):
            own = to.link[level, now.server[row]]
            at: Int = begin
            while at < end and to.links[at] != own:
                at += 1
            if at == end:
                end += 1
                to.links[at] = own
                to.behind[at, 0] = to.behind[at, 1] = 0
            to.behind[at, 0] += now.workers[row]
            to.behind[at, 1] += now.ps[row]
        if end < begin + 2:
            break
        begin = end
    return begin


@cfunc
@nogil
def _enter(hidden: HiddenArrays, now: SnapshotArrays, begin: Int, end: Int, sign: Float) -> void:
    """Add the tasks and the duties of jobs, or take them off."""
    for job in range(begin, end):
        kind = now.kind[job]
        for row in range(now.rows[job], now.rows[job + 1]):
            hidden.tasks[now.server[row], kind] += sign * now.workers[row]
            hidden.tasks[now.server[row], len(hidden.step) + kind] += sign * now.ps[row]
        for at in range(crossed(hidden.cross, now, job, 0)):
            hidden.load[hidden.cross.links[at]] += sign * hidden.duty[kind]


@cfunc
@nogil
def _suffers(hidden: HiddenArrays, now: SnapshotArrays, job: Int, part: Int) -> Float:
    """Return by what the slowest worker (`part` 0) or parameter server (1) of a job is slowed down, 1 being alone."""
    worst: Float = 1.0
    types, kind = len(hidden.step), now.kind[job]
    mine: Int = part * types + kind
    for row in range(now.rows[job], now.rows[job + 1]):
        if (now.ps[row] if part else now.workers[row]) == 0:
            continue
        server = now.server[row]
        more: Float = 0.0
        for other in range(2 * types):
            more += hidden.host[mine, other] * hidden.tasks[server, other]
        more -= hidden.host[mine, kind] * now.workers[row]
        more -= hidden.host[mine, types + kind] * now.ps[row]
        worst = max(worst, 1.0 + hidden.socket[server] * more)
    return worst


@cfunc
@nogil
def _synchronises(hidden: HiddenArrays, now: SnapshotArrays, job: Int) -> Float:
    """Return the seconds of synchronisation of a job, through the link on which it takes longest."""
    kind = now.kind[job]
    once, twice = hidden.sync[kind, 0], hidden.sync[kind, 1]
    worst: Float = 0.0
    workers: Int = 0
    servers: Int = 0
    for row in range(now.rows[job], now.rows[job + 1]):
        workers += now.workers[row]
        servers += now.ps[row]
    for at in range(crossed(hidden.cross, now, job, 0)):
        link, here, beside = hidden.cross.links[at], hidden.cross.behind[at, 0], hidden.cross.behind[at, 1]
        times: Float = 2.0 * (workers - 1) / workers
        if servers > 0:
            times = 1.0 * (here * (servers - beside) + beside * (workers - here)) / servers
        seconds: Float = once * times if times < 1.0 else once + (twice - once) * (times - 1.0)
        if times > 2.0:
            seconds = twice * times / 2.0
        shared = 1.0 + max(hidden.load[link] - hidden.duty[kind], 0.0)
        worst = max(worst, seconds * shared / hidden.quality[link])
    return worst


@cfunc
@nogil
def _on_servers(hidden: HiddenArrays, now: SnapshotArrays, job: Int) -> Float:
    """Return the seconds of a step by the table of pairs on a server: each task there takes its share, one by one."""
    worst: Float = 1.0
    kind = now.kind[job]
    for row in range(now.rows[job], now.rows[job + 1]):
        slower: Float = 1.0
        for other in range(len(hidden.step)):
            beside = hidden.tasks[now.server[row], other] - (1.0 if other == kind else 0.0)
            if beside > 0.0:
                slower /= hidden.kept[hidden.row[kind, 0], hidden.row[other, 0]] ** beside
        worst = max(worst, slower)
    return hidden.step[kind] * worst


@cfunc
@nogil
def _table_row(hidden: HiddenArrays, now: SnapshotArrays, job: Int) -> Int:
    """Return the row of the table for a job on 1, up to 2, 4, 8 or more servers."""
    at: Int = 0
    size: Int = 1
    while size < now.rows[job + 1] - now.rows[job] and at < hidden.row.shape[1] - 1:
        size *= 2
        at += 1
    return hidden.row[now.kind[job], at]


@cfunc
@nogil
def _on_links(hidden: HiddenArrays, now: SnapshotArrays, begin: Int, end: Int, job: Int) -> Float:
    """Return the seconds of a step by the table of pairs on links: each job that shares one takes its share."""
    mine = _table_row(hidden, now, job)
    seconds: Float = hidden.alone[mine]
    for at in range(crossed(hidden.cross, now, job, 0)):
        hidden.marked[hidden.cross.links[at]] = True
    for other in range(begin, end):
        meet: bint = False
        for at in range(crossed(hidden.cross, now, other, 0)):
            meet = meet or hidden.marked[hidden.cross.links[at]]
        if other != job and meet:
            seconds /= hidden.kept[mine, _table_row(hidden, now, other)]
    for at in range(len(hidden.marked)):
        hidden.marked[at] = False
    return seconds


@cfunc
@nogil
def _write_speeds(hidden: HiddenArrays, now: SnapshotArrays, begin: Int, end: Int) -> void:
    """Write the epochs a second of the jobs of one snapshot."""
    _enter(hidden, now, begin, end, 1.0)
    for job in range(begin, end):
        kind = now.kind[job]
        workers: Int = 0
        for row in range(now.rows[job], now.rows[job + 1]):
            workers += now.workers[row]
        step: Float
        if hidden.mode == CONTENTION:
            step = hidden.step[kind] * _suffers(hidden, now, job, 0)
            sync = _synchronises(hidden, now, job)
            if sync > 0.0:
                step += sync * _suffers(hidden, now, job, 1)
        elif hidden.mode == PAIRS:
            step = _on_servers(hidden, now, job)
        else:
            step = _on_links(hidden, now, begin, end, job)
        now.speed[job] = workers / (step * hidden.batches[kind])
    _enter(hidden, now, begin, end, -1.0)


def all_speeds(hidden: Any, now: Any) -> NDArray[np.float64]:
    """Return the epochs a second of each job of all `Snapshots` under a `truths.Hidden`, float64 (n,)."""
    truth = HiddenArrays(hidden)
    arrays = SnapshotArrays(now, len(truth.step), len(truth.socket))
    with nogil:
        for at in range(len(arrays.first) - 1):
            _write_speeds(truth, arrays, arrays.first[at], arrays.first[at + 1])
    return np.asarray(arrays.speed)


def advance(
    hidden: Any, now: Any, left: Floats, begin: Float, until: Float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Run jobs up to a time; whoever ends leaves, and speeds are known anew.

    Args:
        hidden: the truth.
        now: one snapshot of n jobs.
        left: epochs that each has to do, float64 (n,).
        begin, until: seconds.

    Returns:
        Of each job the epochs it did, when it ended, infinite if it did not, and its speed at the beginning.
    """
    truth = HiddenArrays(hidden)
    arrays = SnapshotArrays(now, len(truth.step), len(truth.socket))
    n = len(arrays.kind)
    if len(left) != n:
        raise ValueError(f"{len(left)} are not epochs of {n} jobs")
    done: Floats = np.zeros(n)
    opening: Floats = np.zeros(n)
    end: Floats = np.full(n, np.inf)
    index: Ints = np.arange(n)
    with nogil:
        _advance(truth, arrays, left, begin, until, done, opening, end, index)
    return np.asarray(done), np.asarray(end), np.asarray(opening)


@cfunc
@nogil
def _advance(
    hidden: HiddenArrays,
    now: SnapshotArrays,
    left: Floats,
    time: Float,
    until: Float,
    done: Floats,
    opening: Floats,
    end: Floats,
    index: Ints,
) -> void:
    count: Int = len(left)
    while count > 0:
        _write_speeds(hidden, now, 0, count)
        step: Float = until - time
        for at in range(count):
            job = index[at]
            if count == len(left):
                opening[job] = now.speed[at]
            step = min(step, (left[job] - done[job]) / now.speed[at])
        kept: Int = 0
        used: Int = 0
        for at in range(count):
            job = index[at]
            done[job] += now.speed[at] * step
            if time + (left[job] - done[job]) / now.speed[at] <= time + 1e-6:
                done[job], end[job] = left[job], time + step
                continue
            begin: Int = now.rows[at]
            stop: Int = now.rows[at + 1]
            index[kept], now.kind[kept], now.rows[kept] = job, now.kind[at], used
            for row in range(begin, stop):
                now.server[used], now.workers[used], now.ps[used] = now.server[row], now.workers[row], now.ps[row]
                used += 1
            kept += 1
        now.rows[kept] = used
        time += step
        if time >= until:
            break
        count = kept
