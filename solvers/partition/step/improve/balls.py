"""Random changes of a placement that keep memory and colocation, and can be taken back; compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_BALLS = (1, 1, 1, 2, 3, 5, 8, 13, 21, 34)
"""How many neighbouring groups move at once, at most."""
_DEVICES, _NEAR = 0.03, 0.67
"""Share of the moves in which two devices change places, and of those that go where a neighbour is."""


@njit(cache=True)
def propose(a: Any, s: Any) -> bool:
    """Change the placement; return whether a change was found.

    A ball of groups, connected and on one device, goes to another device: one that holds a neighbour, or any. What has
    no room there is exchanged for groups that come back. Now and then two devices change all they have.

    Args:
        a, s: problem and search, `Arrays` and `Annealing`.
    """
    pick = np.random.random()  # noqa: NPY002
    if pick < _DEVICES:
        return _exchange(a, s)
    g = np.random.randint(len(s.where))  # noqa: NPY002
    here, there, near = s.where[g], -1, 0
    if pick < _DEVICES + _NEAR:
        for i in range(a.edge_first[g], a.edge_first[g + 1]):
            d = s.where[a.other[i]]
            if d != here:
                near += 1
                if np.random.randint(near) == 0:  # noqa: NPY002
                    there = d
    if there < 0:
        there = np.random.randint(len(a.room))  # noqa: NPY002
    if there == here:
        return False
    size = _ball(a, s, g, _BALLS[np.random.randint(len(_BALLS))])  # noqa: NPY002
    for i in range(size):
        if np.isfinite(a.work[there, s.edge[i]]) and a.need[s.edge[i]] <= a.room[there]:
            move(a, s, s.edge[i], there)
    return s.tally[0] > 0 and _settle(a, s, here, there)


@njit(cache=True)
def move(a: Any, s: Any, g: int, d: int) -> None:
    """Move a group to device d, room or not."""
    s.moved[s.tally[0]], s.came[s.tally[0]] = g, s.where[g]
    s.tally[0] += 1
    _put(a, s, g, d)


@njit(cache=True)
def take_back(a: Any, s: Any) -> None:
    """Take all moves back."""
    while s.tally[0] > 0:
        s.tally[0] -= 1
        _put(a, s, s.moved[s.tally[0]], s.came[s.tally[0]])


@njit(cache=True)
def _put(a: Any, s: Any, g: int, d: int) -> None:
    s.left[s.where[g]] += a.need[g]
    s.left[d] -= a.need[g]
    s.where[g] = d
    for i in range(s.member_first[g], s.member_first[g + 1]):
        s.room.device[s.member[i]] = d


@njit(cache=True)
def _ball(a: Any, s: Any, g: int, size: int) -> int:
    """Write up to `size` groups into `edge`, on the device of g and connected with it, g first; return how many.

    Behind the ball in `edge` is what it may grow by, of which one is drawn each time.
    """
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
        i = inside + np.random.randint(known - inside)  # noqa: NPY002
        last = s.edge[i]
        s.edge[inside], s.edge[i] = last, s.edge[inside]
        inside += 1
    return inside


@njit(cache=True)
def _settle(a: Any, s: Any, here: int, there: int) -> bool:
    """Bring groups back from `there` until it fits; return whether that worked, else take everything back.

    Those with the most neighbours on the other side go first.
    """
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
            if np.random.randint(equal) == 0:  # noqa: NPY002
                best = g
        if best < 0:
            break
        s.pull[best] = -1
        move(a, s, best, here)
    if s.left[there] < 0.0 or s.left[here] < 0.0:
        take_back(a, s)
        return False
    return True


@njit(cache=True)
def _exchange(a: Any, s: Any) -> bool:
    """Let two devices change all they have; return whether that is possible."""
    x, y = np.random.randint(len(a.room)), np.random.randint(len(a.room))  # noqa: NPY002
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
        return False
    return True
