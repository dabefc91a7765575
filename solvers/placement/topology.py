"""Topology-aware recursive partitioning: the smallest part of the network that holds the gang, split but little."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray

from .gang import compact
from .prepare import Indices
from .state import State

_PARTS = 4
"""Of the parts that hold the gang, the tightest so many are looked into."""


def topology(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Go down the network to the tightest part that holds the gang; where no child does, split it over few children.

    In the manner of the dual recursive bipartitioning of Amaral et al. ("Topology-aware GPU scheduling for learning
    workloads in cloud environments", SC 2017), with the tree's own parts instead of halves: all workers of a gang
    talk alike, so how many go to a part is all there is to choose. Of several parts that hold it, that where it takes
    the fewest nodes, then the fullest.
    """
    group = state.batch.group
    nodes = np.flatnonzero(room)
    return _split(group, len(group) - 1, nodes, room, degree)


def _split(group: IntArray, level: int, nodes: Indices, room: IntArray, degree: int) -> dict[int, int]:
    """Place `degree` workers on `nodes`, which form one group of `level` and have room for them."""
    if level <= 1:
        return compact(nodes, room, degree)
    part = np.unique(group[level - 1][nodes], return_inverse=True)[1]
    sums = np.bincount(part, weights=room[nodes])
    chosen: dict[int, int] = {}
    while True:
        able = np.flatnonzero(sums >= degree)
        if len(able):
            tightest = able[np.argsort(sums[able], kind="stable")[:_PARTS]]
            options = [_split(group, level - 1, nodes[part == i], room, degree) for i in tightest]
            return chosen | min(options, key=len)
        roomiest = int(np.argmax(sums))
        inside = nodes[part == roomiest]
        chosen |= {int(node): int(room[node]) for node in inside}
        degree -= int(sums[roomiest])
        sums[roomiest] = 0
