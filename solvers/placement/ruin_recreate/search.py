"""Ruin and recreate on a whole placement, compiled: some gangs go, and come back where the batch gains most."""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import Floats, Ints, Ints3, by_reference, inner, kernel, lean
from ...compiled.routines import below, sow, uniform
from .arrays import FRAGMENTATION, BatchArrays, Placement
from .gpus import renew_node
from .moves import add, find_room, put_down, remove, settle
from .places import better, copy_rows, insert

RUIN = 3
"""Gangs that go with the one that is drawn, at most."""
_VIEW, _WINDOW = 64, 16
"""Nodes that are looked at in a round, where there are more, and those of them that stand side by side."""
_ALL = 128
"""Nodes that are all looked at when a job is inserted; of more, only a view: a quarter of the time, .3% worse."""
_MARGIN = 0.1
"""How much worse than the best a placement may be and be kept at first, in terms of what a job costs in the mean."""


@kernel
def search(  # noqa: PLR0912, PLR0915
    batch: BatchArrays,
    moving: Placement,
    best: Ints3,
    count: Ints,
    queue: Ints,
    first: int,
    last: int,
    rounds: int,
    seed: int,
) -> float:
    """Insert the jobs of a queue, or do some rounds of ruin and recreate; return the least cost.

    The jobs of the queue are put where the batch gains most, one after the other; once one finds no place it is noted
    in `changed`, and -1 is returned. Of the rounds, two for each job come first, in which every gang that costs more
    than it must is put back by itself. Then each takes off such a gang, drawn by how much, with some beside it, where
    it might go or anywhere; they come back in random order or the largest first. A result that is hardly worse is kept
    (record-to-record travel, Dueck 1993), the margin shrinking to none.

    Args:
        moving: where all are, changed; empty before the first job or round.
        best, count: rows of each job, (J, R, 3), and how many, (J,), in the best placement so far; changed.
        queue: jobs that are not in `best`; none for rounds.
    """
    given, now = by_reference(batch), by_reference(moving)
    sow(seed)
    jobs = len(count)
    if first == 0:
        for job in range(jobs):
            now.dirty[job] = True
            if count[job]:
                put_down(given, now, job, best[job], count[job])
        for node in range(len(now.many)):
            renew_node(given, now, node)
        now.record[0] = settle(given, now)
    if len(queue):
        for at in range(first, last):
            if not _put_in(given, now, queue[at]):
                now.changed[0] = queue[at]
                return -1.0
        now.record[0] = settle(given, now)
        _keep(now, best, count)
        return float(now.record[0])
    chosen, size = np.empty(RUIN + 1, np.int64), np.empty(RUIN + 1, np.int64)
    before = np.empty((RUIN + 1, now.rows.shape[1], 3), np.int64)
    slack = np.empty(jobs)
    for turn in range(first, last):
        total, gone = _slacks(given, now, slack), 1
        now.gone[0] = -1
        record = now.record[0]
        if total <= 1e-9 * (1.0 + abs(record)):
            break
        if turn < 2 * jobs:
            chosen[0] = turn % jobs
            if slack[turn % jobs] <= 1e-9:
                continue
        else:
            gone = _draw(given, now, slack, total, chosen)
        if len(now.window) > _VIEW:
            _look(given, now, chosen, gone, _VIEW)
        for at in range(gone):
            size[at] = now.count[chosen[at]]
            copy_rows(now.rows[chosen[at]], before[at], size[at])
            remove(given, now, chosen[at])
        settle(given, now)
        _order(given, chosen, before, size, gone)
        _note(now, chosen, gone)
        margin = _MARGIN / jobs * (1.0 - turn / rounds) ** 2 if turn >= 2 * jobs else 0.0
        most, back = record * (1.0 + margin), 0
        while back < gone and _may(given, now, chosen, back, gone, most) and _insert(given, now, chosen[back]):
            back += 1
        found = settle(given, now)
        now.found[0] = found if back == gone else np.inf
        if back < gone or found > most:
            for at in range(gone):
                if now.count[chosen[at]]:
                    remove(given, now, chosen[at])
            for at in range(gone):
                if size[at]:
                    add(given, now, chosen[at], before[at], size[at])
            settle(given, now)
        elif found < record * (1.0 - 1e-9):
            now.record[0] = found
            _keep(now, best, count)
    return float(now.record[0])


@lean
def _look(given: BatchArrays, now: Placement, chosen: Ints, gone: int, most: int) -> None:
    """Choose the nodes that are looked at: those of the jobs that go, where they run, and others."""
    nodes, view, marked = len(now.window), now.window, now.room
    for at in range(now.seen[0]):  # elsewhere there is nothing
        marked[view[at]] = 0
    count = 0
    for at in range(gone):
        job = chosen[at]
        for row in range(now.count[job] + given.standing_rows[job]):
            held = row < now.count[job]
            node = now.rows[job, row, 0] if held else given.standing[job, row - now.count[job], 0]
            if not marked[node]:
                marked[node] = 1
                view[count] = node
                count += 1
    for _ in range(most // _WINDOW):
        first = below(nodes)
        for step in range(_WINDOW):
            node = (first + step) % nodes
            if not marked[node]:
                marked[node] = 1
                view[count] = node
                count += 1
    for at in range(count):
        marked[view[at]] = 0
    now.seen[0] = count


@lean
def _keep(now: Placement, best: Ints3, count: Ints) -> None:
    for job in range(len(count)):
        count[job] = now.count[job]
        copy_rows(now.rows[job], best[job], now.count[job])


@lean
def _slacks(given: BatchArrays, now: Placement, slack: Floats) -> float:
    """Note what each job that may move costs more than it must, fragments of its nodes included; return the sum."""
    total = 0.0
    for job in range(len(slack)):
        cost = now.cost[job]
        if given.goal == FRAGMENTATION:
            for row in range(now.count[job]):
                node = now.rows[job, row, 0]
                cost += now.fragment[node] / now.many[node]
        slack[job] = max(cost - given.floor[job], 0.0) if given.free[job] else 0.0
        total += slack[job]
    return total


@inner
def _put_in(given: BatchArrays, now: Placement, job: int) -> bool:
    """Insert a job, on a large fleet among some of the nodes, or among all if they have no room for it."""
    if len(now.window) > _ALL:
        _look(given, now, now.changed, 0, _VIEW)
        if _insert(given, now, job):
            return True
        for node in range(len(now.window)):
            now.window[node] = node
        now.seen[0] = len(now.window)
    return bool(_insert(given, now, job))


@lean
def _may(given: BatchArrays, now: Placement, chosen: Ints, back: int, gone: int, most: float) -> bool:
    """Return whether the batch may still cost no more than `most` once all that went are back.

    No job comes to cost less by others that come back, and each of these costs what it must. Of fragments that is not
    so, and nothing is known.
    """
    if given.goal == FRAGMENTATION:
        return True
    least = 0.0
    for job in range(len(now.count)):
        if np.isfinite(now.cost[job]):
            least += now.cost[job]
    for at in range(back, gone):
        job = chosen[at]
        least += given.floor[job] - (now.cost[job] if np.isfinite(now.cost[job]) else 0.0)
    return least <= most * (1.0 + 1e-9)


@inner
def _insert(given: BatchArrays, now: Placement, job: int) -> bool:
    now.least[0], now.size[0] = given.value[job] + given.migration[job], 0
    total = find_room(given, now, job)
    if given.standing_rows[job] and not given.servers[job]:
        fits = True
        for row in range(given.standing_rows[job]):
            fits = fits and now.room[given.standing[job, row, 0]] >= given.standing[job, row, 1]
        if fits:
            copy_rows(given.standing[job], now.trial, given.standing_rows[job])
            better(given, now, job, given.standing_rows[job])
    for degree in given.degrees[job]:
        if 0 < degree <= total:
            insert(given, now, job, degree)
    if now.size[0]:
        add(given, now, job, now.place, now.size[0])
        settle(given, now)
        return True
    return bool(np.isfinite(given.value[job]))


@lean
def _draw(given: BatchArrays, now: Placement, slack: Floats, total: float, chosen: Ints) -> int:
    left, job = uniform() * total, 0
    while job < len(slack) - 1 and left >= slack[job]:
        left -= slack[job]
        job += 1
    while slack[job] == 0.0:  # rounding
        job -= 1
    chosen[0], count = job, 1
    most = 1 + below(RUIN)
    for _ in range(3 * most):
        if count > most:
            break
        way = uniform()
        if way < 0.45 and now.count[job]:
            node = now.rows[job, below(now.count[job]), 0]
        elif way < 0.9:
            node = below(len(now.many))
        else:
            node = -1
        if node < 0:
            other = below(len(slack))
        elif now.many[node]:
            other = now.here[node, below(now.many[node]), 0]
        else:
            continue
        known = not given.free[other]
        for at in range(count):
            known = known or chosen[at] == other
        if not known:
            chosen[count] = other
            count += 1
    return count


@lean
def _order(given: BatchArrays, chosen: Ints, before: Ints3, size: Ints, count: int) -> None:
    largest = uniform() < 0.5
    for last in range(count - 1, 0, -1):
        at = below(last + 1)
        if largest:
            for other in range(last):
                at = other if _gpus(given, chosen[other]) < _gpus(given, chosen[at]) else at
            if _gpus(given, chosen[at]) >= _gpus(given, chosen[last]):
                at = last
        chosen[last], chosen[at] = chosen[at], chosen[last]
        size[last], size[at] = size[at], size[last]
        for row in range(before.shape[1]):
            for field in range(3):
                before[last, row, field], before[at, row, field] = before[at, row, field], before[last, row, field]


@lean
def _note(now: Placement, chosen: Ints, count: int) -> None:
    for at in range(len(now.gone)):
        now.gone[at] = chosen[at] if at < count else -1


@lean
def _gpus(given: BatchArrays, job: int) -> float:
    return float(given.degrees[job, 0] * given.need[job, 0])
