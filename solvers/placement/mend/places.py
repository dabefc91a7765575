"""Where a gang that was taken off may go: each node that holds it, or parts of it in many ways; compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from .moves import fit, price
from .state import inner

_RACKS = 6
"""Parts of the network that are looked into for one gang."""
_NODES, _SOME = 96, 24
"""Nodes that are looked at one by one for a gang, and for a part of one; of a larger fleet others each time."""
_SHIFTS = 4
"""Parts of a gang on several nodes that are moved, one after the other, at most."""


@inner
def put(rows: Any, x: Any, node: Any, w: Any, p: Any) -> None:
    """Write one row."""
    rows[x, 0] = node
    rows[x, 1] = w
    rows[x, 2] = p


@inner
def copied(source: Any, rows: Any, n: Any) -> None:
    """Copy the first n rows."""
    for x in range(n):
        put(rows, x, source[x, 0], source[x, 1], source[x, 2])


@inner
def _serve(f: Any, s: Any, j: Any, n: Any, apart: Any) -> Any:
    """Add the servers of job j to rows of its workers; return how many rows there are then, 0 if there is no room.

    They go beside the workers, as evenly as there is room; what is left, or all of them if `apart`, elsewhere, one a
    node, where little crosses the NIC.
    """
    left, rows = f.servers[j], s.trial
    for x in range(n):
        rows[x, 2] = 0
    while left:
        best, least = -1, np.inf
        if not apart:
            for x in range(n):
                share = (rows[x, 2] + 1.0) / rows[x, 1] if rows[x, 1] else np.inf
                if share < least and rows[x, 2] < _server_room(f, s, j, rows[x, 0], rows[x, 1]):
                    best, least = x, share
        if best < 0:
            if n == len(rows):
                return 0
            for node in range(len(s.many)):
                used = False
                for x in range(n):
                    used = used or rows[x, 0] == node
                if not used and s.load[node] < least and _server_room(f, s, j, node, 0) > 0:
                    best, least = node, s.load[node]
            if best < 0:
                return 0
            put(rows, n, best, 0, 0)
            best = n
            n += 1
        rows[best, 2] += 1
        left -= 1
    return n


@inner
def _server_room(f: Any, s: Any, j: Any, node: Any, workers: Any) -> Any:
    if not np.isfinite(f.alone[j, f.kind[node]]) or s.guarded[node] > 0 or s.many[node] >= s.here.shape[1]:
        return 0.0
    if f.whole[j] and s.many[node] > 0:
        return 0.0
    if len(f.apart) == len(f.model):
        for y in range(s.many[node]):
            if f.apart[j, s.here[node, y, 0]]:
                return 0.0
    most = np.inf
    for i in range(1, 4):
        most = min(most, fit(s.left[node, i] - workers * f.need[j, i], f.need[j, i + 3]))
    return most


@inner
def better(f: Any, s: Any, j: Any, n: Any) -> None:
    """Keep the place of the first n rows on trial, with the servers that it lacks, if it is the best so far."""
    if n == 0:
        return
    for apart in range(2 if f.servers[j] and n > 1 else 1):
        m = n
        if f.servers[j]:
            m = _serve(f, s, j, n, apart == 1)
        if m == 0:
            continue
        found = price(f, s, j, s.trial, m, s.least[0])
        if found < s.least[0] * (1 - 1e-12):
            s.least[0], s.size[0] = found, m
            copied(s.trial, s.place, m)


@inner
def _fill(order: Any, inside: Any, room: Any, most: Any, degree: Any, tight: Any, rows: Any) -> Any:
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
def insert(f: Any, s: Any, j: Any, degree: Any) -> None:
    """Look for the best place for so many workers, see `better`."""
    room, m = s.room, len(s.room)
    widest = 1
    for node in range(m):
        widest = max(widest, room[node])
    floor = 0.0 if f.rates else f.weight[j]
    alone, step = m if widest >= degree else 0, max(1, m // _NODES)
    if not alone:
        _several(f, s, j, degree, widest)
    else:
        for node in range(np.random.randint(step), m, step):  # noqa: NPY002
            if room[node] >= degree:
                put(s.trial, 0, node, degree, 0)
                better(f, s, j, 1)
        if s.least[0] > floor * (1 + 1e-9):  # else there is nothing to gain by more nodes
            _several(f, s, j, degree, widest)
    for _ in range(_SHIFTS):
        if s.least[0] <= floor * (1 + 1e-9) or not _shift(f, s, j):
            break


@inner
def _several(f: Any, s: Any, j: Any, degree: Any, widest: Any) -> None:
    m, k, room = len(s.room), f.model[j], s.room
    dear, big, inside = np.empty(m), np.empty(m), np.empty(m, np.bool_)
    for node in range(m):
        mutual = s.suffer[node, k]
        for y in range(s.many[node]):
            mutual += f.host[f.model[s.here[node, y, 0]], k]
        dear[node] = f.alone[j, f.kind[node]] * (1.0 + mutual + 0.05 * s.load[node]) if room[node] else np.inf
        big[node] = 1e-3 * np.random.random() - room[node]  # noqa: NPY002
        inside[node] = True
    cheap, roomy = np.argsort(dear), np.argsort(big)
    fewest = -(-degree // widest)
    start, count, x = np.random.randint(m), 0, 0  # noqa: NPY002
    seen = np.empty(_RACKS, np.int64)
    for way in range(6 + 2 * _RACKS):
        most, tight = degree, way % 2 == 1
        if 2 <= way < 5:  # more nodes pay for a hierarchical all-reduce, and for parameter servers
            if f.collective[j] < 2:
                continue
            most, tight = max(1, -(-degree // (fewest * 2 ** (way - 1)))) if way < 4 else 1, False
        elif way == 5:
            for node in range(m):
                inside[node] = s.many[node] == 0
        elif way > 5 and way % 2 == 0:
            while x < m and _has(seen, count, f.above[(start + x) % m]):
                x += 1
            if x == m:
                break
            seen[count] = f.above[(start + x) % m]
            for node in range(m):
                inside[node] = f.above[node] == seen[count]
            count += 1
        better(f, s, j, _fill(roomy if tight else cheap, inside, room, most, degree, tight, s.trial))


@inner
def _has(seen: Any, count: Any, value: Any) -> Any:
    for x in range(count):  # noqa: SIM110
        if seen[x] == value:
            return True
    return False


@inner
def _shift(f: Any, s: Any, j: Any) -> Any:
    """Move parts of the best place to other nodes, or together; return whether that helped."""
    m, before, parts, rows = len(s.room), s.least[0], 0, s.trial
    step = max(1, m // _SOME)
    kept = s.place.copy()
    for x in range(s.size[0]):
        if s.place[x, 1] > 0:
            put(kept, parts, s.place[x, 0], s.place[x, 1], 0)
            parts += 1
    if parts < 2:
        return False
    for x in range(parts):
        for node in range(np.random.randint(step), m, step):  # noqa: NPY002
            part = kept[x, 1]
            if s.room[node] < part or node == kept[x, 0]:
                continue
            copied(kept, rows, parts)
            n, at = parts, x
            for y in range(parts):
                if kept[y, 0] == node:
                    at = y
            if at == x:
                rows[x, 0] = node
            elif rows[at, 1] + part <= s.room[node]:
                n = parts - 1
                rows[at, 1] += part
                put(rows, x, rows[n, 0], rows[n, 1], 0)
            else:
                continue
            better(f, s, j, n)
    return s.least[0] < before * (1 - 1e-9)
