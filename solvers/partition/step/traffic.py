"""Annealing of a placement by an estimate of its makespan, a million moves a second, without a schedule."""

from __future__ import annotations

from itertools import cycle

import numpy as np

from ...compiled.kernel import by_reference, lean, lean_kernel
from ...compiled.routines import below, sow, uniform
from ...run import Run
from .arrays import Arrays, Links, Workroom, workroom
from .found import Found, devices_of, plan_of
from .loads import Traffic, count, estimate, look, move, traffic_of
from .model import Prepared
from .timing import polish

_HOT, _COLD = (1e-2, 3e-3), 3e-4
"""Temperature at the beginning of a round, in turn, and at its end, as a share of the estimate."""
_SHARP = (8.0, 4.0)
"""Powers by which path and load are joined, in turn: the higher, the more the larger of them counts alone."""
_BACK, _FAR, _DRAWS = 0.4, 0.2, 8
"""Share of the moves in which a group comes back, and of those that go anywhere instead of to a neighbour; how many
groups are drawn to find one that comes back."""
_LOOKS = 32
"""Looks at the path in a round."""
_FRESH = 0.5
"""Share of the multipliers that a look makes anew."""
_FIRST, _MOST = 20, 4_000
"""Moves of the first round and of the longest one, for each group."""
_READERS = 20_000_000
"""Ops times devices, for each of which there is a number, at most."""
_HEAVY = 5.0
"""How many times the compute it has to take to send every output once on the slowest level."""
_SECONDS = 8e-7
"""About what a move takes."""
_ROUNDS = 4
"""Of `polish`."""
_STALE = 2
"""Rounds without a better plan after which the search ends."""


def decides(p: Prepared) -> bool:
    """Return whether traffic is likely to decide: links are shared, memory spreads the ops, outputs take long to send.

    Elsewhere it is the order of the ops that decides, which the estimate does not see.
    """
    if not p.contention or not p.memory_binds or not len(p.used_levels) or p.n * p.n_devices > _READERS:
        return False
    sent = float(p.delay[p.used_levels[-1]][np.diff(p.successors[0]) > 0].sum())
    return sent >= _HEAVY * float(p.fastest.sum())


@lean
def _other(a: Arrays, s: Traffic, here: int, there: int) -> int:
    """Return a random group that is on one device and can be on another, -1 if a few draws find none."""
    for _ in range(_DRAWS):
        g = below(len(s.where))
        if s.where[g] == here and np.isfinite(a.work[there, g]):
            return g
    return -1


@lean
def _fits(s: Traffic) -> bool:
    """Return whether no device is above its memory."""
    least = np.inf
    for left in s.left:
        least = min(least, left)
    return least >= 0.0


@lean_kernel
def anneal_traffic(
    arrays: Arrays, shared: Links, search: Traffic, sharp: float, hot: float, i: int, last: int, size: int, seed: int
) -> None:
    """Go on with a round, from move i to `last`, and look at the path.

    Args:
        arrays, shared, search: problem, links, and search; at move 0 it goes back to its best placement.
        sharp: see `_SHARP`.
        hot: see `_HOT`.
        i, last, size: moves.
        seed: of all that is drawn.
    """
    a, links, s = by_reference(arrays), by_reference(shared), by_reference(search)
    sow(seed)
    k, groups = len(a.room), len(s.where)
    if i == 0:
        count(a, links, s)
        s.value[0] = look(a, s, 1.0)
        s.value[1] = s.value[2] = estimate(a, s, s.value[0], sharp)
    for d in range(k):
        s.stamp[d] = -1
    mark = 0
    while i < last:
        heat = hot * (_COLD / hot) ** (i / size) * s.value[1]
        i += 1
        g = below(groups)
        here = s.where[g]
        degree = a.edge_first[g + 1] - a.edge_first[g]
        near = degree > 0 and uniform() >= _FAR
        there = s.where[a.other[a.edge_first[g] + below(degree)]] if near else below(k)
        if there == here or not np.isfinite(a.work[there, g]):
            continue
        path, h = s.value[0], _other(a, s, there, here) if uniform() < _BACK else -1
        mark = move(a, links, s, g, there, mark)
        if h >= 0:
            mark = move(a, links, s, h, here, mark)
        value = estimate(a, s, s.value[0], sharp)
        if value < s.value[1] - heat * np.log(1.0 - uniform()):
            s.value[1] = value
        else:
            if h >= 0:
                mark = move(a, links, s, h, there, mark)
            mark = move(a, links, s, g, here, mark)
            s.value[0] = path
    s.value[0] = look(a, s, _FRESH)
    s.value[1] = estimate(a, s, s.value[0], sharp)
    if s.value[1] < s.value[2] and _fits(s):
        s.value[2] = s.value[1]
        for g in range(groups):
            s.best[g] = s.where[g]


def traffic(run: Run, p: Prepared) -> None:
    """Schedule the best plan's placement, and what rounds of annealing make of it, each twice as long as the last."""
    if (where := devices_of(p, run.plan)) is None:
        return
    room, rng = workroom(p), np.random.default_rng(run.seed)
    s = traffic_of(p, room.links, where)
    found, stale = _scheduled(run, p, room, s), 0
    # in powers of two, so that one seed gives one trace
    size = int(min(_FIRST * p.n_groups, 2.0 ** np.floor(np.log2(max(run.remaining() / 2 / _SECONDS, 1.0)))))
    for sharp, hot in cycle(zip(_SHARP, _HOT, strict=True)):
        for part in range(_LOOKS):
            if run.stopped:
                break
            at, to = size * part // _LOOKS, size * (part + 1) // _LOOKS
            anneal_traffic(p.arrays, room.links, s, sharp, hot, at, to, size, int(rng.integers(2**31)))
        made = _scheduled(run, p, room, s)
        stale = 0 if made.length < found.length else stale + 1
        if run.stopped or stale == _STALE:
            return
        found = min(found, made, key=lambda x: x.length)
        s.best[:] = found.where
        size = min(2 * size, _MOST * p.n_groups)


def _scheduled(run: Run, p: Prepared, room: Workroom, s: Traffic) -> Found:
    """Return a schedule of the best placement, and offer it if it is better than the best plan."""
    start, finish = np.zeros(p.n), np.full(p.n, np.inf)
    found = Found(polish(p.arrays, room, s.best, start, finish, _ROUNDS), s.best.copy(), start)
    if run.objective is None or found.length < run.objective:
        run.offer(plan_of(p, room, found), "traffic")
    return found
