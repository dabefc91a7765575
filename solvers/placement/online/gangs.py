"""Where one gang goes, by rooms that are kept: policies that look into few racks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..gang import compact, take
from .rooms import Room
from .units import Long

GangPolicy = Callable[[Room, int], dict[int, int]]
"""Called with the room for its workers and how many there are, no more than fit; returns node -> workers."""

_PARTS = 4
"""Of the parts that hold the gang, the tightest so many are looked into, as in `..topology`."""


def first_fit(room: Room, degree: int) -> dict[int, int]:
    """Fill the nodes in their order."""
    return take(np.flatnonzero(room.room), room.room, degree)


def best_fit(room: Room, degree: int) -> dict[int, int]:
    """Take the node with the fewest idle GPUs that holds the gang; of a larger gang fill nodes, the rest likewise."""
    able = np.flatnonzero(room.room >= degree)
    if len(able):
        return {int(able[np.argmin(room.nodes.free[0, able])]): degree}
    return compact(np.flatnonzero(room.room), room.room, degree)


def nearest(room: Room, degree: int) -> dict[int, int]:
    """Take the room nearest to the first node that has some: its own, its rack's, and so on."""
    seed = int(np.argmax(room.room > 0))
    return around(room, seed, degree)


def topology(room: Room, degree: int) -> dict[int, int]:
    """Go down the network to the tightest part that holds the gang; where no child does, split it over few children.

    The same as `gangplan.solvers.placement.topology`, with sums that are kept.
    """
    top = len(room.sums)
    parts = np.arange(len(room.sums[-1]), dtype=np.int64)
    return _among(room, top, parts, degree)


def around(room: Room, seed: int, degree: int) -> dict[int, int]:
    """Return node -> workers: the nearest room to a node, ties to the first."""
    group = room.nodes.group
    chosen: dict[int, int] = {}
    if room.room[seed]:
        chosen[seed] = min(degree, int(room.room[seed]))
    left = degree - sum(chosen.values())
    for level in range(1, len(group)):
        if not left:
            return chosen
        here = group[level][seed]
        near = room.nodes.inside[here] if level == 1 else np.flatnonzero(group[level] == here)
        near = near[group[level - 1][near] != group[level - 1][seed]]
        most = min(left, int(room.room[near].sum()))
        if most:
            chosen |= take(near, room.room, most)
            left -= most
    if left:  # beyond the top level there is the rest of the fleet
        rest = np.flatnonzero(group[-1] != group[-1][seed])
        chosen |= take(rest, room.room, left)
    return chosen


def _inside(room: Room, level: int, part: int, degree: int) -> dict[int, int]:
    """Place the gang inside one group of `level`, which has room for it."""
    if level > 1:
        return _among(room, level - 1, room.nodes.children[level - 2][part], degree)
    nodes = room.nodes.inside[part]
    return compact(nodes[room.room[nodes] > 0], room.room, degree)


def _among(room: Room, level: int, parts: Long, degree: int) -> dict[int, int]:
    """Place the gang in groups of `level`, which have room for it together."""
    sums = room.sums[level - 1][parts]
    chosen: dict[int, int] = {}
    while True:
        able = np.flatnonzero(sums >= degree)
        if len(able):
            tightest = able[np.argsort(sums[able], kind="stable")[:_PARTS]]
            options = [_inside(room, level, int(parts[i]), degree) for i in tightest]
            return chosen | min(options, key=len)
        roomiest = int(np.argmax(sums))
        chosen |= _inside(room, level, int(parts[roomiest]), int(sums[roomiest]))
        degree -= int(sums[roomiest])
        sums[roomiest] = 0


GANG_POLICIES: Mapping[str, GangPolicy] = {
    "first_fit": first_fit,
    "best_fit": best_fit,
    "topology": topology,
    "nearest": nearest,
}
"""Policies of `Placer` by name."""
