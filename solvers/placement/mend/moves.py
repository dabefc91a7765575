"""A gang comes, goes, or would come: what that changes, compiled."""

from __future__ import annotations

import numpy as np

from gangplan.instances.verify import TOLERANCE

from ...compiled.kernel import Ints2, lean
from .state import Fixed, Live, cost, cross, meets, seconds, spans, spent, stands

_MANY = 2.0**31 - 1


@lean
def add(batch: Fixed, live: Live, j: int, rows: Ints2, n: int) -> None:
    """Put job j, which is nowhere, on these rows."""
    k = batch.model[j]
    for x in range(n):
        node, w, p = rows[x, 0], rows[x, 1], rows[x, 2]
        live.rows[j, x, 0], live.rows[j, x, 1], live.rows[j, x, 2] = node, w, p
        at = live.many[node]
        live.here[node, at, 0], live.here[node, at, 1], live.here[node, at, 2] = j, w, x
        live.many[node] = at + 1
        _use(batch, live, j, node, w, p, 1)
        if w > 0:
            for i in range(len(batch.host)):
                live.suffer[node, i] += batch.host[i, k]
    live.count[j], live.wide[j] = n, spans(batch, rows, n)
    cross(batch, live, rows, n, batch.duty[j], 1)
    _stir(batch, live, j)
    cross(batch, live, rows, n, 0.0, -1)


@lean
def remove(batch: Fixed, live: Live, j: int) -> None:
    """Take job j off its nodes."""
    k, n = batch.model[j], live.count[j]
    rows = live.rows[j]
    cross(batch, live, rows, n, -batch.duty[j], 1)
    _stir(batch, live, j)
    cross(batch, live, rows, n, 0.0, -1)
    for x in range(n):
        node, w, p = rows[x, 0], rows[x, 1], rows[x, 2]
        last = live.many[node] - 1
        for y in range(last + 1):
            if live.here[node, y, 0] == j:
                for z in range(3):
                    live.here[node, y, z] = live.here[node, last, z]
                break
        live.many[node] = last
        _use(batch, live, j, node, w, p, -1)
        if w > 0:
            for i in range(len(batch.host)):
                live.suffer[node, i] -= batch.host[i, k]
    live.count[j], live.wide[j] = 0, False


@lean
def _use(batch: Fixed, live: Live, j: int, node: int, w: int, p: int, sign: int) -> None:
    need = batch.need[j]
    live.left[node, 0] -= sign * w * need[0]
    for i in range(1, 4):
        live.left[node, i] -= sign * (w * need[i] + p * need[i + 3])
    live.guarded[node] += sign * batch.whole[j]


@lean
def _stir(batch: Fixed, live: Live, j: int) -> None:
    """Note whose cost changes with job j where it is: those on its nodes, and on the links that are marked."""
    live.dirty[j] = True
    for x in range(live.count[j]):
        node = live.rows[j, x, 0]
        for y in range(live.many[node]):
            live.dirty[live.here[node, y, 0]] = True
    if live.wide[j]:  # others that it meets on links meet it on a node
        for i in range(len(live.count)):
            if live.wide[i] and not live.dirty[i] and meets(batch, live, live.rows[i], live.count[i]):
                live.dirty[i] = True


@lean
def settle(batch: Fixed, live: Live) -> float:
    """Bring the costs up to date and return their sum; a job that is nowhere counts what leaving it out costs."""
    for j in range(len(live.count)):
        if not live.dirty[j]:
            continue
        live.dirty[j] = False
        n, rows = live.count[j], live.rows[j]
        if n == 0:
            live.cost[j] = batch.value[j] + batch.migration[j]
        else:
            worst, k = 0.0, batch.model[j]
            for x in range(n):
                if rows[x, 1] > 0:
                    more = live.suffer[rows[x, 0], k] - batch.host[k, k] + batch.extra[j, x]
                    worst = max(worst, batch.alone[j, batch.kind[rows[x, 0]]] * (1.0 + more))
            live.compute[j] = worst
            live.sync[j] = seconds(batch, live, j, rows, n, batch.duty[j])
            live.cost[j] = cost(batch, j, worst, live.sync[j], spent(rows, n))
            if batch.migration[j] > 0 and not stands(batch, j, rows, n):
                live.cost[j] += batch.migration[j]
    total = 0.0
    for j in range(len(live.count)):
        total += live.cost[j]  # afresh: while a gang that must be placed is nowhere it is inf
    return total


@lean
def price(batch: Fixed, live: Live, j: int, rows: Ints2, n: int, limit: float) -> float:
    """Return what the batch costs more with job j, which is nowhere, on these rows; no less than `limit` if that."""
    k = batch.model[j]
    compute = 0.0
    for x in range(n):
        if rows[x, 1] > 0:
            compute = max(compute, batch.alone[j, batch.kind[rows[x, 0]]] * (1.0 + live.suffer[rows[x, 0], k]))
    workers, moved = spent(rows, n), 0.0
    if batch.migration[j] > 0 and not stands(batch, j, rows, n):
        moved = batch.migration[j]
    changed, others = 0, 0.0
    least = moved + cost(batch, j, compute, 0.0, workers)  # the dear things last: most places are worse before them
    if least < limit:
        changed = _beside(batch, live, k, rows, n)
        others = _dearer(batch, live, changed)
        least += others
    if least >= limit:
        return least
    total = moved + cost(batch, j, compute, seconds(batch, live, j, rows, n, 0.0), workers)
    if n < 2 or total + others >= limit:
        return total + others
    duty = batch.duty[j]
    cross(batch, live, rows, n, duty, 1)
    for x in range(n):
        for y in range(live.many[rows[x, 0]]):
            changed = _delayed(batch, live, live.here[rows[x, 0], y, 0], changed)
    if spans(batch, rows, n):
        for i in range(len(live.count)):
            if live.wide[i] and meets(batch, live, live.rows[i], live.count[i]):
                changed = _delayed(batch, live, i, changed)
    cross(batch, live, rows, n, -duty, -1)
    return total + _dearer(batch, live, changed)


@lean
def _known(live: Live, i: int, changed: int) -> bool:
    for z in range(changed):  # noqa: SIM110
        if live.changed[z] == i:
            return True
    return False


@lean
def _beside(batch: Fixed, live: Live, k: int, rows: Ints2, n: int) -> int:
    """Note whose compute one of model k on these rows would slow down, and to what; return how many they are."""
    changed = 0
    for x in range(n):
        node = rows[x, 0]
        if rows[x, 1] == 0:
            continue
        for y in range(live.many[node]):
            i = live.here[node, y, 0]
            if live.here[node, y, 1] == 0:
                continue
            mine = batch.model[i]
            more = (
                live.suffer[node, mine]
                - batch.host[mine, mine]
                + batch.host[mine, k]
                + batch.extra[i, live.here[node, y, 2]]
            )
            then = batch.alone[i, batch.kind[node]] * (1.0 + more)
            if _known(live, i, changed):
                live.other[i, 0] = max(live.other[i, 0], then)
            elif then > live.compute[i]:
                live.other[i, 0], live.other[i, 1] = then, live.sync[i]
                live.changed[changed] = i
                changed += 1
    return changed


@lean
def _delayed(batch: Fixed, live: Live, i: int, changed: int) -> int:
    """Note what synchronisation job i comes to under the loads as they are; return how many are noted."""
    if live.count[i] < 2:
        return changed
    sync = seconds(batch, live, i, live.rows[i], live.count[i], batch.duty[i])
    if sync <= live.sync[i]:
        return changed
    if not _known(live, i, changed):
        live.other[i, 0] = live.compute[i]
        live.changed[changed] = i
        changed += 1
    live.other[i, 1] = sync
    return changed


@lean
def _dearer(batch: Fixed, live: Live, changed: int) -> float:
    """Return what those that are noted cost more."""
    total = 0.0
    for z in range(changed):
        i = live.changed[z]
        moved = (
            batch.migration[i] if batch.migration[i] > 0 and not stands(batch, i, live.rows[i], live.count[i]) else 0.0
        )
        total += (
            moved
            + cost(batch, i, live.other[i, 0], live.other[i, 1], spent(live.rows[i], live.count[i]))
            - live.cost[i]
        )
    return total


@lean
def fit(has: float, need: float) -> float:
    """Return how often `need` goes into `has`."""
    return max(np.floor(has * (1.0 + TOLERANCE) / need), 0.0) if need > 0 else _MANY


@lean
def rooms(batch: Fixed, live: Live, j: int) -> int:
    """Note how many workers of job j, which is nowhere, each node could take; return their sum."""
    total, need, room = 0, batch.need[j], live.room
    for node in range(len(room)):
        most = min(
            float(batch.room[j, batch.kind[node]]), np.floor(live.left[node, 0] / need[0]) if need[0] > 0 else _MANY
        )
        for i in range(1, 4):
            most = min(most, fit(live.left[node, i], need[i]))
        if live.guarded[node] > 0 or (batch.whole[j] and live.many[node] > 0) or live.many[node] >= live.here.shape[1]:
            most = 0.0
        room[node] = int(max(most, 0.0))
    if len(batch.apart) == len(batch.model):
        for i in range(len(batch.model)):
            if batch.apart[j, i]:
                for x in range(live.count[i]):
                    room[live.rows[i, x, 0]] = 0
    for node in range(len(room)):
        total += room[node]
    return total
