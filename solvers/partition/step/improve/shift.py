"""Groups that change devices: where one may go, what that leaves, and some that go anywhere; compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

KICKED = 4
"""Groups that are moved at random, at most."""
_TRIES, _SWAPPED = 50, 1 / 3


@njit(cache=True)
def hold(a: Any, left: Any, used: Any, g: int, d: int, sign: int) -> None:
    """Enter group g on device d with sign 1, and with -1 take it off."""
    left[d] -= sign * a.need[g]
    used[d] += sign


@njit(cache=True)
def twin(a: Any, used: Any, d: int) -> bool:
    """Return whether an earlier device is just as empty and as good."""
    found = False
    for x in range(d):
        found = found or (not used[d] and not used[x] and a.twin[x] == a.twin[d])
    return found


@njit(cache=True)
def fits(a: Any, where: Any, left: Any, g: int, d: int, x: int) -> bool:
    """Return whether group g may go to device d, and x, if it is not -1, from there to where g was."""
    if x < 0:
        return bool(a.need[g] <= left[d])
    here = where[g]
    if where[x] != d or not np.isfinite(a.work[here, x]):
        return False
    return bool(a.need[g] <= left[d] + a.need[x] and a.need[x] <= left[here] + a.need[g])


@njit(cache=True)
def enter(a: Any, where: Any, left: Any, used: Any, g: int, d: int, x: int) -> None:
    """Move group g to device d, and group x, if it is not -1, to where g was."""
    here = where[g]
    where[g] = d
    hold(a, left, used, g, here, -1)
    hold(a, left, used, g, d, 1)
    if x >= 0:
        where[x] = here
        hold(a, left, used, x, d, -1)
        hold(a, left, used, x, here, 1)


@njit(cache=True)
def kick(a: Any, where: Any, left: Any, used: Any, draws: Any, drawn: int) -> Any:
    """Move up to `KICKED` groups at random; return whether one moved, and how many numbers are used up.

    Args:
        a, where, left, used: problem and placement.
        draws: from 0 to 1, float64 (many,); behind the last one comes the first.
        drawn: how many are used up.
    """
    groups, devices, size = len(where), len(left), len(draws)
    wanted, moved = 1 + int(KICKED * draws[drawn % size]), 0
    drawn += 1
    for _ in range(_TRIES):
        g, d = int(groups * draws[drawn % size]), int(devices * draws[(drawn + 1) % size])
        swap, x = draws[(drawn + 2) % size] < _SWAPPED, int(groups * draws[(drawn + 3) % size])
        drawn += 4
        if d == where[g] or not np.isfinite(a.work[d, g]) or twin(a, used, d):
            continue
        if not swap and fits(a, where, left, g, d, -1):
            x = -1
        elif not fits(a, where, left, g, d, x):
            continue
        enter(a, where, left, used, g, d, x)
        moved += 1
        if moved == wanted:
            break
    return moved > 0, drawn
