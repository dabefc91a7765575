"""What a list scheduler has placed and scheduled so far, and which devices the next group may go to; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compiled.kernel import Bools, Floats, Ints, lean
from .arrays import Arrays, Workroom

HEAVIEST = 48
"""Groups that are looked at when packing."""


class ListState(NamedTuple):
    """The state of a list schedule; n ops, k devices, G groups.

    Attributes:
        where: device of each group, -1 without one, int64 (G,).
        load: seconds of the groups on each device, float64 (k,).
        done: seconds of the ops that are in on each device, float64 (k,).
        left: bytes left on each device, float64 (k,).
        used: whether something is on the device, bool (k,).
        home: zone of each bond, -1 without one, int64 (G,).
        next: groups by falling bytes as a chain, int64 (G + 1,): behind place i of `Arrays.heavy` comes place
            next[i + 1], first of all next[0]; those with a device leave it as `pack` passes.
        spare, tried: bytes that `pack` leaves, float64 (k,): without the group that is to be placed, and with it.
        seen: group for which a class of equal devices was last seen unused, int64 (k,).
        choice: devices that a group may go to, int64 (k,).
        pull: what edges of a group are worth on each device, float64 (k,).
        waiting: how much of what each op reads is not in yet, int64 (n,).
        room: the schedule.
    """

    where: Ints
    load: Floats
    done: Floats
    left: Floats
    used: Bools
    home: Ints
    next: Ints
    spare: Floats
    tried: Floats
    seen: Ints
    choice: Ints
    pull: Floats
    waiting: Ints
    room: Workroom


def empty_state(a: Arrays, room: Workroom) -> ListState:
    """Return the state in which nothing is placed, with a room to schedule in."""
    groups, k = len(a.need), len(a.room)
    return ListState(
        np.full(groups, -1), np.zeros(k), np.zeros(k), a.room.copy(), np.zeros(k, np.bool_), np.full(groups, -1),
        np.arange(groups + 1), np.zeros(k), np.zeros(k), np.full(k, -1), np.zeros(k, np.int64), np.zeros(k),
        np.zeros(len(a.group), np.int64), room,
    )  # fmt: skip


@lean
def settle(a: Arrays, s: ListState, g: int, d: int) -> None:
    """Put group g, which has no device, on device d."""
    s.where[g] = d
    s.left[d] -= a.need[g]
    s.load[d] += a.work[d, g]
    s.used[d] = True
    if a.bond[g] >= 0:
        s.home[a.bond[g]] = a.zone[d]


@lean
def open_devices(a: Arrays, s: ListState, g: int, careful: bool) -> int:
    """Write into `choice` the devices that group g may go to, of equal unused ones the first; return how many.

    Args:
        a, s: problem and state.
        g: the group.
        careful: whether only devices count after which best fit still packs the heaviest of the other groups, if there
            is such a device, and if it packs them with g left out.
    """
    choice, count = s.choice, 0
    for d in range(len(a.room)):
        if not np.isfinite(a.work[d, g]) or a.need[g] > s.left[d]:
            continue
        if not s.used[d]:
            if s.seen[a.twin[d]] == g:
                continue
            s.seen[a.twin[d]] = g
        choice[count] = d
        count += 1
    if a.bond[g] >= 0 and s.home[a.bond[g]] >= 0:
        kept = 0
        for i in range(count):
            d = choice[i]
            if a.zone[d] == s.home[a.bond[g]]:
                choice[i], choice[kept] = choice[kept], d
                kept += 1
        count = kept if kept else count
    if not careful or count < 2 or not pack(a, s, g, -1, s.spare):
        return count
    kept = 0
    for i in range(count):
        d = choice[i]
        if s.spare[d] >= a.need[g] or pack(a, s, g, d, s.tried):
            choice[i], choice[kept] = choice[kept], d
            kept += 1
    return kept if kept else count


@lean
def pack(a: Arrays, s: ListState, g: int, d: int, left: Floats) -> bool:
    """Return whether best fit finds room for the heaviest groups without a device but g.

    Args:
        a, s: problem and state.
        g: a group without a device.
        d: where it goes, -1 for nowhere.
        left: gets the bytes that are left then.
    """
    for x in range(len(left)):
        left[x] = s.left[x]
    if d >= 0:
        left[d] -= a.need[g]
    chain, before, seen = s.next, 0, 0
    while chain[before] < len(a.heavy) and seen < HEAVIEST:
        i = chain[before]
        h = a.heavy[i]
        if s.where[h] >= 0:
            chain[before] = chain[i + 1]
            continue
        before = i + 1
        if h == g:
            continue
        best = -1
        for x in range(len(left)):
            if left[x] >= a.need[h] and np.isfinite(a.work[x, h]) and (best < 0 or left[x] < left[best]):
                best = x
        if best < 0:
            return False
        left[best] -= a.need[h]
        seen += 1
    return True
