"""Places that policies for one gang pass over: more nodes or racks than it needs, nodes of its own, quiet NICs."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import BoolArray, IntArray
from gangplan.instances.placement import GangJob

from .gang import Policy, take
from .state import State
from .topology import topology


def wide(job: GangJob) -> list[Policy]:
    """Return the policies that a job with its collective may gain by.

    The traffic of parameter servers is divided by the nodes that share it. A hierarchical all-reduce has a phase a
    level, and no phase where each group has one member; so one node a rack, or one worker a node, saves one.
    """
    if job.collective == "ps":
        return [alone, quiet, half, quarter]
    return [alone, quiet, one_a_rack, one_a_node] if job.collective == "hierarchical" else [alone, quiet]


def alone(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Use nodes that nobody is on, if they suffice."""
    return topology(state, j, degree, _only(room, state.taken == 0, degree))


def quiet(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
    """Use nodes whose NICs nobody uses, if they suffice."""
    return topology(state, j, degree, _only(room, state.crossing == 0, degree))


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
    order = nodes[np.argsort(-room[nodes], kind="stable")]
    rack = state.batch.group[1][order]
    by_rack = np.argsort(rack, kind="stable")
    first = np.searchsorted(rack[by_rack], rack[by_rack])
    rank = np.empty(len(order), dtype=np.int64)
    rank[by_rack] = np.arange(len(order)) - first
    return take(order[np.argsort(rank, kind="stable")], room, degree)


def _thin(state: State, j: int, degree: int, room: IntArray, times: int) -> dict[int, int]:
    fewest = -(-degree // int(room.max()))
    most = max(1, -(-degree // (fewest * times)))
    thinned = np.minimum(room, most)
    enough = thinned if int(thinned.sum(dtype=np.int64)) >= degree else room
    return topology(state, j, degree, _only(enough, state.taken == 0, degree))


def _only(room: IntArray, nodes: BoolArray, degree: int) -> IntArray:
    """Return the room of these nodes alone if it suffices, and else that of all."""
    kept = np.where(nodes, room, 0)
    return kept if int(kept.sum(dtype=np.int64)) >= degree else room
