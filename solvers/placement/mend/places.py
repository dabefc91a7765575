"""Where a gang that was taken off may go: each node that holds it, or parts of it in many ways; compiled."""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import Bools, Ints, Ints2, inner, lean
from ...compiled.routines import argsort
from .moves import fit, price
from .state import Fixed, Live

_RACKS = 6
"""Parts of the network that are looked into for one gang."""
_NODES, _SOME = 96, 24
"""Nodes that are looked at one by one for a gang, and for a part of one; of a larger fleet others each time."""
_SHIFTS = 4
"""Parts of a gang on several nodes that are moved, one after the other, at most."""


@lean
def put(rows: Ints2, x: int, node: int, w: int, p: int) -> None:
    """Write one row."""
    rows[x, 0] = node
    rows[x, 1] = w
    rows[x, 2] = p


@lean
def copied(source: Ints2, rows: Ints2, n: int) -> None:
    """Copy the first n rows."""
    for x in range(n):
        put(rows, x, source[x, 0], source[x, 1], source[x, 2])


@lean
def _serve(batch: Fixed, live: Live, j: int, n: int, apart: bool) -> int:
    """Add the servers of job j to rows of its workers; return how many rows there are then, 0 if there is no room.

    They go beside the workers, as evenly as there is room; what is left, or all of them if `apart`, elsewhere, one a
    node, where little crosses the NIC.
    """
    left, rows = batch.servers[j], live.trial
    for x in range(n):
        rows[x, 2] = 0
    while left:
        best, least = -1, np.inf
        if not apart:
            for x in range(n):
                share = (rows[x, 2] + 1.0) / rows[x, 1] if rows[x, 1] else np.inf
                if share < least and rows[x, 2] < _server_room(batch, live, j, rows[x, 0], rows[x, 1]):
                    best, least = x, share
        if best < 0:
            if n == len(rows):
                return 0
            for node in range(len(live.many)):
                used = False
                for x in range(n):
                    used = used or rows[x, 0] == node
                if not used and live.load[node] < least and _server_room(batch, live, j, node, 0) > 0:
                    best, least = node, live.load[node]
            if best < 0:
                return 0
            put(rows, n, best, 0, 0)
            best = n
            n += 1
        rows[best, 2] += 1
        left -= 1
    return n


@lean
def _server_room(batch: Fixed, live: Live, j: int, node: int, workers: int) -> float:
    if (
        not np.isfinite(batch.alone[j, batch.kind[node]])
        or live.guarded[node] > 0
        or live.many[node] >= live.here.shape[1]
    ):
        return 0.0
    if batch.whole[j] and live.many[node] > 0:
        return 0.0
    if len(batch.apart) == len(batch.model):
        for y in range(live.many[node]):
            if batch.apart[j, live.here[node, y, 0]]:
                return 0.0
    most = np.inf
    for i in range(1, 4):
        most = min(most, fit(live.left[node, i] - workers * batch.need[j, i], batch.need[j, i + 3]))
    return most


@lean
def better(batch: Fixed, live: Live, j: int, n: int) -> None:
    """Keep the place of the first n rows on trial, with the servers that it lacks, if it is the best so far."""
    if n == 0:
        return
    for apart in range(2 if batch.servers[j] and n > 1 else 1):
        m = n
        if batch.servers[j]:
            m = _serve(batch, live, j, n, apart == 1)
        if m == 0:
            continue
        found = price(batch, live, j, live.trial, m, live.least[0])
        if found < live.least[0] * (1 - 1e-12):
            live.least[0], live.size[0] = found, m
            copied(live.trial, live.place, m)


@lean
def _fill(order: Ints, inside: Bools, room: Ints, most: int, degree: int, tight: bool, rows: Ints2) -> int:
    """Put workers on nodes in this order, `most` on each; return how many rows, 0 if they do not fit.

    `inside`: which nodes count; `tight`: what is left in the end goes where it fills a node best.
    """
    n, left = 0, degree
    for first in order:
        node, able = first, min(room[first], most)
        if able <= 0 or not inside[node]:
            continue
        if n == len(rows):
            return 0
        if tight and able > left:
            for other in order:
                used = not inside[other]
                for x in range(n):
                    used = used or rows[x, 0] == other
                if not used and left <= min(room[other], most) and room[other] < room[node]:
                    node = other
        put(rows, n, node, min(able, left), 0)
        left -= min(able, left)
        n += 1
        if left == 0:
            return n
    return 0


@inner
def insert(batch: Fixed, live: Live, j: int, degree: int) -> None:
    """Look for the best place for so many workers, see `better`."""
    room, m = live.room, len(live.room)
    widest = 1
    for node in range(m):
        widest = max(widest, room[node])
    floor = 0.0 if batch.rates else batch.weight[j]
    alone, step = m if widest >= degree else 0, max(1, m // _NODES)
    if not alone:
        _several(batch, live, j, degree, widest)
    else:
        for node in range(np.random.randint(step), m, step):  # noqa: NPY002
            if room[node] >= degree:
                put(live.trial, 0, node, degree, 0)
                better(batch, live, j, 1)
        if live.least[0] > floor * (1 + 1e-9):  # else there is nothing to gain by more nodes
            _several(batch, live, j, degree, widest)
    for _ in range(_SHIFTS):
        if live.least[0] <= floor * (1 + 1e-9) or not _shift(batch, live, j):
            break


@inner
def _several(batch: Fixed, live: Live, j: int, degree: int, widest: int) -> None:
    m, k, room = len(live.room), batch.model[j], live.room
    dear, big, inside = np.empty(m), np.empty(m), np.empty(m, np.bool_)
    for node in range(m):
        mutual = live.suffer[node, k]
        for y in range(live.many[node]):
            mutual += batch.host[batch.model[live.here[node, y, 0]], k]
        dear[node] = (
            batch.alone[j, batch.kind[node]] * (1.0 + mutual + 0.05 * live.load[node]) if room[node] else np.inf
        )
        big[node] = 1e-3 * np.random.random() - room[node]  # noqa: NPY002
        inside[node] = True
    cheap, roomy = argsort(dear, False), argsort(big, False)
    fewest = -(-degree // widest)
    start, count, x = np.random.randint(m), 0, 0  # noqa: NPY002
    seen = np.empty(_RACKS, np.int64)
    for way in range(6 + 2 * _RACKS):
        most, tight = degree, way % 2 == 1
        if 2 <= way < 5:  # more nodes pay for a hierarchical all-reduce, and for parameter servers
            if batch.collective[j] < 2:
                continue
            most, tight = max(1, -(-degree // (fewest * 2 ** (way - 1)))) if way < 4 else 1, False
        elif way == 5:
            for node in range(m):
                inside[node] = live.many[node] == 0
        elif way > 5 and way % 2 == 0:
            while x < m and _has(seen, count, batch.above[(start + x) % m]):
                x += 1
            if x == m:
                break
            seen[count] = batch.above[(start + x) % m]
            for node in range(m):
                inside[node] = batch.above[node] == seen[count]
            count += 1
        better(batch, live, j, _fill(roomy if tight else cheap, inside, room, most, degree, tight, live.trial))


@lean
def _has(seen: Ints, count: int, value: int) -> bool:
    for x in range(count):  # noqa: SIM110
        if seen[x] == value:
            return True
    return False


@inner
def _shift(batch: Fixed, live: Live, j: int) -> bool:
    """Move parts of the best place to other nodes, or together; return whether that helped."""
    m, before, parts, rows = len(live.room), live.least[0], 0, live.trial
    step = max(1, m // _SOME)
    kept = live.place.copy()
    for x in range(live.size[0]):
        if live.place[x, 1] > 0:
            put(kept, parts, live.place[x, 0], live.place[x, 1], 0)
            parts += 1
    if parts < 2:
        return False
    for x in range(parts):
        for node in range(np.random.randint(step), m, step):  # noqa: NPY002
            part = kept[x, 1]
            if live.room[node] < part or node == kept[x, 0]:
                continue
            copied(kept, rows, parts)
            n, at = parts, x
            for y in range(parts):
                if kept[y, 0] == node:
                    at = y
            if at == x:
                rows[x, 0] = node
            elif rows[at, 1] + part <= live.room[node]:
                n = parts - 1
                rows[at, 1] += part
                put(rows, x, rows[n, 0], rows[n, 1], 0)
            else:
                continue
            better(batch, live, j, n)
    return bool(live.least[0] < before * (1 - 1e-9))
