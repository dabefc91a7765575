"""Groups that change devices: where one may go, what that leaves, and some that go anywhere; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....compiled.kernel import Bools2, Floats, Ints, lean
from .arrays import Arrays

KICKED = 4
"""Groups that are moved at random, at most."""
_TRIES, _SWAPPED = 50, 1 / 3


class Descent(NamedTuple):
    """Where a descent is; n ops, G groups, k devices.

    Attributes:
        where: device of each group, int64 (G,).
        start, finish: of each op, float64 (n,).
        left, used: bytes that are left on each device, float64 (k,), and how many groups it has, int64 (k,).
        tried: whether a group has been tried on a device, bool (G, k).
        draws: what is moved at random: from 0 to 1, float64 (many,); behind the last one comes the first.
    """

    where: Ints
    start: Floats
    finish: Floats
    left: Floats
    used: Ints
    tried: Bools2
    draws: Floats


@lean
def hold(a: Arrays, s: Descent, g: int, d: int, sign: int) -> None:
    """Enter group g on device d with sign 1, and with -1 take it off."""
    s.left[d] -= sign * a.need[g]
    s.used[d] += sign


@lean
def twin(a: Arrays, s: Descent, d: int) -> bool:
    """Return whether an earlier device is just as empty and as good."""
    found = False
    for x in range(d):
        found = found or (not s.used[d] and not s.used[x] and a.twin[x] == a.twin[d])
    return found


@lean
def fits(a: Arrays, s: Descent, g: int, d: int, x: int) -> bool:
    """Return whether group g may go to device d, and x, if it is not -1, from there to where g was."""
    if x < 0:
        return bool(a.need[g] <= s.left[d])
    here = s.where[g]
    if s.where[x] != d or not np.isfinite(a.work[here, x]):
        return False
    return bool(a.need[g] <= s.left[d] + a.need[x] and a.need[x] <= s.left[here] + a.need[g])


@lean
def enter(a: Arrays, s: Descent, g: int, d: int, x: int) -> None:
    """Move group g to device d, and group x, if it is not -1, to where g was."""
    here = s.where[g]
    s.where[g] = d
    hold(a, s, g, here, -1)
    hold(a, s, g, d, 1)
    if x >= 0:
        s.where[x] = here
        hold(a, s, x, d, -1)
        hold(a, s, x, here, 1)


@lean
def kick(a: Arrays, s: Descent, drawn: int) -> tuple[bool, int]:
    """Move up to `KICKED` groups at random; return whether one moved, and how many draws are used up."""
    groups, devices, size, draws = len(s.where), len(s.left), len(s.draws), s.draws
    wanted, moved = 1 + int(KICKED * draws[drawn % size]), 0
    drawn += 1
    for _ in range(_TRIES):
        g, d = int(groups * draws[drawn % size]), int(devices * draws[(drawn + 1) % size])
        swap, x = draws[(drawn + 2) % size] < _SWAPPED, int(groups * draws[(drawn + 3) % size])
        drawn += 4
        if d == s.where[g] or not np.isfinite(a.work[d, g]) or twin(a, s, d):
            continue
        if not swap and fits(a, s, g, d, -1):
            x = -1
        elif not fits(a, s, g, d, x):
            continue
        enter(a, s, g, d, x)
        moved += 1
        if moved == wanted:
            break
    return moved > 0, drawn
