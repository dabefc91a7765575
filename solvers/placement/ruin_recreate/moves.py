"""A gang comes, goes, or would come: what that changes, compiled; `place` is as in `costs`."""

from __future__ import annotations

import cython
from cython import cast, declare
from cython.cimports.libc.math import floor

if not cython.compiled:
    from ...native import Float, Int
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

MANY = declare(Float, 2147483647.0)


def add(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int) -> None:
    """Put a job, which is nowhere, on these rows."""
    put_down(given, now, job, place, count)
    for row in range(count):
        renew_node(given, now, now.rows[place, row, 0])


def put_down(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int) -> None:
    """Do what `add` does, but leave it to `renew_node` to share the GPUs of the nodes out."""
    model = given.model[job]
    for row in range(count):
        node, workers, servers = now.rows[place, row, 0], now.rows[place, row, 1], now.rows[place, row, 2]
        now.rows[job, row, 0], now.rows[job, row, 1], now.rows[job, row, 2] = node, workers, servers
        at = now.many[node]
        now.here[node, at, 0], now.here[node, at, 1], now.here[node, at, 2] = job, workers, row
        now.many[node] = at + 1
        _use(given, now, job, node, workers, servers, 1)
        if workers > 0:
            for other in range(len(given.host)):
                now.suffer[node, other] += given.host[other, model]
    now.count[job], now.wide[job] = count, spans(given, now, job, count)
    cross(given, now, job, count, given.duty[job], 1)
    _stir(given, now, job)
    cross(given, now, job, count, 0.0, -1)


def remove(given: BatchArrays, now: Placement, job: Int) -> None:
    """Take a job off its nodes."""
    model, count = given.model[job], now.count[job]
    cross(given, now, job, count, -given.duty[job], 1)
    _stir(given, now, job)
    cross(given, now, job, count, 0.0, -1)
    for row in range(count):
        node, workers = now.rows[job, row, 0], now.rows[job, row, 1]
        last = now.many[node] - 1
        for one in range(last + 1):
            if now.here[node, one, 0] == job:
                for field in range(3):
                    now.here[node, one, field] = now.here[node, last, field]
                break
        now.many[node] = last
        now.extra[job, row] = 0.0
        _use(given, now, job, node, workers, now.rows[job, row, 2], -1)
        renew_node(given, now, node)
        if workers > 0:
            for other in range(len(given.host)):
                now.suffer[node, other] -= given.host[other, model]
    now.count[job], now.wide[job] = 0, False


def _use(given: BatchArrays, now: Placement, job: Int, node: Int, workers: Int, servers: Int, sign: Int) -> None:
    for resource in range(1, 4):
        used = workers * given.need[job, resource] + servers * given.need[job, resource + 3]
        now.left[node, resource] -= sign * used
    if given.alone_on_nodes[job]:
        now.guarded[node] += sign
    if given.together[job] == 0:
        now.whole[node] += sign * workers * cast(Int, given.need[job, 0])


def _stir(given: BatchArrays, now: Placement, job: Int) -> None:
    """Note whose cost changes with a job where it is: those on its nodes, and on the links that are marked."""
    now.dirty[job] = True
    for row in range(now.count[job]):
        node = now.rows[job, row, 0]
        for one in range(now.many[node]):
            now.dirty[now.here[node, one, 0]] = True
    if now.wide[job]:  # others that it meets on links meet it on a node
        for other in range(given.jobs):
            if now.wide[other] and not now.dirty[other] and meets(given, now, other, now.count[other]):
                now.dirty[other] = True


def settle(given: BatchArrays, now: Placement) -> Float:
    """Bring the costs up to date and return their sum; a job that is nowhere counts what leaving it out costs."""
    total: Float = 0.0
    for job in range(given.jobs):
        if now.dirty[job]:
            now.dirty[job] = False
            now.cost[job] = job_cost(given, now, job)
        total += now.cost[job]  # afresh: while a gang that must be placed is nowhere it is infinite
    if given.goal == FRAGMENTATION:
        for node in range(given.nodes):
            total += now.fragment[node]
    return total


def price(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int, limit: Float) -> Float:
    """Return what the batch costs more with a job, which is nowhere, on these rows; no less than `limit` if that."""
    if given.goal == FRAGMENTATION or given.sharing:
        return _tried(given, now, job, place, count)
    moved = moving(given, now, job, place, count)
    if given.goal == COMMUNICATION:
        return moved + communication_cost(given, now, job, place, count)
    model, duty, workers = given.model[job], given.duty[job], workers_of(now, place, count)
    compute = compute_seconds(given, now, job, place, count, False)
    changed: Int = 0
    others: Float = 0.0
    # what takes long comes last: most places are worse before it
    least: Float = moved + timed_cost(given, job, compute, 0.0, workers)
    if least < limit:
        changed = _slowed(given, now, model, place, count)
        others = _more(given, now, changed)
        least += others
    if least >= limit:
        return least
    sync = sync_seconds(given, now, job, place, count, 0.0)
    total = moved + timed_cost(given, job, compute, sync, workers)
    if count < 2 or total + others >= limit:
        return total + others
    cross(given, now, place, count, duty, 1)
    for row in range(count):
        node = now.rows[place, row, 0]
        for one in range(now.many[node]):
            changed = _delayed(given, now, now.here[node, one, 0], changed)
    if spans(given, now, place, count):
        for other in range(given.jobs):
            if now.wide[other] and meets(given, now, other, now.count[other]):
                changed = _delayed(given, now, other, changed)
    cross(given, now, place, count, -duty, -1)
    return total + _more(given, now, changed)


def _tried(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int) -> Float:
    total: Float = 0.0
    for row in range(count):
        total -= now.fragment[now.rows[place, row, 0]]
    add(given, now, job, place, count)
    for row in range(count):
        total += now.fragment[now.rows[place, row, 0]]
    for other in range(given.jobs):
        if now.dirty[other]:
            total += job_cost(given, now, other) - (0.0 if other == job else now.cost[other])
            now.dirty[other] = False
    remove(given, now, job)
    for other in range(given.jobs):
        if now.dirty[other]:
            now.dirty[other] = False
            if other != job and given.goal < COMMUNICATION:
                job_cost(given, now, other)  # its seconds as they were
    return total


def _known(now: Placement, job: Int, changed: Int) -> bool:
    return now.spot[job] < changed and now.changed[now.spot[job]] == job


def _list(now: Placement, job: Int, changed: Int) -> Int:
    now.changed[changed], now.spot[job] = job, changed
    return changed + 1


def _slowed(given: BatchArrays, now: Placement, model: Int, place: Int, count: Int) -> Int:
    """Note whose compute one of this model on these rows would slow down, and to what; return how many they are."""
    changed: Int = 0
    for row in range(count):
        node = now.rows[place, row, 0]
        if now.rows[place, row, 1] == 0:
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


def _delayed(given: BatchArrays, now: Placement, job: Int, changed: Int) -> Int:
    """Note what synchronisation a job comes to under the loads as they are; return how many are noted."""
    if now.count[job] < 2:
        return changed
    sync = sync_seconds(given, now, job, job, now.count[job], given.duty[job])
    if sync <= now.sync[job]:
        return changed
    if not _known(now, job, changed):
        now.other[job, 0] = now.compute[job]
        changed = _list(now, job, changed)
    now.other[job, 1] = sync
    return changed


def _more(given: BatchArrays, now: Placement, changed: Int) -> Float:
    total: Float = 0.0
    for at in range(changed):
        job = now.changed[at]
        workers = workers_of(now, job, now.count[job])
        then: Float = moving(given, now, job, job, now.count[job])
        then += timed_cost(given, job, now.other[job, 0], now.other[job, 1], workers)
        total += then - now.cost[job]
    return total


def fit(left: Float, over: Float, need: Float) -> Float:
    """Return how often `need` goes into what is left, with what a node may be over by."""
    return max(floor((left + over) / need), 0.0) if need > 0 else MANY


def closed(given: BatchArrays, now: Placement, job: Int, node: Int) -> bool:
    """Return whether a job may not be on a node for who is there, jobs to be kept apart not looked at."""
    if given.alone_on_nodes[job] and now.many[node] > 0:
        return True
    return now.guarded[node] > 0 or now.many[node] >= now.here.shape[1]


def find_room(given: BatchArrays, now: Placement, job: Int) -> Int:
    """Note how many workers of a job, which is nowhere, each node in view could take; return their sum."""
    total: Int = 0
    for at in range(now.seen):
        node = now.window[at]
        most: Float = given.room[job, given.kind[node]]
        if given.need[job, 0] > 0:
            most = min(most, floor(now.left[node, 0] / given.need[job, 0]))
        for resource in range(1, 4):
            over = given.tolerance * given.amounts[node, resource - 1]
            most = min(most, fit(now.left[node, resource], over, given.need[job, resource]))
        room: Int = 0 if closed(given, now, job, node) else cast(Int, max(most, 0.0))
        if given.together[job] and room:
            room = shares_room(given, now, job, node, room)
        now.room[node] = room
    if given.guarding:
        for other in range(given.jobs):
            if given.apart[job, other]:
                for row in range(now.count[other]):
                    now.room[now.rows[other, row, 0]] = 0
    for at in range(now.seen):
        total += now.room[now.window[at]]
    return total
