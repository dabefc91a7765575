"""Ruin and recreate on a whole placement, compiled: some gangs go, and come back where the batch gains most."""

from __future__ import annotations

import cython
from cython import bint, declare, nogil
from cython.cimports.libc.math import fabs, isfinite

from ...native import Random

if not cython.compiled:
    from ...native import Float, Int, Ints, Ints3, within
    from .arrays import FRAGMENTATION, RUIN, BatchArrays, Placement
    from .gpus import renew_node
    from .moves import add, find_room, put_down, remove, settle
    from .places import better, copy_rows, insert, put

VIEW = declare(Int, 64)
"""Nodes that are looked at in a round, where there are more."""
WINDOW = declare(Int, 16)
"""Those of them that stand side by side."""
ALL = declare(Int, 128)
"""Nodes that are all looked at when a job is inserted; of more, only a view: a quarter of the time, .3% worse."""
MARGIN = declare(Float, 0.1)
"""How much worse than the best a placement may be and be kept at first, in terms of what a job costs in the mean."""
NEVER = declare(Float, float("inf"))


def search(
    given: BatchArrays,
    now: Placement,
    best: Ints3,
    count: Ints,
    queue: Ints,
    first: Int,
    last: Int,
    rounds: Int,
    seed: Int,
) -> float:
    """Insert the jobs of a queue, or do some rounds of ruin and recreate; return the least cost.

    The jobs of the queue are put where the batch gains most, one after the other; once one finds no place it is noted
    in `changed`, and -1 is returned. Of the rounds, two for each job come first, in which every gang that costs more
    than it must is put back by itself. Then each takes off such a gang, drawn by how much, with some beside it, where
    it might go or anywhere; they come back in random order or the largest first. A result that is hardly worse is kept
    (record-to-record travel, Dueck 1993), the margin shrinking to none.

    Args:
        now: where all are, changed; empty before the first job or round.
        best, count: rows of each job, (J, R, 3), and how many, (J,), in the best placement so far; changed.
        queue: jobs that are not in `best`; none for rounds.
    """
    shape, wanted = (best.shape[0], best.shape[1], best.shape[2], len(count)), (given.jobs, given.most, 3, given.jobs)
    if shape != wanted or not now.fits(given):
        raise ValueError(f"{shape} is not the shape of {given.jobs} jobs of {given.most} rows at most")
    if first < 0 or (len(queue) > 0 and last > len(queue)):
        raise ValueError(f"jobs {first} to {last} are not in a queue of {len(queue)}")
    sound: bint = within(count, given.most + 1, False) and within(queue, given.jobs, False)
    for job in range(given.jobs if sound else 0):
        for row in range(count[job]):
            sound = sound and 0 <= best[job, row, 0] < given.nodes
    if not sound:
        raise ValueError(f"rows or a queue are not of {given.jobs} jobs on {given.nodes} nodes")
    now.random = Random(seed)
    with nogil:
        if first == 0:
            _begin(given, now, best, count)
        if len(queue) > 0:
            least = _inserted(given, now, best, count, queue, first, last)
        else:
            _rounds(given, now, best, count, first, last, rounds)
            least = now.record
    return least


def _begin(given: BatchArrays, now: Placement, best: Ints3, count: Ints) -> None:
    for job in range(given.jobs):
        now.dirty[job] = True
        if count[job] > 0:
            for row in range(count[job]):
                put(now, now.trial, row, best[job, row, 0], best[job, row, 1], best[job, row, 2])
            put_down(given, now, job, now.trial, count[job])
    for node in range(given.nodes):
        renew_node(given, now, node)
    now.record = settle(given, now)


def _inserted(
    given: BatchArrays, now: Placement, best: Ints3, count: Ints, queue: Ints, first: Int, last: Int
) -> Float:
    for at in range(first, last):
        if not _put_in(given, now, queue[at]):
            now.changed[0] = queue[at]
            return -1.0
    now.record = settle(given, now)
    _keep(given, now, best, count)
    return now.record


def _rounds(  # noqa: PLR0912 -- one compiled loop
    given: BatchArrays, now: Placement, best: Ints3, count: Ints, first: Int, last: Int, rounds: Int
) -> None:
    jobs = given.jobs
    for turn in range(first, last):
        total = _slacks(given, now)
        record = now.record
        gone: Int = 1
        now.gone[0] = -1
        if total <= 1e-9 * (1.0 + fabs(record)):
            break
        if turn < 2 * jobs:
            now.chosen[0] = turn % jobs
            if now.slack[turn % jobs] <= 1e-9:
                continue
        else:
            gone = _draw(given, now, total)
        if given.nodes > VIEW:
            _look(given, now, gone, VIEW)
        for at in range(gone):
            job = now.chosen[at]
            now.sizes[at] = now.count[job]
            copy_rows(now, job, now.before + at, now.sizes[at])
            remove(given, now, job)
        settle(given, now)
        _order(given, now, gone)
        for at in range(RUIN + 1):
            now.gone[at] = now.chosen[at] if at < gone else -1
        margin: Float = 0.0
        if turn >= 2 * jobs:
            left: Float = 1.0 - 1.0 * turn / rounds  # whole numbers would be divided as in C
            margin = MARGIN / jobs * (left * left)
        most: Float = record * (1.0 + margin)
        back = _back(given, now, gone, most)
        cost = settle(given, now)
        now.found = cost if back == gone else NEVER
        if back < gone or cost > most:
            for at in range(gone):
                if now.count[now.chosen[at]] > 0:
                    remove(given, now, now.chosen[at])
            for at in range(gone):
                if now.sizes[at] > 0:
                    add(given, now, now.chosen[at], now.before + at, now.sizes[at])
            settle(given, now)
        elif cost < record * (1.0 - 1e-9):
            now.record = cost
            _keep(given, now, best, count)


def _back(given: BatchArrays, now: Placement, gone: Int, most: Float) -> Int:
    """Insert the jobs that went, as long as the batch may still cost no more than `most`; return how many are back."""
    for back in range(gone):
        if not _may(given, now, back, gone, most) or not _insert(given, now, now.chosen[back]):
            return back
    return gone


def _look(given: BatchArrays, now: Placement, gone: Int, most: Int) -> None:
    """Choose the nodes that are looked at: those of the jobs that go, where they run, and others."""
    for at in range(now.seen):  # elsewhere there is nothing
        now.room[now.window[at]] = 0
    now.seen = 0
    for at in range(gone):
        job = now.chosen[at]
        for row in range(now.count[job]):
            _see(now, now.rows[job, row, 0])
        for row in range(given.standing_rows[job]):
            _see(now, given.standing[job, row, 0])
    for _ in range(most // WINDOW):
        first = now.random.below(given.nodes)
        for step in range(WINDOW):
            _see(now, (first + step) % given.nodes)
    for at in range(now.seen):
        now.room[now.window[at]] = 0


def _see(now: Placement, node: Int) -> None:
    """Look at a node too, which `room` marks meanwhile."""
    if now.room[node] == 0:
        now.room[node] = 1
        now.window[now.seen] = node
        now.seen += 1


def _keep(given: BatchArrays, now: Placement, best: Ints3, count: Ints) -> None:
    for job in range(given.jobs):
        count[job] = now.count[job]
        for row in range(count[job]):
            for field in range(3):
                best[job, row, field] = now.rows[job, row, field]


def _slacks(given: BatchArrays, now: Placement) -> Float:
    """Note what each job that may move costs more than it must, fragments of its nodes included; return the sum."""
    total: Float = 0.0
    for job in range(given.jobs):
        cost: Float = now.cost[job]
        if given.goal == FRAGMENTATION:
            for row in range(now.count[job]):
                node = now.rows[job, row, 0]
                cost += now.fragment[node] / now.many[node]
        now.slack[job] = max(cost - given.floor[job], 0.0) if given.free[job] else 0.0
        total += now.slack[job]
    return total


def _put_in(given: BatchArrays, now: Placement, job: Int) -> bool:
    """Insert a job, on a large fleet among some of the nodes, or among all if they have no room for it."""
    if given.nodes > ALL:
        _look(given, now, 0, VIEW)
        if _insert(given, now, job):
            return True
        for node in range(given.nodes):
            now.window[node] = node
        now.seen = given.nodes
    return _insert(given, now, job)


def _may(given: BatchArrays, now: Placement, back: Int, gone: Int, most: Float) -> bool:
    """Return whether the batch may still cost no more than `most` once all that went are back.

    No job comes to cost less by others that come back, and each of these costs what it must. Of fragments that is not
    so, and nothing is known.
    """
    if given.goal == FRAGMENTATION:
        return True
    least: Float = 0.0
    for job in range(given.jobs):
        if isfinite(now.cost[job]):
            least += now.cost[job]
    for at in range(back, gone):
        job = now.chosen[at]
        least += given.floor[job] - (now.cost[job] if isfinite(now.cost[job]) else 0.0)
    return least <= most * (1.0 + 1e-9)


def _insert(given: BatchArrays, now: Placement, job: Int) -> bool:
    now.least, now.size = given.value[job] + given.migration[job], 0
    total, standing = find_room(given, now, job), given.standing_rows[job]
    if standing > 0 and not given.servers[job]:
        fits: bint = True
        for row in range(standing):
            node, workers = given.standing[job, row, 0], given.standing[job, row, 1]
            if now.room[node] < workers:
                fits = False
            put(now, now.trial, row, node, workers, given.standing[job, row, 2])
        if fits:
            better(given, now, job, standing)
    for at in range(given.degrees.shape[1]):
        degree = given.degrees[job, at]
        if 0 < degree <= total:
            insert(given, now, job, degree)
    if now.size > 0:
        add(given, now, job, now.place, now.size)
        settle(given, now)
        return True
    return isfinite(given.value[job])


def _draw(given: BatchArrays, now: Placement, total: Float) -> Int:
    left: Float = now.random.uniform() * total
    job: Int = 0
    count: Int = 1
    while job < given.jobs - 1 and left >= now.slack[job]:
        left -= now.slack[job]
        job += 1
    while now.slack[job] == 0.0:  # rounding
        job -= 1
    now.chosen[0] = job
    most: Int = 1 + now.random.below(RUIN)
    for _ in range(3 * most):
        if count > most:
            break
        way = now.random.uniform()
        other: Int = -1
        node: Int = -1
        if way < 0.45 and now.count[job] > 0:
            node = now.rows[job, now.random.below(now.count[job]), 0]
        elif way < 0.9:
            node = now.random.below(given.nodes)
        else:
            other = now.random.below(given.jobs)
        if node >= 0:
            if now.many[node] == 0:
                continue
            other = now.here[node, now.random.below(now.many[node]), 0]
        known: bint = not given.free[other]
        for at in range(count):
            if now.chosen[at] == other:
                known = True
        if not known:
            now.chosen[count] = other
            count += 1
    return count


def _order(given: BatchArrays, now: Placement, count: Int) -> None:
    """Put the jobs that went in the order in which they come back."""
    largest: bint = now.random.uniform() < 0.5
    for last in range(count - 1, 0, -1):
        at: Int = now.random.below(last + 1)
        if largest:
            for other in range(last):
                if _gpus(given, now.chosen[other]) < _gpus(given, now.chosen[at]):
                    at = other
            if _gpus(given, now.chosen[at]) >= _gpus(given, now.chosen[last]):
                at = last
        now.chosen[last], now.chosen[at] = now.chosen[at], now.chosen[last]
        now.sizes[last], now.sizes[at] = now.sizes[at], now.sizes[last]
        copy_rows(now, now.before + last, now.kept, given.most)
        copy_rows(now, now.before + at, now.before + last, given.most)
        copy_rows(now, now.kept, now.before + at, given.most)


def _gpus(given: BatchArrays, job: Int) -> Float:
    return given.degrees[job, 0] * given.need[job, 0]
