"""Where a gang that was taken off may go: each node that holds it, or parts of it in many ways; compiled."""

from __future__ import annotations

import cython
from cython import bint, declare
from cython.cimports.libc.math import fabs, isfinite

if not cython.compiled:
    from ...native import Float, Int
    from .arrays import FRAGMENTATION, HIERARCHICAL, RACKS, BatchArrays, Placement
    from .moves import closed, fit, price

NODES = declare(Int, 96)
"""Nodes that are looked at one by one for a gang; of a larger fleet others each time."""
SOME = declare(Int, 24)
"""The same for a part of one."""
SHIFTS = declare(Int, 4)
"""Parts of a gang on several nodes that are moved, one after the other, at most."""
NEVER = declare(Float, float("inf"))


def put(now: Placement, place: Int, row: Int, node: Int, workers: Int, servers: Int) -> None:
    """Write one row."""
    now.rows[place, row, 0], now.rows[place, row, 1], now.rows[place, row, 2] = node, workers, servers


def copy_rows(now: Placement, source: Int, place: Int, count: Int) -> None:
    """Copy the first `count` rows."""
    for row in range(count):
        for field in range(3):
            now.rows[place, row, field] = now.rows[source, row, field]


def _serve(given: BatchArrays, now: Placement, job: Int, count: Int, apart: bint) -> Int:
    """Add servers beside the workers, evenly as room allows, or `apart`; return the number of rows, 0 without room."""
    rows = now.trial
    for row in range(count):
        now.rows[rows, row, 2] = 0
    for _ in range(given.servers[job]):
        best: Int = -1
        least: Float = NEVER
        if not apart:
            for row in range(count):
                node, workers, servers = now.rows[rows, row, 0], now.rows[rows, row, 1], now.rows[rows, row, 2]
                share = (servers + 1.0) / workers if workers > 0 else NEVER
                if share < least and servers < _server_room(given, now, job, node, workers):
                    best, least = row, share
        if best < 0:
            if count == given.most:
                return 0
            for at in range(now.seen):
                node = now.window[at]
                used: bint = False
                for row in range(count):
                    if now.rows[rows, row, 0] == node:
                        used = True
                if not used and now.load[node] < least and _server_room(given, now, job, node, 0) > 0:
                    best, least = node, now.load[node]
            if best < 0:
                return 0
            put(now, rows, count, best, 0, 0)
            best = count
            count += 1
        now.rows[rows, best, 2] += 1
    return count


def _server_room(given: BatchArrays, now: Placement, job: Int, node: Int, workers: Int) -> Float:
    if not isfinite(given.alone[job, given.kind[node]]) or closed(given, now, job, node):
        return 0.0
    if given.guarding:
        for one in range(now.many[node]):
            if given.apart[job, now.here[node, one, 0]]:
                return 0.0
    most: Float = NEVER
    for resource in range(1, 4):
        left = now.left[node, resource] - workers * given.need[job, resource]
        over = given.tolerance * given.amounts[node, resource - 1]
        most = min(most, fit(left, over, given.need[job, resource + 3]))
    return most


def better(given: BatchArrays, now: Placement, job: Int, count: Int) -> None:
    """Keep the place of the first rows on trial, with the servers that it lacks, if it is the best so far."""
    if count == 0:
        return
    for apart in range(2 if given.servers[job] > 0 and count > 1 else 1):
        served: Int = count
        if given.servers[job] > 0:
            served = _serve(given, now, job, count, apart == 1)
        if served == 0:
            continue
        found = price(given, now, job, now.trial, served, now.least)
        if now.least - found > 1e-12 * fabs(found):
            now.least, now.size = found, served
            copy_rows(now, now.trial, now.place, served)


def _fill(now: Placement, most: Int, degree: Int, tight: bint) -> Int:
    """Put workers on nodes in view, `most` on each; return how many rows, 0 if they do not fit.

    `tight`: the roomiest nodes come first, not the cheapest, and what is left in the end goes where it fills one best.
    """
    count: Int = 0
    left: Int = degree
    for i in range(now.seen):
        first = now.roomy.order[i] if tight else now.cheap.order[i]
        node: Int = now.window[first]
        able = min(now.room[node], most)
        if able <= 0 or not now.inside[first]:
            continue
        if count == now.rows.shape[1]:
            return 0
        if tight and able > left:
            for j in range(now.seen):
                one = now.roomy.order[j]
                other = now.window[one]
                used: bint = not now.inside[one]
                for row in range(count):
                    if now.rows[now.trial, row, 0] == other:
                        used = True
                if not used and left <= min(now.room[other], most) and now.room[other] < now.room[node]:
                    node = other
        put(now, now.trial, count, node, min(able, left), 0)
        left -= min(able, left)
        count += 1
        if left == 0:
            return count
    return 0


def _at_best(given: BatchArrays, now: Placement, job: Int) -> bool:
    """Return whether the best place so far is as good as any: there is nothing to gain by others."""
    if given.goal == FRAGMENTATION:
        return False
    return now.least <= given.floor[job] * (1 + 1e-9)


def insert(given: BatchArrays, now: Placement, job: Int, degree: Int) -> None:
    """Look for the best place for so many workers, see `better`."""
    widest: Int = 1
    for at in range(now.seen):
        widest = max(widest, now.room[now.window[at]])
    if widest < degree:
        _several(given, now, job, degree, widest)
    else:
        step: Int = max(1, now.seen // NODES)
        place: Int = now.random.below(step)
        while place < now.seen:
            if now.room[now.window[place]] >= degree:
                put(now, now.trial, 0, now.window[place], degree, 0)
                better(given, now, job, 1)
            place += step
        if not _at_best(given, now, job):
            _several(given, now, job, degree, widest)
    for _ in range(SHIFTS):
        if _at_best(given, now, job) or not _shift(given, now, job):
            break


def _several(given: BatchArrays, now: Placement, job: Int, degree: Int, widest: Int) -> None:
    nodes, model = now.seen, given.model[job]
    for place in range(nodes):
        node = now.window[place]
        mutual: Float = now.suffer[node, model]
        for one in range(now.many[node]):
            mutual += given.host[given.model[now.here[node, one, 0]], model]
        alone = given.alone[job, given.kind[node]]
        dear = alone * (1.0 + mutual + 0.05 * now.load[node])
        now.cheap.keys[place] = dear if now.room[node] > 0 else NEVER
        now.roomy.keys[place] = 1e-3 * now.random.uniform() - now.room[node]
        now.inside[place] = True
    now.cheap.sort(nodes, False)
    now.roomy.sort(nodes, False)
    fewest: Int = (degree + widest - 1) // widest
    start: Int = now.random.below(nodes)
    count: Int = 0
    at: Int = 0
    for way in range(6 + 2 * RACKS):
        if _at_best(given, now, job):
            return
        most: Int = degree
        tight: bint = way % 2 == 1
        if 2 <= way < 5:  # more nodes pay for a hierarchical all-reduce, and for parameter servers
            if given.collective[job] < HIERARCHICAL:
                continue
            per: Int = fewest << (way - 1)
            most, tight = max(1, (degree + per - 1) // per) if way < 4 else 1, False
        elif way == 5:
            for place in range(nodes):
                now.inside[place] = now.many[now.window[place]] == 0
        elif way > 5 and way % 2 == 0:
            while at < nodes and _has(now, count, given.above[now.window[(start + at) % nodes]]):
                at += 1
            if at == nodes:
                break
            now.racks[count] = given.above[now.window[(start + at) % nodes]]
            for place in range(nodes):
                now.inside[place] = given.above[now.window[place]] == now.racks[count]
            count += 1
        better(given, now, job, _fill(now, most, degree, tight))


def _has(now: Placement, count: Int, rack: Int) -> bool:
    for at in range(count):  # noqa: SIM110
        if now.racks[at] == rack:
            return True
    return False


def _shift(given: BatchArrays, now: Placement, job: Int) -> bool:
    """Move parts of the best place to other nodes, or together; return whether that helped."""
    before, rows, kept = now.least, now.trial, now.kept
    step: Int = max(1, now.seen // SOME)
    parts: Int = 0
    for row in range(now.size):
        if now.rows[now.place, row, 1] > 0:
            put(now, kept, parts, now.rows[now.place, row, 0], now.rows[now.place, row, 1], 0)
            parts += 1
    if parts < 2:
        return False
    for row in range(parts):
        place: Int = now.random.below(step) - step
        while place + step < now.seen:
            place += step
            part, node = now.rows[kept, row, 1], now.window[place]
            if now.room[node] < part or node == now.rows[kept, row, 0]:
                continue
            copy_rows(now, kept, rows, parts)
            count: Int = parts
            at: Int = row
            for other in range(parts):
                if now.rows[kept, other, 0] == node:
                    at = other
            if at == row:
                now.rows[rows, row, 0] = node
            elif now.rows[rows, at, 1] + part <= now.room[node]:
                count = parts - 1
                now.rows[rows, at, 1] += part
                put(now, rows, row, now.rows[rows, count, 0], now.rows[rows, count, 1], 0)
            else:
                continue
            better(given, now, job, count)
    return now.least < before - 1e-9 * fabs(before)
