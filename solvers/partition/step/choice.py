"""Of several random moves the one that promises most, before any of them is scheduled; compiled."""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import lean
from .arrays import Arrays
from .moves import Annealing, move, propose, take_back

TRIED = 5
"""Moves of which one is scheduled: with a thousand ops, to look at one takes a tenth of the time of a schedule."""
_CRITICAL, _SMALL = 2.5, 300.0
"""Weight of the delay between ops that the makespan hangs on, besides that of all edges; and by what a share of the
makespan is multiplied before it is damped: up to about its inverse, twice the delay counts twice."""


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
    """Return how much delay a move takes off critical edges and, where links are shared, off all edges.

    Between two groups that move, together or against one another, delays stay as they are.
    """
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
    return _CRITICAL * _damped(critical / s.length[0]) + shared * _damped(total / s.length[0])


@lean
def _less(a: Arrays, u: int, near: int, old: int, new: int) -> float:
    """Return how much sooner op u's output is across if its other end, besides `near`, goes from `old` to `new`."""
    return float(a.delay[a.level[old, near], u] - a.delay[a.level[new, near], u])


@lean
def _damped(x: float) -> float:
    return float(np.sign(x) * np.log1p(_SMALL * abs(x)))
