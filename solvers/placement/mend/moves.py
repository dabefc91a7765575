"""A gang comes, goes, or would come: what that changes, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.verify import TOLERANCE

from .state import cost, cross, inner, meets, seconds, spans, spent, stands

_MANY = 2.0**31 - 1


@inner
def add(f: Any, s: Any, j: Any, rows: Any, n: Any) -> None:
    """Put job j, which is nowhere, on these rows."""
    k = f.model[j]
    for x in range(n):
        node, w, p = rows[x, 0], rows[x, 1], rows[x, 2]
        s.rows[j, x, 0], s.rows[j, x, 1], s.rows[j, x, 2] = node, w, p
        at = s.many[node]
        s.here[node, at, 0], s.here[node, at, 1], s.here[node, at, 2] = j, w, x
        s.many[node] = at + 1
        _use(f, s, j, node, w, p, 1)
        if w > 0:
            for i in range(len(f.host)):
                s.suffer[node, i] += f.host[i, k]
    s.count[j], s.wide[j] = n, spans(f, rows, n)
    cross(f, s, rows, n, f.duty[j], 1)
    _stir(f, s, j)
    cross(f, s, rows, n, 0.0, -1)


@inner
def remove(f: Any, s: Any, j: Any) -> None:
    """Take job j off its nodes."""
    k, n = f.model[j], s.count[j]
    rows = s.rows[j]
    cross(f, s, rows, n, -f.duty[j], 1)
    _stir(f, s, j)
    cross(f, s, rows, n, 0.0, -1)
    for x in range(n):
        node, w, p = rows[x, 0], rows[x, 1], rows[x, 2]
        last = s.many[node] - 1
        for y in range(last + 1):
            if s.here[node, y, 0] == j:
                for z in range(3):
                    s.here[node, y, z] = s.here[node, last, z]
                break
        s.many[node] = last
        _use(f, s, j, node, w, p, -1)
        if w > 0:
            for i in range(len(f.host)):
                s.suffer[node, i] -= f.host[i, k]
    s.count[j], s.wide[j] = 0, False


@inner
def _use(f: Any, s: Any, j: Any, node: Any, w: Any, p: Any, sign: Any) -> None:
    need = f.need[j]
    s.left[node, 0] -= sign * w * need[0]
    for i in range(1, 4):
        s.left[node, i] -= sign * (w * need[i] + p * need[i + 3])
    s.guarded[node] += sign * f.whole[j]


@inner
def _stir(f: Any, s: Any, j: Any) -> None:
    """Note whose cost changes with job j where it is: those on its nodes, and on the links that are marked."""
    s.dirty[j] = True
    for x in range(s.count[j]):
        node = s.rows[j, x, 0]
        for y in range(s.many[node]):
            s.dirty[s.here[node, y, 0]] = True
    if s.wide[j]:  # others that it meets on links meet it on a node
        for i in range(len(s.count)):
            if s.wide[i] and not s.dirty[i] and meets(f, s, s.rows[i], s.count[i]):
                s.dirty[i] = True


@inner
def settle(f: Any, s: Any) -> Any:
    """Bring the costs up to date and return their sum; a job that is nowhere counts what leaving it out costs."""
    for j in range(len(s.count)):
        if not s.dirty[j]:
            continue
        s.dirty[j] = False
        n, rows = s.count[j], s.rows[j]
        if n == 0:
            s.cost[j] = f.value[j] + f.migration[j]
        else:
            worst, k = 0.0, f.model[j]
            for x in range(n):
                if rows[x, 1] > 0:
                    more = s.suffer[rows[x, 0], k] - f.host[k, k] + f.extra[j, x]
                    worst = max(worst, f.alone[j, f.kind[rows[x, 0]]] * (1.0 + more))
            s.compute[j] = worst
            s.sync[j] = seconds(f, s, j, rows, n, f.duty[j])
            s.cost[j] = cost(f, j, worst, s.sync[j], spent(rows, n))
            if f.migration[j] > 0 and not stands(f, j, rows, n):
                s.cost[j] += f.migration[j]
    total = 0.0
    for j in range(len(s.count)):
        total += s.cost[j]  # afresh: while a gang that must be placed is nowhere it is inf
    return total


@inner
def price(f: Any, s: Any, j: Any, rows: Any, n: Any, limit: Any) -> Any:
    """Return what the batch costs more with job j, which is nowhere, on these rows; no less than `limit` if that."""
    k = f.model[j]
    compute = 0.0
    for x in range(n):
        if rows[x, 1] > 0:
            compute = max(compute, f.alone[j, f.kind[rows[x, 0]]] * (1.0 + s.suffer[rows[x, 0], k]))
    workers, moved = spent(rows, n), 0.0
    if f.migration[j] > 0 and not stands(f, j, rows, n):
        moved = f.migration[j]
    changed, others = 0, 0.0
    least = moved + cost(f, j, compute, 0.0, workers)  # the dear things last: most places are worse before them
    if least < limit:
        changed = _beside(f, s, k, rows, n)
        others = _dearer(f, s, changed)
        least += others
    if least >= limit:
        return least
    total = moved + cost(f, j, compute, seconds(f, s, j, rows, n, 0.0), workers)
    if n < 2 or total + others >= limit:
        return total + others
    duty = f.duty[j]
    cross(f, s, rows, n, duty, 1)
    for x in range(n):
        for y in range(s.many[rows[x, 0]]):
            changed = _delayed(f, s, s.here[rows[x, 0], y, 0], changed)
    if spans(f, rows, n):
        for i in range(len(s.count)):
            if s.wide[i] and meets(f, s, s.rows[i], s.count[i]):
                changed = _delayed(f, s, i, changed)
    cross(f, s, rows, n, -duty, -1)
    return total + _dearer(f, s, changed)


@inner
def _known(s: Any, i: Any, changed: Any) -> Any:
    for z in range(changed):  # noqa: SIM110
        if s.changed[z] == i:
            return True
    return False


@inner
def _beside(f: Any, s: Any, k: Any, rows: Any, n: Any) -> Any:
    """Note whose compute one of model k on these rows would slow down, and to what; return how many they are."""
    changed = 0
    for x in range(n):
        node = rows[x, 0]
        if rows[x, 1] == 0:
            continue
        for y in range(s.many[node]):
            i = s.here[node, y, 0]
            if s.here[node, y, 1] == 0:
                continue
            mine = f.model[i]
            more = s.suffer[node, mine] - f.host[mine, mine] + f.host[mine, k] + f.extra[i, s.here[node, y, 2]]
            then = f.alone[i, f.kind[node]] * (1.0 + more)
            if _known(s, i, changed):
                s.other[i, 0] = max(s.other[i, 0], then)
            elif then > s.compute[i]:
                s.other[i, 0], s.other[i, 1] = then, s.sync[i]
                s.changed[changed] = i
                changed += 1
    return changed


@inner
def _delayed(f: Any, s: Any, i: Any, changed: Any) -> Any:
    """Note what synchronisation job i comes to under the loads as they are; return how many are noted."""
    if s.count[i] < 2:
        return changed
    sync = seconds(f, s, i, s.rows[i], s.count[i], f.duty[i])
    if sync <= s.sync[i]:
        return changed
    if not _known(s, i, changed):
        s.other[i, 0] = s.compute[i]
        s.changed[changed] = i
        changed += 1
    s.other[i, 1] = sync
    return changed


@inner
def _dearer(f: Any, s: Any, changed: Any) -> Any:
    """Return what those that are noted cost more."""
    total = 0.0
    for z in range(changed):
        i = s.changed[z]
        moved = f.migration[i] if f.migration[i] > 0 and not stands(f, i, s.rows[i], s.count[i]) else 0.0
        total += moved + cost(f, i, s.other[i, 0], s.other[i, 1], spent(s.rows[i], s.count[i])) - s.cost[i]
    return total


@inner
def fit(has: Any, need: Any) -> Any:
    """Return how often `need` goes into `has`."""
    return max(np.floor(has * (1.0 + TOLERANCE) / need), 0.0) if need > 0 else _MANY


@inner
def rooms(f: Any, s: Any, j: Any) -> Any:
    """Note how many workers of job j, which is nowhere, each node could take; return their sum."""
    total, need, room = 0, f.need[j], s.room
    for node in range(len(room)):
        most = min(float(f.room[j, f.kind[node]]), np.floor(s.left[node, 0] / need[0]) if need[0] > 0 else _MANY)
        for i in range(1, 4):
            most = min(most, fit(s.left[node, i], need[i]))
        if s.guarded[node] > 0 or (f.whole[j] and s.many[node] > 0) or s.many[node] >= s.here.shape[1]:
            most = 0.0
        room[node] = int(max(most, 0.0))
    if len(f.apart) == len(f.model):
        for i in range(len(f.model)):
            if f.apart[j, i]:
                for x in range(s.count[i]):
                    room[s.rows[i, x, 0]] = 0
    for node in range(len(room)):
        total += room[node]
    return total
