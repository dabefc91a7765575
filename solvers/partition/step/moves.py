"""Annealing over devices and orders, of whose random moves the most promising of several is scheduled; compiled."""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cclass, declare, final, nogil
from cython.cimports.libc.math import fabs, isfinite, log, log1p
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ...native import Random
from .. import ragged

if not cython.compiled:
    from ...native import Float, Int
    from .arrays import StepArrays, within
    from .timing import Workroom, forward, ranks, slide

COLD = declare(Float, 1e-5)
"""Temperature at the end of a round, as a share of the makespan."""
NUDGED = declare(Float, 0.15)
"""Share of the moves that change an order."""
FORGOTTEN = declare(Float, 0.3)
"""Share of those that forget a bias."""
FAR = declare(Float, 0.1)
"""How far the others go, in makespans."""
BALLS = declare(Int, 11)
"""As many numbers of Fibonacci, up to 89, say how many neighbouring groups move at once, at most."""
DEVICES = declare(Float, 0.03)
"""Share of the moves in which two devices change places."""
NEAR = declare(Float, 0.67)
"""Share of those that go where a neighbour is."""
CRITICAL = declare(Float, 0.4)
"""Share of the balls that begin with an op that the makespan hangs on."""
TRIED = declare(Int, 5)
"""Moves of which one is scheduled: with a thousand ops, to look at one takes a tenth of the time of a schedule."""
WEIGHT = declare(Float, 2.5)
"""Of the delay between ops that the makespan hangs on, besides that of all edges."""
SMALL = declare(Float, 300.0)
"""What a share of the makespan is multiplied by before it is damped: up to its inverse twice the delay counts twice."""
NEVER = declare(Float, float("inf"))


@final
@cclass
class Annealing:
    """Where a search is, and the best that it has found; n ops, G groups, k devices.

    Attributes:
        length, best: makespan that it is at, and of the best plan.
        moves, balls, hanging: how many groups have just moved, balls there have been, and ops are critical.
        where, bias: device of each group, (G,), and what is added to the rank of each op, (n,).
        left: bytes left on each device, (k,).
        member_first, member: ops of each group, CSR.
        moved, came: groups that have just moved, and from where, (G,).
        kept, goal: groups of the most promising move, and where they go, (G,).
        critical, hangs: ops that cannot start later without making the plan longer, and 1 for each of them, (n,).
        seen, edge, pull: in which ball a group was last, ball and what it may grow by, and how many neighbours a group
            has on the other side, (G,).
        best_where, best_bias, best_order: the best plan, the last in which order its ops are scheduled, (n,).
        latest, by_start, free: latest start of each op, (n,), the ops by start, (n,), and from when on each device is
            taken, (k,); see `find_critical`.
        key: rank and bias of each op, no less than of what follows, (n,).
    """

    def __init__(self, room: Workroom, where: NDArray[np.int64], start: FloatArray) -> None:
        """Be at a plan: a device for each group, (G,), with room for it, and a start for each op, (n,)."""
        a = self.arrays = room.arrays
        n, k, groups = a.ops, a.devices, a.groups
        if len(where) != groups or len(start) != n or not within(where, k):
            raise ValueError(f"{len(where)} groups and {len(start)} starts are no plan of {n} ops on {k} devices")
        self.room, self.moves, self.balls, self.hanging = room, 0, 0, 0
        self.where, self.best_where = np.array([where] * 2, np.int64)
        self.member, self.member_first = ragged(np.asarray(a.group), np.arange(n), groups)
        self.moved, self.came, self.kept, self.goal, self.seen, self.edge, self.pull = np.zeros((7, groups), np.int64)
        self.critical, self.hangs, self.best_order = np.zeros((3, n), np.int64)
        self.by_start = np.array(room.topological)
        self.bias, self.best_bias, self.latest, self.key = np.zeros((4, n))
        self.left, self.free = np.zeros((2, k))
        self.length, self.best, self.random = NEVER, NEVER, Random(0)
        np.asarray(room.key)[:] = start
        _return(a, self)
        _begin(a, self)


def anneal(s: Annealing, i: Int, size: Int, hot: Float, budget: Int, seed: Int) -> int:
    """Go on with a round, from step i on, until the budget is used up or the round is over; return the next step.

    Cooling is geometric (Kirkpatrick, Gelatt, Vecchi, Science 1983). How long a plan may be is drawn before it is made,
    so that most are given up early.

    Args:
        s: at step 0 it goes back to its best plan.
        hot: temperature at the beginning, as a share of the makespan.
        budget: ops that are scheduled.
    """
    s.random, a = Random(seed), s.arrays
    with nogil:
        if i == 0:
            _return(a, s)
        while i < size and budget > 0:
            heat = hot * (COLD / hot) ** (1.0 * i / size) * s.best
            i += 1
            v: Int = -1
            old: Float = 0.0
            if s.random.uniform() < NUDGED or not choose(a, s):
                v = s.random.below(a.ops)
                old = s.bias[v]
                if old != 0.0 and s.random.uniform() < FORGOTTEN:
                    s.bias[v] = 0.0
                else:
                    s.bias[v] += s.random.normal() * FAR * s.length
            most = s.length - heat * log(1.0 - s.random.uniform()) + 1e-12 * s.length
            length = _evaluate(a, s, most)
            budget -= a.ops // 3 + s.room.done
            if length < most:
                s.length = length
                s.moves = 0
                _keep(a, s)
                find_critical(a, s)
            else:
                take_back(a, s)
                if v >= 0:
                    s.bias[v] = old
    return i


def _return(a: StepArrays, s: Annealing) -> None:
    s.moves = 0
    for d in range(a.devices):
        s.left[d] = a.room[d]
    for g in range(a.groups):
        s.where[g] = s.best_where[g]
        s.left[s.where[g]] -= a.need[g]
    for v in range(a.ops):
        s.room.device[v] = s.where[a.group[v]]
        s.bias[v] = s.best_bias[v]
    s.length = s.best


def _begin(a: StepArrays, s: Annealing) -> None:
    """Keep the plan of a search that has none yet, by ranks or in its own order, whose starts are the room's keys."""
    s.length = _evaluate(a, s, NEVER)
    _keep(a, s)
    # the order of the plan need not be that of its ranks: keep it as a bias
    for v in range(a.ops):
        s.bias[v] = -s.room.key[v] - s.room.tail[v]
    s.length = _evaluate(a, s, NEVER)
    _keep(a, s)
    find_critical(a, s)


def _evaluate(a: StepArrays, s: Annealing, limit: Float) -> Float:
    """Schedule by falling rank and bias; return the makespan, infinite from `limit` on."""
    ranks(a, s.room)
    for i in range(a.ops - 1, -1, -1):
        v = s.room.topological[i]
        if s.room.tail[v] >= limit:
            s.room.done = 0
            return NEVER
        most: Float = s.room.tail[v] + s.bias[v]
        for j in range(a.after_first[v], a.after_first[v + 1]):
            most = max(most, s.key[a.after[j]])
        s.key[v] = most
    slide(s.key, a.place, s.room.order)
    return forward(a, s.room, limit)


def _keep(a: StepArrays, s: Annealing) -> None:
    if s.length < s.best * (1 - 1e-9):
        s.best = s.length
        for g in range(a.groups):
            s.best_where[g] = s.where[g]
        for v in range(a.ops):
            s.best_bias[v], s.best_order[v] = s.bias[v], s.room.order[v]


def propose(a: StepArrays, s: Annealing) -> bool:
    """Change the placement; return whether a change was found.

    A ball of groups, connected and on one device, goes to another device: one that holds a neighbour, or any. What has
    no room there is exchanged for groups that come back. Now and then two devices change all they have.
    """
    pick = s.random.uniform()
    if pick < DEVICES:
        return _exchange(a, s)
    critical: bint = s.hanging > 0 and s.random.uniform() < CRITICAL
    g = a.group[s.critical[s.random.below(s.hanging)]] if critical else s.random.below(a.groups)
    here = s.where[g]
    there: Int = -1
    near: Int = 0
    if pick < DEVICES + NEAR:
        for i in range(a.edge_first[g], a.edge_first[g + 1]):
            d = s.where[a.other[i]]
            if d != here:
                near += 1
                if s.random.below(near) == 0:
                    there = d
    if there < 0:
        there = s.random.below(a.devices)
    if there == here:
        return False
    size: Int = 1
    more: Int = 1
    for _ in range(s.random.below(BALLS)):
        size, more = more, size + more
    for i in range(_ball(a, s, g, size)):
        if isfinite(a.work[there, s.edge[i]]) and a.need[s.edge[i]] <= a.room[there]:
            _move(a, s, s.edge[i], there)
    return s.moves > 0 and _settle(a, s, here, there)


def find_critical(a: StepArrays, s: Annealing) -> None:
    """Write which ops have no room to start later, with devices and transfers in the order that they have."""
    for v in range(a.ops):
        s.room.key[v] = -s.room.start[v]
    slide(s.room.key, a.place, s.by_start)
    for d in range(a.devices):
        s.free[d] = s.length
    s.hanging = 0
    for i in range(a.ops - 1, -1, -1):
        v = s.by_start[i]
        d = s.room.device[v]
        last: Float = s.free[d]
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            away = s.room.device[w]
            lag: Float = a.delay[a.level[d, away], v]
            if lag > 0.0 and s.room.contention:
                lag += s.room.sent[v, away] - s.room.finish[v]
            last = min(last, s.latest[w] - lag)
        s.latest[v] = last - (s.room.finish[v] - s.room.start[v])
        s.free[d] = s.latest[v]
        s.hangs[v] = s.latest[v] <= s.room.start[v] + 1e-9 * s.length
        if s.hangs[v]:
            s.critical[s.hanging] = v
            s.hanging += 1


def _move(a: StepArrays, s: Annealing, g: Int, d: Int) -> None:
    """Move a group to device d, room or not."""
    s.moved[s.moves], s.came[s.moves] = g, s.where[g]
    s.moves += 1
    _put(a, s, g, d)


def take_back(a: StepArrays, s: Annealing) -> None:
    """Take all moves back."""
    while s.moves > 0:
        s.moves -= 1
        _put(a, s, s.moved[s.moves], s.came[s.moves])


def _put(a: StepArrays, s: Annealing, g: Int, d: Int) -> None:
    s.left[s.where[g]] += a.need[g]
    s.left[d] -= a.need[g]
    s.where[g] = d
    for i in range(s.member_first[g], s.member_first[g + 1]):
        s.room.device[s.member[i]] = d


def _ball(a: StepArrays, s: Annealing, g: Int, size: Int) -> Int:
    """Write up to `size` connected groups on the device of g, g first, into `edge`, then their rim; return how many."""
    s.balls += 1
    s.edge[0], s.seen[g] = g, s.balls
    inside: Int = 1
    known: Int = 1
    last: Int = g
    while True:
        for i in range(a.edge_first[last], a.edge_first[last + 1]):
            h = a.other[i]
            if s.seen[h] != s.balls and s.where[h] == s.where[g]:
                s.edge[known], s.seen[h] = h, s.balls
                known += 1
        if inside in (size, known):
            break
        i = inside + s.random.below(known - inside)
        last = s.edge[i]
        s.edge[inside], s.edge[i] = last, s.edge[inside]
        inside += 1
    return inside


def _settle(a: StepArrays, s: Annealing, here: Int, there: Int) -> bool:
    """Bring groups back from `there` until it fits, most neighbours on the other side first; else undo everything."""
    if s.left[there] < 0.0:
        for g in range(a.groups):
            s.pull[g] = -1
            if s.where[g] == there and a.need[g] > 0.0 and isfinite(a.work[here, g]):
                s.pull[g] = 0
                for i in range(a.edge_first[g], a.edge_first[g + 1]):
                    s.pull[g] += s.where[a.other[i]] == here
        for i in range(s.moves):
            s.pull[s.moved[i]] = -1
    while s.left[there] < 0.0:
        best: Int = -1
        equal: Int = 0
        for g in range(a.groups):
            if s.pull[g] < 0 or (best >= 0 and s.pull[g] < s.pull[best]):
                continue
            equal = equal + 1 if best >= 0 and s.pull[g] == s.pull[best] else 1
            if s.random.below(equal) == 0:
                best = g
        if best < 0:
            break
        s.pull[best] = -1
        _move(a, s, best, here)
    if s.left[there] < 0.0 or s.left[here] < 0.0:
        take_back(a, s)
        return False
    return True


def _exchange(a: StepArrays, s: Annealing) -> bool:
    x, y = s.random.below(a.devices), s.random.below(a.devices)
    if x == y:
        return False
    for g in range(a.groups):
        if s.where[g] == x or s.where[g] == y:
            other = x + y - s.where[g]
            if not isfinite(a.work[other, g]):
                take_back(a, s)
                return False
            _move(a, s, g, other)
    if s.left[x] < 0.0 or s.left[y] < 0.0:
        take_back(a, s)
    return s.moves > 0


def choose(a: StepArrays, s: Annealing) -> bool:
    """Change the placement by the most promising of `TRIED` random moves; return whether a change was found."""
    best: Float = -NEVER
    count: Int = 0
    for _ in range(TRIED):
        if propose(a, s):
            promise = _promise(a, s)
            if promise > best:
                best, count = promise, s.moves
                for i in range(count):
                    s.kept[i], s.goal[i] = s.moved[i], s.where[s.moved[i]]
            take_back(a, s)
    for i in range(count):
        _move(a, s, s.kept[i], s.goal[i])
    return count > 0


def _promise(a: StepArrays, s: Annealing) -> Float:
    """Return the delay a move takes off critical edges and, where links are shared, all; none between groups moved."""
    critical: Float = 0.0
    total: Float = 0.0
    shared: Float = s.room.contention
    s.balls += 1
    for i in range(s.moves):
        s.seen[s.moved[i]] = s.balls
    for i in range(s.moves):
        g, old = s.moved[i], s.came[i]
        for j in range(s.member_first[g], s.member_first[g + 1]):
            v = s.member[j]
            for e in range(a.before_first[v], a.before_first[v + 1]):
                u = a.before[e]
                if s.seen[a.group[u]] != s.balls:
                    less = _less(a, u, s.room.device[u], old, s.where[g])
                    total += less
                    critical += less * s.hangs[u] * s.hangs[v]
            for e in range(a.after_first[v], a.after_first[v + 1]):
                w = a.after[e]
                if s.seen[a.group[w]] != s.balls:
                    less = _less(a, v, s.room.device[w], old, s.where[g])
                    total += less
                    critical += less * s.hangs[v] * s.hangs[w]
    return WEIGHT * _damped(critical / s.length) + shared * _damped(total / s.length)


def _less(a: StepArrays, u: Int, near: Int, old: Int, new: Int) -> Float:
    """Return how much sooner op u's output is across if its other end, besides `near`, goes from `old` to `new`."""
    return a.delay[a.level[old, near], u] - a.delay[a.level[new, near], u]


def _damped(x: Float) -> Float:
    return (-1.0 if x < 0.0 else 1.0) * log1p(SMALL * fabs(x))
