"""Random changes of a placement that keep memory and colocation, and of several the most promising one; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compiled.kernel import Floats, Ints, lean
from ...compiled.routines import below, uniform
from .arrays import Arrays, Workroom
from .timing import slide

_BALLS = (1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
"""How many neighbouring groups move at once, at most."""
_DEVICES, _NEAR = 0.03, 0.67
"""Share of the moves in which two devices change places, and of those that go where a neighbour is."""

_CRITICAL = 0.4
"""Share of the balls that begin with an op that the makespan hangs on."""


class Annealing(NamedTuple):
    """Where a search is, and the best that it has found; n ops, G groups, k devices.

    Attributes:
        where, bias: device of each group, int64 (G,), and what is added to the rank of each op, float64 (n,).
        left: bytes left on each device, float64 (k,).
        member_first, member: ops of each group, CSR, int64.
        moved, came: groups that have just moved, and from where, int64 (G,).
        kept, goal: groups of the most promising move, and where they go, int64 (G,).
        tally: how many have, how many balls there have been, and how many ops are critical, int64 (3,).
        critical, hangs: ops that cannot start later without making the plan longer, and 1 for each of them, int64 (n,).
        seen, edge, pull: in which ball a group was last, ball and what it may grow by, and how many neighbours a group
            has on the other side, int64 (G,).
        best_where, best_bias, best_order: the best plan, the last in which order its ops are scheduled, int64 (n,).
        length: makespan that it is at, and of the best plan, float64 (2,).
        latest, by_start, free: latest start of each op, float64 (n,), the ops by start, int64 (n,), and from when on
            each device is taken, float64 (k,); see `find_critical`.
        key: rank and bias of each op, no less than of what follows, float64 (n,).
    """

    where: Ints
    bias: Floats
    left: Floats
    member_first: Ints
    member: Ints
    moved: Ints
    came: Ints
    kept: Ints
    goal: Ints
    tally: Ints
    critical: Ints
    hangs: Ints
    seen: Ints
    edge: Ints
    pull: Ints
    best_where: Ints
    best_bias: Floats
    best_order: Ints
    length: Floats
    latest: Floats
    by_start: Ints
    free: Floats
    key: Floats
    room: Workroom


@lean
def propose(a: Arrays, s: Annealing) -> bool:
    """Change the placement; return whether a change was found.

    A ball of groups, connected and on one device, goes to another device: one that holds a neighbour, or any. What has
    no room there is exchanged for groups that come back. Now and then two devices change all they have.
    """
    pick = uniform()
    if pick < _DEVICES:
        return _exchange(a, s)
    critical = s.tally[2] > 0 and uniform() < _CRITICAL
    g = a.group[s.critical[below(s.tally[2])]] if critical else below(len(s.where))
    here, there, near = s.where[g], -1, 0
    if pick < _DEVICES + _NEAR:
        for i in range(a.edge_first[g], a.edge_first[g + 1]):
            d = s.where[a.other[i]]
            if d != here:
                near += 1
                if below(near) == 0:
                    there = d
    if there < 0:
        there = below(len(a.room))
    if there == here:
        return False
    size = _ball(a, s, g, _BALLS[below(len(_BALLS))])
    for i in range(size):
        if np.isfinite(a.work[there, s.edge[i]]) and a.need[s.edge[i]] <= a.room[there]:
            move(a, s, s.edge[i], there)
    return s.tally[0] > 0 and _settle(a, s, here, there)


@lean
def find_critical(a: Arrays, s: Annealing) -> None:
    """Write which ops have no room to start later, with devices and transfers in the order that they have."""
    room, links, tail = s.room, s.room.links, s.latest
    for i in range(len(s.bias)):
        room.key[i] = -room.start[i]
    slide(room.key, a.topological, s.by_start)
    for d in range(len(s.left)):
        s.free[d] = s.length[0]
    count = 0
    for i in range(len(s.bias) - 1, -1, -1):
        v = s.by_start[i]
        d = room.device[v]
        last = s.free[d]
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            away = room.device[w]
            lag = a.delay[a.level[d, away], v]
            if lag > 0.0 and len(links.busy):
                lag += links.sent[v, away] - room.finish[v]
            last = min(last, tail[w] - lag)
        tail[v] = last - (room.finish[v] - room.start[v])
        s.free[d] = tail[v]
        s.hangs[v] = tail[v] <= room.start[v] + 1e-9 * s.length[0]
        if s.hangs[v]:
            s.critical[count] = v
            count += 1
    s.tally[2] = count


@lean
def move(a: Arrays, s: Annealing, g: int, d: int) -> None:
    """Move a group to device d, room or not."""
    s.moved[s.tally[0]], s.came[s.tally[0]] = g, s.where[g]
    s.tally[0] += 1
    _put(a, s, g, d)


@lean
def take_back(a: Arrays, s: Annealing) -> None:
    """Take all moves back."""
    while s.tally[0] > 0:
        s.tally[0] -= 1
        _put(a, s, s.moved[s.tally[0]], s.came[s.tally[0]])


@lean
def _put(a: Arrays, s: Annealing, g: int, d: int) -> None:
    s.left[s.where[g]] += a.need[g]
    s.left[d] -= a.need[g]
    s.where[g] = d
    for i in range(s.member_first[g], s.member_first[g + 1]):
        s.room.device[s.member[i]] = d


@lean
def _ball(a: Arrays, s: Annealing, g: int, size: int) -> int:
    """Write up to `size` connected groups on the device of g, g first, into `edge`, then their rim; return how many."""
    s.tally[1] += 1
    mark, here = s.tally[1], s.where[g]
    s.edge[0], s.seen[g] = g, mark
    inside, known, last = 1, 1, g
    while True:
        for i in range(a.edge_first[last], a.edge_first[last + 1]):
            h = a.other[i]
            if s.seen[h] != mark and s.where[h] == here:
                s.edge[known], s.seen[h] = h, mark
                known += 1
        if inside in (size, known):
            break
        i = inside + below(known - inside)
        last = s.edge[i]
        s.edge[inside], s.edge[i] = last, s.edge[inside]
        inside += 1
    return inside


@lean
def _settle(a: Arrays, s: Annealing, here: int, there: int) -> bool:
    """Bring groups back from `there` until it fits, most neighbours on the other side first; else undo everything."""
    moved = s.tally[0]
    if s.left[there] < 0.0:
        for g in range(len(s.where)):
            s.pull[g] = -1
            if s.where[g] == there and a.need[g] > 0.0 and np.isfinite(a.work[here, g]):
                s.pull[g] = 0
                for i in range(a.edge_first[g], a.edge_first[g + 1]):
                    s.pull[g] += s.where[a.other[i]] == here
        for i in range(moved):
            s.pull[s.moved[i]] = -1
    while s.left[there] < 0.0:
        best, equal = -1, 0
        for g in range(len(s.where)):
            if s.pull[g] < 0 or (best >= 0 and s.pull[g] < s.pull[best]):
                continue
            equal = equal + 1 if best >= 0 and s.pull[g] == s.pull[best] else 1
            if below(equal) == 0:
                best = g
        if best < 0:
            break
        s.pull[best] = -1
        move(a, s, best, here)
    if s.left[there] < 0.0 or s.left[here] < 0.0:
        take_back(a, s)
        return False
    return True


@lean
def _exchange(a: Arrays, s: Annealing) -> bool:
    x, y = below(len(a.room)), below(len(a.room))
    if x == y:
        return False
    for g in range(len(s.where)):
        if s.where[g] == x or s.where[g] == y:
            other = x + y - s.where[g]
            if not np.isfinite(a.work[other, g]):
                take_back(a, s)
                return False
            move(a, s, g, other)
    if min(s.left[x], s.left[y]) < 0.0:
        take_back(a, s)
    return bool(s.tally[0] > 0)


TRIED = 5
"""Moves of which one is scheduled: with a thousand ops, to look at one takes a tenth of the time of a schedule."""
_WEIGHT = 2.5
"""Of the delay between ops that the makespan hangs on, besides that of all edges."""
_SMALL = 300.0
"""What a share of the makespan is multiplied by before it is damped: up to its inverse twice the delay counts twice."""


@lean
def choose(a: Arrays, s: Annealing) -> bool:
    """Change the placement by the most promising of `TRIED` random moves; return whether a change was found."""
    best, count = -np.inf, 0
    for _ in range(TRIED):
        if not propose(a, s):
            continue
        promise = _promise(a, s)
        if promise > best:
            best, count = promise, s.tally[0]
            for i in range(count):
                s.kept[i], s.goal[i] = s.moved[i], s.where[s.moved[i]]
        take_back(a, s)
    for i in range(count):
        move(a, s, s.kept[i], s.goal[i])
    return count > 0


@lean
def _promise(a: Arrays, s: Annealing) -> float:
    """Return the delay a move takes off critical edges and, where links are shared, all; none between groups moved."""
    device, shared, critical, total = s.room.device, len(s.room.links.busy) > 0, 0.0, 0.0
    s.tally[1] += 1
    mark = s.tally[1]
    for i in range(s.tally[0]):
        s.seen[s.moved[i]] = mark
    for i in range(s.tally[0]):
        g, old = s.moved[i], s.came[i]
        new = s.where[g]
        for j in range(s.member_first[g], s.member_first[g + 1]):
            v = s.member[j]
            for e in range(a.before_first[v], a.before_first[v + 1]):
                u = a.before[e]
                if s.seen[a.group[u]] != mark:
                    less = _less(a, u, device[u], old, new)
                    total += less
                    critical += less * s.hangs[u] * s.hangs[v]
            for e in range(a.after_first[v], a.after_first[v + 1]):
                w = a.after[e]
                if s.seen[a.group[w]] != mark:
                    less = _less(a, v, device[w], old, new)
                    total += less
                    critical += less * s.hangs[v] * s.hangs[w]
    return _WEIGHT * _damped(critical / s.length[0]) + shared * _damped(total / s.length[0])


@lean
def _less(a: Arrays, u: int, near: int, old: int, new: int) -> float:
    """Return how much sooner op u's output is across if its other end, besides `near`, goes from `old` to `new`."""
    return float(a.delay[a.level[old, near], u] - a.delay[a.level[new, near], u])


@lean
def _damped(x: float) -> float:
    return float(np.sign(x) * np.log1p(_SMALL * abs(x)))
