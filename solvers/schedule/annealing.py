"""Compiled: annealing of lists, of which a change decodes again what comes after it."""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cclass, cfunc, declare, final, nogil, void
from cython.cimports.libc.math import exp, isfinite, log

from .kernels import Data, Room, Schedule

if not cython.compiled:
    from ..native import Float, Floats, Floats2, Int, Ints
    from .kernels import chosen, clear, seat

NEVER = declare(Float, float("inf"))
TREND = declare(Int, 16)
"""Jobs between two looks at whether a change that has cost more so far makes up for it."""


@final
@cclass
class ListWalk:
    """A list that is changed, of n jobs, and the best one so far.

    Attributes:
        order, wish: jobs, and what each is to have, see `serial`, (n,).
        best_order, best_wish, trial: the same of the best, and room for one more order.
        cost, last: before each place of the list and at its end: of those before it, and when the last of them ends,
            (n + 1,).
        trial_cost, trial_last: the same of the trial.
        times, free, count: profiles of m nodes before every few places, twice: of the list and of a trial,
            (2 s, m, t), (2 s, m, t), (2 s, m).
        slot: which of the two is the list's, 0 or 1, (s,).
    """

    def __init__(self, d: Data, order: Ints, wish: Ints, saved: Int) -> None:
        if len(order) != d.n or len(wish) != d.n or not 1 <= saved <= max(1, d.n):
            raise ValueError(f"a list of {len(order)} jobs is not one of {d.n}")
        self.n, self.saved = d.n, saved
        self.order, self.best_order, self.trial = np.stack([order] * 3)
        self.wish, self.best_wish = np.stack([wish] * 2)
        self.cost, self.last, self.trial_cost, self.trial_last = np.zeros((4, d.n + 1))
        profiles = (2 * saved, d.nodes, 2 * d.n + 2)
        self.times, self.free = np.zeros(profiles), np.zeros(profiles, np.int64)
        self.count, self.slot = np.zeros(profiles[:2], np.int64), np.zeros(saved, np.int64)


def restart(d: Data, r: Room, made: Schedule, w: ListWalk, penalty: Floats) -> float:
    """Go back to the best list, decode it from the beginning on, and return its cost, see `anneal`."""
    with nogil:
        _copy(w.best_order, w.order, 0)
        _copy(w.best_order, w.trial, 0)
        _copy(w.best_wish, w.wish, 0)
        clear(r, d.per)
        for s in range(w.saved):
            w.slot[s] = 1
        _save(w, r, 0)
        w.slot[0] = 0
        _decode(d, r, made, w, penalty, 0, w.n, NEVER)
        _accept(w, 0)
        cost = _total(d, w.cost, w.last, w.n)
    return cost


def anneal(
    d: Data, r: Room, made: Schedule, w: ListWalk, penalty: Floats, best: Float, hot: Floats, draws: Floats2
) -> float:
    """Make a change a row of `draws` in a list that has been decoded, and keep it or not; return the best cost.

    Args:
        d, r, made, penalty: see `serial`.
        w: the list.
        best: the cost of the best one, without the constant.
        hot: the temperature of each change, (k,).
        draws: of each change: its kind, four numbers that say which it is, and one for whether it is kept, from 0 to 1,
            (k, 5).
    """
    if draws.shape[0] != len(hot) or draws.shape[1] != 5 or w.n != d.n or len(penalty) != d.options:
        raise ValueError(f"{draws.shape[0]} changes at {len(hot)} temperatures of {w.n} jobs, not {d.n}")
    with nogil:
        best = _anneal(d, r, made, w, penalty, best, hot, draws)
    return best


@cfunc
@nogil
def _anneal(
    d: Data, r: Room, made: Schedule, w: ListWalk, penalty: Floats, best: Float, hot: Floats, draws: Floats2
) -> Float:
    n = w.n
    for i in range(draws.shape[0]):
        kind, a, b, c, accept = draws[i, 0], draws[i, 1], draws[i, 2], draws[i, 3], draws[i, 4]
        x: Int = int(a * n)
        j = w.order[x]
        some = d.first[j + 1] - d.first[j]
        old: Int = w.wish[j]
        y: Int = x
        if (kind < 0.7 or some < 2) and n > 1:
            # mostly near: as many places in every power of two
            reach: Int = int(exp(b * log(n)))
            y = min(n - 1, max(0, x + reach if c < 0.5 else x - reach))
        s = _restore(w, r, min(x, y))
        _copy(w.order, w.trial, s * n // w.saved)
        if kind < 0.25:
            w.trial[x], w.trial[y] = w.order[y], w.order[x]
        elif y != x:
            z: Int = x
            while z < y:
                w.trial[z] = w.order[z + 1]
                z += 1
            while z > y:
                w.trial[z] = w.order[z - 1]
                z -= 1
            w.trial[y] = j
        if kind > 0.55:
            count: Int = some + 1 if isfinite(d.price[j]) else some
            k: Int = old - d.first[j] + 1 if c * 2.0 % 1.0 < 0.5 else old - d.first[j] - 1
            if kind > 0.8:
                k = int(c * 7919.0 % 1.0 * count)
            k = min(max(k, 0), count - 1)
            w.wish[j] = d.first[j] + k if k < some else -1
        if y == x and w.wish[j] == old:
            continue  # nothing has changed
        most = _total(d, w.cost, w.last, n) - hot[i] * log(max(accept, 1e-300))
        if not _decode(d, r, made, w, penalty, s, max(x, y) + 1, most):
            w.wish[j] = old
            continue
        _accept(w, s)
        cost = _total(d, w.cost, w.last, n)
        if cost < best:
            best = cost
            _copy(w.order, w.best_order, 0)
            _copy(w.wish, w.best_wish, 0)
    return best


@cfunc
@nogil
def _total(d: Data, cost: Floats, last: Floats, place: Int) -> Float:
    return cost[place] + last[place] if d.makespan else cost[place]


@cfunc
@nogil
def _restore(w: ListWalk, r: Room, place: Int) -> Int:
    """Bring back the profiles before the last place not after `place` of which they are kept; return which that is."""
    s: Int = place * w.saved // w.n
    while s * w.n // w.saved > place:
        s -= 1
    at = 2 * s + w.slot[s]
    for v in range(r.nodes):
        r.count[v] = w.count[at, v]
        for k in range(w.count[at, v]):
            r.times[v, k], r.free[v, k] = w.times[at, v, k], w.free[at, v, k]
    return s


@cfunc
@nogil
def _save(w: ListWalk, r: Room, s: Int) -> void:
    at = 2 * s + 1 - w.slot[s]
    for v in range(r.nodes):
        w.count[at, v] = r.count[v]
        for k in range(r.count[v]):
            w.times[at, v, k], w.free[at, v, k] = r.times[v, k], r.free[v, k]


@cfunc
@nogil
def _decode(d: Data, r: Room, made: Schedule, w: ListWalk, penalty: Floats, s: Int, end: Int, most: Float) -> bint:
    """Decode the trial from kept place `s` on; return whether it costs no more than `most`.

    From `end` on the trial has the jobs of the list, so that their costs so far can be compared: it is given up if it
    costs too much more and does not make up for it.
    """
    n = w.n
    begin = s * n // w.saved
    following: Int = s + 1
    after: Int = following * n // w.saved
    w.trial_cost[begin] = w.cost[begin] if begin else 0.0
    w.trial_last[begin] = w.last[begin] if begin else 0.0
    slack = most - _total(d, w.cost, w.last, n)
    before: Float = NEVER
    for place in range(begin, n):
        if place == after:
            _save(w, r, following)
            following += 1
            after = following * n // w.saved
        if place >= end and (place - end) % TREND == 0 and most < NEVER:
            more = _total(d, w.trial_cost, w.trial_last, place) - _total(d, w.cost, w.last, place)
            if more > slack and more >= before:
                return False
            before = more
        j = w.trial[place]
        o, at, nodes = chosen(d, r, j, w.wish[j], penalty, w.trial_last[place], made.finish)
        if o < 0:
            w.trial_cost[place + 1] = w.trial_cost[place] + d.price[j]
            w.trial_last[place + 1] = w.trial_last[place]
            if w.trial_cost[place + 1] == NEVER:
                return False
            continue
        finish = at + d.seconds[o]
        w.trial_cost[place + 1] = w.trial_cost[place] + d.slope[j] * finish
        w.trial_last[place + 1] = max(w.trial_last[place], finish)
        seat(d, r, j, o, at, nodes, made.rows, 0)
    return _total(d, w.trial_cost, w.trial_last, n) <= most


@cfunc
@nogil
def _accept(w: ListWalk, s: Int) -> void:
    for place in range(s * w.n // w.saved, w.n):
        w.order[place] = w.trial[place]
        w.cost[place + 1], w.last[place + 1] = w.trial_cost[place + 1], w.trial_last[place + 1]
    for k in range(s + 1, w.saved):
        w.slot[k] = 1 - w.slot[k]


@cfunc
@nogil
def _copy(source: Ints, target: Ints, begin: Int) -> void:
    for i in range(begin, len(source)):
        target[i] = source[i]
