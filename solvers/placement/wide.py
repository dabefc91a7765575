"""Wide placements, on more nodes or racks than a gang needs: what some collectives gain by."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray
from gangplan.instances.placement import GangJob

from .gang import Policy, take
from .state import State
from .topology import topology


def wide(job: GangJob) -> list[Policy]:
    """Return the wide policies that the job's collective may gain by.

    The traffic of parameter servers is divided by the nodes that share it. A hierarchical all-reduce has a phase a
    level, and no phase where each group has one member; so one node a rack, or one worker a node, saves one.
    """
    if job.collective == "ps":
        return [half, quarter]
    return [one_a_rack, one_a_node] if job.collective == "hierarchical" else []


def half(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Use twice the nodes, if there are so many with room."""
    return _thin(state, j, degree, room, 2)


def quarter(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Use four times the nodes, if there are so many with room."""
    return _thin(state, j, degree, room, 4)


def one_a_node(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Put one worker on a node, if there are so many with room."""
    return _thin(state, j, degree, room, degree)


def one_a_rack(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Use the roomiest node of every rack, then the second of every rack, and so on."""
    nodes = np.flatnonzero(room)
    order = nodes[np.lexsort([nodes, -room[nodes]])]
    rack = state.batch.group[1][order]
    by_rack = np.argsort(rack, kind="stable")
    first = np.searchsorted(rack[by_rack], rack[by_rack])
    rank = np.empty(len(order), dtype=np.int64)
    rank[by_rack] = np.arange(len(order)) - first
    return take(order[np.argsort(rank, kind="stable")].astype(np.int32), room, degree)


def _thin(state: State, j: int, degree: int, room: IntArray, times: int) -> dict[int, int]:
    fewest = -(-degree // int(room.max()))
    most = max(1, -(-degree // (fewest * times)))
    thinned = np.minimum(room, most)
    return topology(state, j, degree, thinned if int(thinned.sum(dtype=np.int64)) >= degree else room)
