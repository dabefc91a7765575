"""A gang comes, goes, or would come: what that changes, compiled."""

from __future__ import annotations

import numpy as np

from gangplan.instances.verify import TOLERANCE

from ...compiled.kernel import Ints2, lean
from .arrays import COMMUNICATION, FRAGMENTATION, BatchArrays, Placement
from .costs import (
    communication_cost,
    compute_seconds,
    cross,
    job_cost,
    meets,
    moving,
    spans,
    sync_seconds,
    timed_cost,
    workers_of,
)
from .gpus import renew_node, shares_room

_MANY = 2.0**31 - 1


@lean
def add(given: BatchArrays, now: Placement, job: int, rows: Ints2, count: int) -> None:
    """Put a job, which is nowhere, on these rows."""
    put_down(given, now, job, rows, count)
    for row in range(count):
        renew_node(given, now, rows[row, 0])


@lean
def put_down(given: BatchArrays, now: Placement, job: int, rows: Ints2, count: int) -> None:
    """Do what `add` does, but leave it to `renew_node` to share the GPUs of the nodes out."""
    model = given.model[job]
    for row in range(count):
        node, workers = rows[row, 0], rows[row, 1]
        for field in range(3):
            now.rows[job, row, field] = rows[row, field]
        at = now.many[node]
        now.here[node, at, 0], now.here[node, at, 1], now.here[node, at, 2] = job, workers, row
        now.many[node] = at + 1
        _use(given, now, job, node, workers, rows[row, 2], 1)
        if workers > 0:
            for other in range(len(given.host)):
                now.suffer[node, other] += given.host[other, model]
    now.count[job], now.wide[job] = count, spans(given, rows, count)
    cross(given, now, rows, count, given.duty[job], 1)
    _stir(given, now, job)
    cross(given, now, rows, count, 0.0, -1)


@lean
def remove(given: BatchArrays, now: Placement, job: int) -> None:
    """Take a job off its nodes."""
    model, count, rows = given.model[job], now.count[job], now.rows[job]
    cross(given, now, rows, count, -given.duty[job], 1)
    _stir(given, now, job)
    cross(given, now, rows, count, 0.0, -1)
    for row in range(count):
        node, workers = rows[row, 0], rows[row, 1]
        last = now.many[node] - 1
        for one in range(last + 1):
            if now.here[node, one, 0] == job:
                for field in range(3):
                    now.here[node, one, field] = now.here[node, last, field]
                break
        now.many[node] = last
        now.extra[job, row] = 0.0
        _use(given, now, job, node, workers, rows[row, 2], -1)
        renew_node(given, now, node)
        if workers > 0:
            for other in range(len(given.host)):
                now.suffer[node, other] -= given.host[other, model]
    now.count[job], now.wide[job] = 0, False


@lean
def _use(given: BatchArrays, now: Placement, job: int, node: int, workers: int, servers: int, sign: int) -> None:
    need = given.need[job]
    for resource in range(1, 4):
        now.left[node, resource] -= sign * (workers * need[resource] + servers * need[resource + 3])
    now.guarded[node] += sign * given.alone_on_nodes[job]
    if given.together[job] == 0:
        now.whole[node] += sign * workers * int(need[0])


@lean
def _stir(given: BatchArrays, now: Placement, job: int) -> None:
    """Note whose cost changes with a job where it is: those on its nodes, and on the links that are marked."""
    now.dirty[job] = True
    for row in range(now.count[job]):
        node = now.rows[job, row, 0]
        for one in range(now.many[node]):
            now.dirty[now.here[node, one, 0]] = True
    if now.wide[job]:  # others that it meets on links meet it on a node
        for other in range(len(now.count)):
            if now.wide[other] and not now.dirty[other] and meets(given, now, now.rows[other], now.count[other]):
                now.dirty[other] = True


@lean
def settle(given: BatchArrays, now: Placement) -> float:
    """Bring the costs up to date and return their sum; a job that is nowhere counts what leaving it out costs."""
    total = 0.0
    for job in range(len(now.count)):
        if now.dirty[job]:
            now.dirty[job] = False
            now.cost[job] = job_cost(given, now, job)
        total += now.cost[job]  # afresh: while a gang that must be placed is nowhere it is infinite
    if given.goal == FRAGMENTATION:
        for node in range(len(now.many)):
            total += now.fragment[node]
    return total


@lean
def price(given: BatchArrays, now: Placement, job: int, rows: Ints2, count: int, limit: float) -> float:
    """Return what the batch costs more with a job, which is nowhere, on these rows; no less than `limit` if that."""
    if given.goal == FRAGMENTATION or given.sharing:
        return _tried(given, now, job, rows, count)
    moved = moving(given, job, rows, count)
    if given.goal == COMMUNICATION:
        return moved + communication_cost(given, now, job, rows, count)
    model, duty, workers = given.model[job], given.duty[job], workers_of(rows, count)
    compute = compute_seconds(given, now, job, rows, count, False)
    changed, others = 0, 0.0
    # what takes long comes last: most places are worse before it
    least = moved + timed_cost(given, job, compute, 0.0, workers)
    if least < limit:
        changed = _slowed(given, now, model, rows, count)
        others = _more(given, now, changed)
        least += others
    if least >= limit:
        return least
    total = moved + timed_cost(given, job, compute, sync_seconds(given, now, job, rows, count, 0.0), workers)
    if count < 2 or total + others >= limit:
        return total + others
    cross(given, now, rows, count, duty, 1)
    for row in range(count):
        for one in range(now.many[rows[row, 0]]):
            changed = _delayed(given, now, now.here[rows[row, 0], one, 0], changed)
    if spans(given, rows, count):
        for other in range(len(now.count)):
            if now.wide[other] and meets(given, now, now.rows[other], now.count[other]):
                changed = _delayed(given, now, other, changed)
    cross(given, now, rows, count, -duty, -1)
    return total + _more(given, now, changed)


@lean
def _tried(given: BatchArrays, now: Placement, job: int, rows: Ints2, count: int) -> float:
    total = 0.0
    for row in range(count):
        total -= now.fragment[rows[row, 0]]
    add(given, now, job, rows, count)
    for row in range(count):
        total += now.fragment[rows[row, 0]]
    for other in range(len(now.count)):
        if now.dirty[other]:
            total += job_cost(given, now, other) - (0.0 if other == job else now.cost[other])
            now.dirty[other] = False
    remove(given, now, job)
    for other in range(len(now.count)):
        if now.dirty[other]:
            now.dirty[other] = False
            if other != job and given.goal < COMMUNICATION:
                job_cost(given, now, other)  # its seconds as they were
    return total


@lean
def _known(now: Placement, job: int, changed: int) -> bool:
    return bool(now.spot[job] < changed and now.changed[now.spot[job]] == job)


@lean
def _list(now: Placement, job: int, changed: int) -> int:
    now.changed[changed], now.spot[job] = job, changed
    return changed + 1


@lean
def _slowed(given: BatchArrays, now: Placement, model: int, rows: Ints2, count: int) -> int:
    """Note whose compute one of this model on these rows would slow down, and to what; return how many they are."""
    changed = 0
    for row in range(count):
        node = rows[row, 0]
        if rows[row, 1] == 0:
            continue
        for one in range(now.many[node]):
            job = now.here[node, one, 0]
            if now.here[node, one, 1] == 0:
                continue
            own = given.model[job]
            more = now.suffer[node, own] - given.host[own, own] + given.host[own, model]
            then = given.alone[job, given.kind[node]] * (1.0 + more)
            if _known(now, job, changed):
                now.other[job, 0] = max(now.other[job, 0], then)
            elif then > now.compute[job]:
                now.other[job, 0], now.other[job, 1] = then, now.sync[job]
                changed = _list(now, job, changed)
    return changed


@lean
def _delayed(given: BatchArrays, now: Placement, job: int, changed: int) -> int:
    """Note what synchronisation a job comes to under the loads as they are; return how many are noted."""
    if now.count[job] < 2:
        return changed
    sync = sync_seconds(given, now, job, now.rows[job], now.count[job], given.duty[job])
    if sync <= now.sync[job]:
        return changed
    if not _known(now, job, changed):
        now.other[job, 0] = now.compute[job]
        changed = _list(now, job, changed)
    now.other[job, 1] = sync
    return changed


@lean
def _more(given: BatchArrays, now: Placement, changed: int) -> float:
    total = 0.0
    for at in range(changed):
        job = now.changed[at]
        rows, count = now.rows[job], now.count[job]
        workers = workers_of(rows, count)
        then = moving(given, job, rows, count)
        then += timed_cost(given, job, now.other[job, 0], now.other[job, 1], workers)
        total += then - now.cost[job]
    return total


@lean
def fit(left: float, has: float, need: float) -> float:
    """Return how often `need` goes into what is left of what a node has."""
    return max(np.floor((left + TOLERANCE * has) / need), 0.0) if need > 0 else _MANY


@lean
def closed(given: BatchArrays, now: Placement, job: int, node: int) -> bool:
    """Return whether a job may not be on a node for who is there, jobs to be kept apart not looked at."""
    alone = given.alone_on_nodes[job] and now.many[node] > 0
    return bool(alone or now.guarded[node] > 0 or now.many[node] >= now.here.shape[1])


@lean
def find_room(given: BatchArrays, now: Placement, job: int) -> int:
    """Note how many workers of a job, which is nowhere, each node in view could take; return their sum."""
    total, need, room = 0, given.need[job], now.room
    for at in range(now.seen[0]):
        node = now.window[at]
        most = float(given.room[job, given.kind[node]])
        if need[0] > 0:
            most = min(most, np.floor(now.left[node, 0] / need[0]))
        for resource in range(1, 4):
            most = min(most, fit(now.left[node, resource], given.amounts[node, resource - 1], need[resource]))
        room[node] = 0 if closed(given, now, job, node) else int(max(most, 0.0))
        if given.together[job] and room[node]:
            room[node] = shares_room(given, now, job, node, room[node])
    if len(given.apart) == len(given.model):
        for other in range(len(given.model)):
            if given.apart[job, other]:
                for row in range(now.count[other]):
                    room[now.rows[other, row, 0]] = 0
    for at in range(now.seen[0]):
        total += room[now.window[at]]
    return total
