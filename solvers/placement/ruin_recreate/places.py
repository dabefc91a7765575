"""Where a gang that was taken off may go: each node that holds it, or parts of it in many ways; compiled."""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import Bools, Ints, Ints2, inner, lean
from ...compiled.routines import argsort, below, uniform
from .arrays import FRAGMENTATION, HIERARCHICAL, BatchArrays, Placement
from .moves import closed, fit, price

_RACKS = 6
"""Parts of the network that are looked into for one gang."""
_NODES, _SOME = 96, 24
"""Nodes that are looked at one by one for a gang, and for a part of one; of a larger fleet others each time."""
_SHIFTS = 4
"""Parts of a gang on several nodes that are moved, one after the other, at most."""


@lean
def put(rows: Ints2, row: int, node: int, workers: int, servers: int) -> None:
    """Write one row."""
    rows[row, 0] = node
    rows[row, 1] = workers
    rows[row, 2] = servers


@lean
def copy_rows(source: Ints2, rows: Ints2, count: int) -> None:
    """Copy the first `count` rows."""
    for row in range(count):
        put(rows, row, source[row, 0], source[row, 1], source[row, 2])


@lean
def _serve(given: BatchArrays, now: Placement, job: int, count: int, apart: bool) -> int:
    """Add servers beside the workers, evenly as room allows, or `apart`; return the number of rows, 0 without room."""
    left, rows = given.servers[job], now.trial
    for row in range(count):
        rows[row, 2] = 0
    while left:
        best, least = -1, np.inf
        if not apart:
            for row in range(count):
                share = (rows[row, 2] + 1.0) / rows[row, 1] if rows[row, 1] else np.inf
                if share < least and rows[row, 2] < _server_room(given, now, job, rows[row, 0], rows[row, 1]):
                    best, least = row, share
        if best < 0:
            if count == len(rows):
                return 0
            for at in range(now.seen[0]):
                node, used = now.window[at], False
                for row in range(count):
                    used = used or rows[row, 0] == node
                if not used and now.load[node] < least and _server_room(given, now, job, node, 0) > 0:
                    best, least = node, now.load[node]
            if best < 0:
                return 0
            put(rows, count, best, 0, 0)
            best = count
            count += 1
        rows[best, 2] += 1
        left -= 1
    return count


@lean
def _server_room(given: BatchArrays, now: Placement, job: int, node: int, workers: int) -> float:
    if not np.isfinite(given.alone[job, given.kind[node]]) or closed(given, now, job, node):
        return 0.0
    if len(given.apart) == len(given.model):
        for one in range(now.many[node]):
            if given.apart[job, now.here[node, one, 0]]:
                return 0.0
    most = np.inf
    for resource in range(1, 4):
        left = now.left[node, resource] - workers * given.need[job, resource]
        most = min(most, fit(left, given.amounts[node, resource - 1], given.need[job, resource + 3]))
    return most


@lean
def better(given: BatchArrays, now: Placement, job: int, count: int) -> None:
    """Keep the place of the first rows on trial, with the servers that it lacks, if it is the best so far."""
    if count == 0:
        return
    for apart in range(2 if given.servers[job] and count > 1 else 1):
        served = count
        if given.servers[job]:
            served = _serve(given, now, job, count, apart == 1)
        if served == 0:
            continue
        found = price(given, now, job, now.trial, served, now.least[0])
        if now.least[0] - found > 1e-12 * abs(found):
            now.least[0], now.size[0] = found, served
            copy_rows(now.trial, now.place, served)


@lean
def _fill(now: Placement, order: Ints, inside: Bools, most: int, degree: int, tight: bool) -> int:
    """Put workers on nodes in view in this order, `most` on each; return how many rows, 0 if they do not fit.

    `inside`: which of the view count; `tight`: what is left in the end goes where it fills a node best.
    """
    count, left, room, rows = 0, degree, now.room, now.trial
    for first in order:
        node, able = now.window[first], min(room[now.window[first]], most)
        if able <= 0 or not inside[first]:
            continue
        if count == len(rows):
            return 0
        if tight and able > left:
            for one in order:
                other, used = now.window[one], not inside[one]
                for row in range(count):
                    used = used or rows[row, 0] == other
                if not used and left <= min(room[other], most) and room[other] < room[node]:
                    node = other
        put(rows, count, node, min(able, left), 0)
        left -= min(able, left)
        count += 1
        if left == 0:
            return count
    return 0


@lean
def _at_best(given: BatchArrays, now: Placement, job: int) -> bool:
    """Return whether the best place so far is as good as any: there is nothing to gain by others."""
    if given.goal == FRAGMENTATION:
        return False
    return bool(now.least[0] <= given.floor[job] * (1 + 1e-9))


@inner
def insert(given: BatchArrays, now: Placement, job: int, degree: int) -> None:
    """Look for the best place for so many workers, see `better`."""
    room, nodes = now.room, now.seen[0]
    widest = 1
    for at in range(nodes):
        widest = max(widest, room[now.window[at]])
    step = max(1, nodes // _NODES)
    if widest < degree:
        _several(given, now, job, degree, widest)
    else:
        for at in range(below(step), nodes, step):
            if room[now.window[at]] >= degree:
                put(now.trial, 0, now.window[at], degree, 0)
                better(given, now, job, 1)
        if not _at_best(given, now, job):
            _several(given, now, job, degree, widest)
    for _ in range(_SHIFTS):
        if _at_best(given, now, job) or not _shift(given, now, job):
            break


@inner
def _several(given: BatchArrays, now: Placement, job: int, degree: int, widest: int) -> None:
    nodes, model, room, view = now.seen[0], given.model[job], now.room, now.window
    expensive, big, inside = np.empty(nodes), np.empty(nodes), np.empty(nodes, np.bool_)
    for place in range(nodes):
        node = view[place]
        mutual = now.suffer[node, model]
        for one in range(now.many[node]):
            mutual += given.host[given.model[now.here[node, one, 0]], model]
        alone = given.alone[job, given.kind[node]]
        expensive[place] = alone * (1.0 + mutual + 0.05 * now.load[node]) if room[node] else np.inf
        big[place] = 1e-3 * uniform() - room[node]
        inside[place] = True
    cheap, roomy = argsort(expensive, False), argsort(big, False)
    fewest = -(-degree // widest)
    start, count, at = below(nodes), 0, 0
    seen = np.empty(_RACKS, np.int64)
    for way in range(6 + 2 * _RACKS):
        if _at_best(given, now, job):
            return
        most, tight = degree, way % 2 == 1
        if 2 <= way < 5:  # more nodes pay for a hierarchical all-reduce, and for parameter servers
            if given.collective[job] < HIERARCHICAL:
                continue
            most, tight = max(1, -(-degree // (fewest * 2 ** (way - 1)))) if way < 4 else 1, False
        elif way == 5:
            for place in range(nodes):
                inside[place] = now.many[view[place]] == 0
        elif way > 5 and way % 2 == 0:
            while at < nodes and _has(seen, count, given.above[view[(start + at) % nodes]]):
                at += 1
            if at == nodes:
                break
            seen[count] = given.above[view[(start + at) % nodes]]
            for place in range(nodes):
                inside[place] = given.above[view[place]] == seen[count]
            count += 1
        better(given, now, job, _fill(now, roomy if tight else cheap, inside, most, degree, tight))


@lean
def _has(seen: Ints, count: int, value: int) -> bool:
    for at in range(count):  # noqa: SIM110
        if seen[at] == value:
            return True
    return False


@inner
def _shift(given: BatchArrays, now: Placement, job: int) -> bool:
    """Move parts of the best place to other nodes, or together; return whether that helped."""
    nodes, before, parts, rows = now.seen[0], now.least[0], 0, now.trial
    step = max(1, nodes // _SOME)
    kept = now.place.copy()
    for row in range(now.size[0]):
        if now.place[row, 1] > 0:
            put(kept, parts, now.place[row, 0], now.place[row, 1], 0)
            parts += 1
    if parts < 2:
        return False
    for row in range(parts):
        for place in range(below(step), nodes, step):
            part, node = kept[row, 1], now.window[place]
            if now.room[node] < part or node == kept[row, 0]:
                continue
            copy_rows(kept, rows, parts)
            count, at = parts, row
            for other in range(parts):
                if kept[other, 0] == node:
                    at = other
            if at == row:
                rows[row, 0] = node
            elif rows[at, 1] + part <= now.room[node]:
                count = parts - 1
                rows[at, 1] += part
                put(rows, row, rows[count, 0], rows[count, 1], 0)
            else:
                continue
            better(given, now, job, count)
    return bool(now.least[0] < before - 1e-9 * abs(before))
