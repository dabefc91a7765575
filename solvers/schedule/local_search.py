"""Simulated annealing over the list and the degrees: a job goes elsewhere in the list, or changes its degree.

A changed list is decoded from its first change on, and only for as long as it may be accepted.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..compiled.kernel import Bools, Floats, Floats2, Floats3, Ints, Ints2, Ints3, by_reference, inner, kernel
from ..run import Run
from .classic import base
from .decode import Decoder, data_of, list_of, room_of, rows_of
from .prepare import PreparedJobs
from .profile import Data, Room, Schedule, chosen, clear, seat

_FIRST, _LAST = 0.01, 0.0004
"""Temperatures, as shares of the goal over the jobs."""
_STEPS = 300
"""Changes of the first annealing; each one after has twice as many."""
_STALL = 4
"""Annealings without a better schedule after which a problem is left."""
_LOOK = 0.004
"""Seconds between two looks at the clock."""
_MOST = 400_000_000
"""Jobs times jobs times nodes of a list at most."""
_SAVED, _BYTES = 16, 6e7
"""Places of a list before which the profiles are kept, fewer where they would take more than so many bytes."""
_TREND = 16
"""Jobs between two looks at whether a change that has cost more so far makes up for it."""


class ListWalk(NamedTuple):
    """A list that is changed, of n jobs, and the best one so far.

    Attributes:
        order, wish: jobs, and what each is to have, see `profile.serial`, (n,).
        best_order, best_wish, trial: the same of the best, and room for one more order.
        may_leave: whether a job may be left out, (n,).
        cost, last: before each place of the list and at its end: of those before it, and when the last of them ends,
            (n + 1,).
        trial_cost, trial_last: the same of the trial.
        times, free, count: profiles of m nodes before every few places, twice: of the list and of a trial,
            (2 s, m, t), (2 s, m, t), (2 s, m).
        slot: which of the two is the list's, 0 or 1, (s,).
    """

    order: Ints
    wish: Ints
    best_order: Ints
    best_wish: Ints
    trial: Ints
    may_leave: Bools
    cost: Floats
    last: Floats
    trial_cost: Floats
    trial_last: Floats
    times: Floats3
    free: Ints3
    count: Ints2
    slot: Ints


@kernel
def anneal(
    changed: ListWalk, best: float, hot: Floats, draws: Floats2, problem: Data, profiles: Room, made: Schedule,
    penalty: Floats,
) -> float:  # fmt: skip
    """Make a change a row of `draws` in `changed`, none without rows, and keep it or not; return the best cost."""
    data, room, walk = by_reference(problem), by_reference(profiles), by_reference(changed)
    order, wish, trial, first = walk.order, walk.wish, walk.trial, data.first
    n = len(order)
    if len(draws) == 0:
        _copy(order, trial, 0)
        clear(room, data.per)
        for s in range(len(walk.slot)):
            walk.slot[s] = 1
        _save(walk, room, 0)
        walk.slot[0] = 0
        _decode(walk, data, room, made, penalty, 0, n, np.inf)
        _accept(walk, 0)
        return _total(walk.cost, walk.last, n, data.makespan)
    for i in range(len(draws)):
        kind, a, b, c, accept = draws[i, 0], draws[i, 1], draws[i, 2], draws[i, 3], draws[i, 4]
        x = int(a * n)
        j = order[x]
        old, y = wish[j], x
        if (kind < 0.7 or first[j + 1] - first[j] < 2) and n > 1:
            # mostly near: as many places in every power of two
            reach = int(np.exp(b * np.log(float(n))))
            y = min(n - 1, max(0, x + (reach if c < 0.5 else -reach)))
        begin, end = min(x, y), max(x, y) + 1
        s = _restore(walk, room, begin, n)
        _copy(order, trial, s * n // len(walk.slot))
        if kind < 0.25:
            trial[x], trial[y] = order[y], order[x]
        elif y != x:
            for z in range(x, y):
                trial[z] = order[z + 1]
            for z in range(x, y, -1):
                trial[z] = order[z - 1]
            trial[y] = j
        if kind > 0.55:
            count = first[j + 1] - first[j] + (1 if walk.may_leave[j] else 0)
            k = int(c * 7919.0 % 1.0 * count) if kind > 0.8 else old - first[j] + (1 if c * 2.0 % 1.0 < 0.5 else -1)
            k = min(max(k, 0), count - 1)
            wish[j] = first[j] + k if k < first[j + 1] - first[j] else -1
        if y == x and wish[j] == old:
            continue  # nothing has changed
        most = _total(walk.cost, walk.last, n, data.makespan) - hot[i] * np.log(max(accept, 1e-300))
        if not _decode(walk, data, room, made, penalty, s, end, most):
            wish[j] = old
            continue
        _accept(walk, s)
        cost = _total(walk.cost, walk.last, n, data.makespan)
        if cost < best:
            best = cost
            _copy(order, walk.best_order, 0)
            _copy(wish, walk.best_wish, 0)
    return best


@inner
def _total(cost: Floats, last: Floats, place: int, makespan: bool) -> float:
    return float(cost[place] + last[place] if makespan else cost[place])


@inner
def _restore(walk: ListWalk, room: Room, place: int, n: int) -> int:
    """Bring back the profiles before the last place not after `place` of which they are kept; return which that is."""
    saved = len(walk.slot)
    s = place * saved // n
    while s * n // saved > place:
        s -= 1
    at = 2 * s + walk.slot[s]
    for v in range(len(room.count)):
        room.count[v] = walk.count[at, v]
        for k in range(walk.count[at, v]):
            room.times[v, k], room.free[v, k] = walk.times[at, v, k], walk.free[at, v, k]
    return s


@inner
def _save(walk: ListWalk, room: Room, s: int) -> None:
    at = 2 * s + 1 - walk.slot[s]
    for v in range(len(room.count)):
        walk.count[at, v] = room.count[v]
        for k in range(room.count[v]):
            walk.times[at, v, k], walk.free[at, v, k] = room.times[v, k], room.free[v, k]


@inner
def _decode(
    walk: ListWalk, data: Data, room: Room, made: Schedule, penalty: Floats, s: int, end: int, most: float
) -> bool:
    """Decode the trial from kept place `s` on; return whether it costs no more than `most`.

    From `end` on the trial has the jobs of the list, so that their costs so far can be compared: it is given up if it
    costs too much more and does not make up for it.
    """
    trial, cost, last = walk.trial, walk.trial_cost, walk.trial_last
    n, saved = len(trial), len(walk.slot)
    begin = s * n // saved
    following, after = s + 1, (s + 1) * n // saved
    cost[begin], last[begin] = (walk.cost[begin], walk.last[begin]) if begin else (0.0, 0.0)
    slack, before = most - _total(walk.cost, walk.last, n, data.makespan), np.inf
    for place in range(begin, n):
        if place == after:
            _save(walk, room, following)
            following += 1
            after = following * n // saved
        if place >= end and (place - end) % _TREND == 0 and most < np.inf:
            more = _total(cost, last, place, data.makespan) - _total(walk.cost, walk.last, place, data.makespan)
            if more > slack and more >= before:
                return False
            before = more
        j = trial[place]
        o, at, nodes = chosen(data, room, j, walk.wish[j], penalty, last[place], made.finish)
        if o < 0:
            cost[place + 1], last[place + 1] = cost[place] + data.price[j], last[place]
            if cost[place + 1] == np.inf:
                return False
            continue
        finish = at + data.seconds[o]
        cost[place + 1], last[place + 1] = cost[place] + data.slope[j] * finish, max(last[place], finish)
        seat(data, room, j, o, at, nodes, made.rows, 0)
    return _total(cost, last, n, data.makespan) <= most


@inner
def _accept(walk: ListWalk, s: int) -> None:
    n, saved = len(walk.order), len(walk.slot)
    begin = s * n // saved
    for place in range(begin, n):
        walk.order[place] = walk.trial[place]
        walk.cost[place + 1], walk.last[place + 1] = walk.trial_cost[place + 1], walk.trial_last[place + 1]
    for k in range(s + 1, saved):
        walk.slot[k] = 1 - walk.slot[k]


@inner
def _copy(source: Ints, target: Ints, begin: int) -> None:
    for i in range(begin, len(source)):
        target[i] = source[i]


def local_search(run: Run, p: PreparedJobs) -> None:
    """Anneal from the best plan known, again and again until nothing better is found."""
    if run.stopped or run.plan is None or p.n * p.n * p.nodes > _MOST:
        return
    rng, search = np.random.default_rng(run.seed), _Search(run, p)
    best, steps, stall, rate = search.restart(), _STEPS, 0, 0.0
    while best < np.inf and not search.late() and stall < _STALL:
        before, i, started = best, 0, time.perf_counter()
        if rate and rate * run.remaining() < 3 * steps:
            steps = max(1, int(rate * run.remaining()))  # the last one ends when the time does
        unit = (best or 1.0) / p.n
        while i < steps and not search.late():
            few = max(1, min(steps - i, int(rate * _LOOK)))
            hot = unit * _FIRST * (_LAST / _FIRST) ** (np.arange(i, i + few) / steps)
            best = search.step(best, hot, rng.random((few, 5)))
            i += few
            rate = i / max(time.perf_counter() - started, 1e-6)
        search.offer(best)
        search.restart()
        stall = 0 if best < before * (1 - 1e-9) else stall + 1
        steps *= 2


class _Search:
    def __init__(self, run: Run, p: PreparedJobs) -> None:
        self._run, self._p, self._decoder = run, p, Decoder(p)
        starts = [list_of(p, run.plan.degree, run.plan.start)]
        if p.kind:  # another order of the same starts takes other nodes
            found = base(p, lambda: run.stopped)
            starts.append((np.argsort(found.rank, kind="stable"), found.option))
        order, wish = min(starts, key=lambda lists: self._decoder.decode(*lists))
        data, room, n = data_of(p), room_of(p), p.n
        width = room.times.shape[1]
        kept = max(1, min(_SAVED, n, int(_BYTES / (32 * p.nodes * width))))
        profiles = (2 * kept, p.nodes, width)
        self._walk = ListWalk(
            order.copy(), wish.copy(), order.copy(), wish.copy(), order.copy(), np.isfinite(p.price),
            np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1),
            np.zeros(profiles), np.zeros(profiles, dtype=np.int64),
            np.zeros(profiles[:2], dtype=np.int64), np.zeros(kept, dtype=np.int64),
        )  # fmt: skip
        made = Schedule(np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(len(p.gpus)), rows_of(p))
        self._given = data, room, made, np.zeros(len(p.gpus))
        self._offered, self._takes = np.inf, 0.0

    def late(self) -> bool:
        return self._run.stopped or self._run.remaining() < 1.5 * self._takes

    def step(self, best: float, hot: FloatArray, draws: FloatArray) -> float:
        return float(anneal(self._walk, best, hot, draws, *self._given))

    def restart(self) -> float:
        self._walk.order[:], self._walk.wish[:] = self._walk.best_order, self._walk.best_wish
        return self.step(np.inf, np.zeros(0), np.zeros((0, 5)))

    def offer(self, best: float) -> None:
        if best < self._offered:
            started, self._offered = time.perf_counter(), best
            self._decoder.offer(self._run, "local_search", self._walk.best_order, self._walk.best_wish)
            self._takes = time.perf_counter() - started
