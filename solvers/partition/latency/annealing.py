"""Simulated annealing over plans (Kirkpatrick, Gelatt and Vecchi, Science 1983), compiled.

A move takes some items of a call, or of the hosts, to the slot of a neighbour, to a host or to an idle accelerator:
one by itself, a few next to one another, or an item with all before it, or behind it, in its call, which brings no
circle. Seconds and bytes of a slot follow each move; when calls and items on hosts run is computed anew.
"""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import Ints, by_reference, lean, lean_kernel
from ...compiled.routines import below, sow, uniform
from ...run import Run
from .arrays import LatencyArrays, LatencyState, arrays_of, state_of
from .reduced import Reduced, offer

_BUNCH = 6
"""Items next to one another that move at most."""
_ALL, _BOTH = 0.01, 0.02
"""How often a whole slot moves to another, and how often the contents of two are exchanged."""
_ANY, _FAR = 0.15, 4
"""How often a slot is any; items on a way to one that is in another slot."""


@lean_kernel
def anneal(
    data: LatencyArrays, plan: LatencyState, best: Ints, least: float, hot: float, cold: float, moves: int, seed: int
) -> float:
    """Try moves from a plan, which changes; return the latency of the best, seconds, and put that into `best`.

    Args:
        best: the slots of the best plan so far, int64 (G,).
        least: its latency, seconds.
        hot, cold: the first and the last temperature, as shares of `least`.
    """
    d, p = by_reference(data), by_reference(plan)
    sow(seed)
    _count(d, p)
    now = _latency(d, p)
    heat, step = hot, (cold / hot) ** (1.0 / moves)
    for _ in range(moves):
        heat *= step
        some = _move(d, p)
        if some == 0:
            continue
        new = np.inf if _full(d, p, some) else _latency(d, p)
        if new <= now or (new < np.inf and new - now < -heat * least * np.log(uniform())):
            now = new
            if now < least * (1 - 1e-9):
                least = now
                for g in range(len(best)):
                    best[g] = p.slot[g]
        else:
            _back(d, p, some)
    return least


@lean
def _count(d: LatencyArrays, p: LatencyState) -> None:
    for e in range(len(d.size)):
        for s in range(len(d.kind)):
            p.inside[e, s] = 0
    for s in range(len(d.kind)):
        p.load[s] = p.used[s] = 0.0
    for g in range(len(p.slot)):
        s = p.slot[g]
        p.slot[g] = -1
        _put(d, p, g, s)


@lean
def _put(d: LatencyArrays, p: LatencyState, g: int, to: int) -> None:
    here = p.slot[g]
    p.slot[g] = to
    if here >= 0:
        p.load[here] -= d.group_time[d.kind[here], g]
        p.used[here] -= d.memory[g]
    p.load[to] += d.group_time[d.kind[to], g]
    p.used[to] += d.memory[g]
    for i in range(d.member_first[g], d.member_first[g + 1]):
        v = d.member[i]
        for j in range(d.net_first[v], d.net_first[v + 1]):
            e = d.net[j]
            size, cost = d.size[e], d.cost[e]
            if here >= 0:
                if p.inside[e, here] == size:
                    p.load[here] += cost
                p.inside[e, here] -= 1
                if p.inside[e, here] == 0 and size > 1:
                    p.load[here] -= cost
            if p.inside[e, to] == 0 and size > 1:
                p.load[to] += cost
            p.inside[e, to] += 1
            if p.inside[e, to] == size and size > 1:
                p.load[to] -= cost


@lean
def _full(d: LatencyArrays, p: LatencyState, some: int) -> bool:
    for i in range(some):
        s = p.slot[p.moved[i]]
        if p.used[s] > d.room[s]:
            return True
    return False


@lean
def _take(d: LatencyArrays, p: LatencyState, some: int, g: int, to: int) -> int:
    """Move a group and note it; return how many have moved, 0 less one if it cannot run there."""
    if not np.isfinite(d.group_time[d.kind[to], g]):
        return -1
    p.moved[some], p.came_from[some] = g, p.slot[g]
    _put(d, p, g, to)
    return some + 1


@lean
def _back(d: LatencyArrays, p: LatencyState, some: int) -> int:
    for i in range(some - 1, -1, -1):
        _put(d, p, p.moved[i], p.came_from[i])
    return 0


@lean
def _move(d: LatencyArrays, p: LatencyState) -> int:
    v, slots, way = below(len(d.group)), len(d.kind), uniform()
    g = d.group[v]
    here = p.slot[g]
    if way < _ALL + _BOTH:
        to = below(slots)
        return 0 if to == here else _exchange(d, p, here, to, way < _BOTH)
    back = uniform() < 0.5
    to = _target(d, p, v, here, back)
    if to < 0 or to == here:
        return 0
    some = _take(d, p, 0, g, to)
    if some < 0:
        return 0
    if uniform() < 0.5:
        return _closure(d, p, some, here, to, back)
    return _bunch(d, p, some, v, here, to)


@lean
def _exchange(d: LatencyArrays, p: LatencyState, here: int, to: int, both: bool) -> int:
    """Move everything of a slot to another one, and of that to the first if `both`."""
    some = 0
    for g in range(len(p.slot)):
        s = p.slot[g]
        if s == here or (both and s == to):
            some = _take(d, p, some, g, to if s == here else here) if some >= 0 else some
            if some < 0:
                break
    return some


@lean
def _beside(d: LatencyArrays, v: int, back: bool) -> int:
    if back:
        first, count = d.before_first[v], d.before_first[v + 1] - d.before_first[v]
        return int(d.before[first + below(count)]) if count else -1
    first, count = d.after_first[v], d.after_first[v + 1] - d.after_first[v]
    return int(d.after[first + below(count)]) if count else -1


@lean
def _target(d: LatencyArrays, p: LatencyState, v: int, here: int, back: bool) -> int:
    """Return the slot of a neighbour before or behind, or sometimes any: a host, an idle accelerator."""
    if uniform() < _ANY:
        return below(len(d.kind))
    for _ in range(_FAR):
        v = _beside(d, v, back)
        if v < 0:
            return -1
        s = p.slot[d.group[v]]
        if s != here:
            return int(s)
    return -1


@lean
def _closure(d: LatencyArrays, p: LatencyState, some: int, here: int, to: int, back: bool) -> int:
    """Move all before the groups moved that are in their slot, or all behind them."""
    at = 0
    while at < some:
        g = p.moved[at]
        at += 1
        for i in range(d.member_first[g], d.member_first[g + 1]):
            v = d.member[i]
            first = d.before_first[v] if back else d.after_first[v]
            last = d.before_first[v + 1] if back else d.after_first[v + 1]
            for j in range(first, last):
                h = d.group[d.before[j] if back else d.after[j]]
                if p.slot[h] == here:
                    new = _take(d, p, some, h, to)
                    if new < 0:
                        return _back(d, p, some)
                    some = new
    return some


@lean
def _bunch(d: LatencyArrays, p: LatencyState, some: int, v: int, here: int, to: int) -> int:
    """Move a few more groups of the slot, each next to the one before."""
    for _ in range(below(_BUNCH)):
        v = _beside(d, v, uniform() < 0.5)
        if v < 0 or p.slot[d.group[v]] != here:
            break
        new = _take(d, p, some, d.group[v], to)
        if new < 0:
            return _back(d, p, some)
        some = new
    return some


@lean
def _unit(d: LatencyArrays, p: LatencyState, v: int) -> int:
    s = p.slot[d.group[v]]
    return len(d.kind) + v if d.host[s] else s


@lean
def _latency(d: LatencyArrays, p: LatencyState) -> float:
    """Return when the last call or item on a host (unit S + v) is done, infinite if calls wait in a circle."""
    units, slots, last, at = _units(d, p), len(d.kind), 0.0, 0
    size = _ready(d, p)
    while at < size:
        unit = p.queue[at]
        at += 1
        v = unit - slots if unit >= slots else p.top[unit]
        p.finish[unit] += d.time[d.kind[p.slot[d.group[v]]], v] if unit >= slots else p.load[unit]
        last = max(last, p.finish[unit])
        while v >= 0:
            for j in range(d.after_first[v], d.after_first[v + 1]):
                other = _unit(d, p, d.after[j])
                if other != unit:
                    p.finish[other] = max(p.finish[other], p.finish[unit])
                    p.waits[other] -= 1
                    if p.waits[other] == 0:
                        p.queue[size] = other
                        size += 1
            v = -1 if unit >= slots else p.below[v]
    return last if size == units else np.inf


@lean
def _units(d: LatencyArrays, p: LatencyState) -> int:
    """List the items of each call, count for how many others each unit waits, and return how many units there are."""
    slots, units = len(d.kind), 0
    for s in range(slots):
        p.top[s], p.waits[s], p.finish[s] = -1, 0, 0.0
    for v in range(len(d.group) - 1, -1, -1):
        s, own = p.slot[d.group[v]], _unit(d, p, v)
        if own < slots:
            units += p.top[s] < 0
            p.below[v], p.top[s] = p.top[s], v
        else:
            units += 1
            p.waits[own], p.finish[own] = 0, 0.0
        for j in range(d.before_first[v], d.before_first[v + 1]):
            p.waits[own] += _unit(d, p, d.before[j]) != own
    return units


@lean
def _ready(d: LatencyArrays, p: LatencyState) -> int:
    size, slots = 0, len(d.kind)
    for s in range(slots):
        if p.top[s] >= 0 and p.waits[s] == 0:
            p.queue[size] = s
            size += 1
    for v in range(len(d.group)):
        if d.host[p.slot[d.group[v]]] and p.waits[slots + v] == 0:
            p.queue[size] = slots + v
            size += 1
    return size


_HOT, _COLD = 0.03, 0.0003
"""Temperatures, as shares of the best plan's latency."""
_SECONDS, _FIRST, _LONGER = 0.003, 15, 2
"""Between two looks at the clock; moves of the first annealing for each group; how much longer the next one is."""
_MOST = 40_000
"""Moves of the longest annealing for each group."""
_STALLED = 6
"""Annealings as long as they get without a better plan, after which this ends."""


def local_search(run: Run, r: Reduced) -> None:
    """Improve the best plan by simulated annealing; do nothing if there is none."""
    slots = None if run.plan is None or run.stopped else r.slots_of(run.plan)
    if slots is None or run.objective is None:
        return
    data, rng = arrays_of(r), np.random.default_rng(run.seed)
    best, least = np.array(slots, np.int64), run.objective
    longest = len(best) * _MOST
    moves, stalled, chunk = len(best) * _FIRST, 0, 200
    while not run.stopped and stalled < _STALLED and least > 0:
        plan, began, done = state_of(data, best.tolist()), least, 0
        while done < moves and not run.stopped:
            before, size = run.seconds(), min(chunk, moves - done)
            hot, cold = (_HOT * (_COLD / _HOT) ** ((done + x) / moves) for x in (0, size))
            least = float(anneal(data, plan, best, least, hot, cold, size, int(rng.integers(2**31))))
            done += size
            chunk = max(50, int(size * min(4.0, _SECONDS / max(run.seconds() - before, 1e-6))))
        if least < began:
            offer(run, r, best.tolist(), "local_search")
        stalled = 0 if least < began else stalled + (moves >= longest)
        moves = min(longest, _LONGER * moves)
