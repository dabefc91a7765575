"""The places that are looked at for one gang: a few nodes of each sort, or what the policies for gangs propose."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.solvers.placement.closest import nearest_by_size
from gangplan.solvers.placement.gang import compact, take
from gangplan.solvers.placement.topology import topology
from gangplan.solvers.placement.wide import one_a_node, one_a_rack

from .board import Board, Gang
from .wires import Members

CHEAPEST, SORTS, RACKS, RESTS = 6, 6, 3, 4
"""Nodes of the least cost; nodes one for each number of GPUs left; racks; nodes for the rest of a gang on several."""
LARGE, KEPT = 512, 32
"""Nodes beyond which not all are sorted; of each number of idle GPUs so many are then."""
Workers = dict[int, int]


@dataclass(frozen=True, slots=True)
class Turn:
    """One gang that is to be placed.

    Attributes:
        board: who is where.
        gang: what decides its cost.
        degree: how many workers.
        room: how many of them each node can take, (m,).
        free: idle GPUs of each node, float64 (m,).
        ahead: what a job to come would pay on each node, or cost those there, float64 (m,): tells nodes apart that
            cost this gang the same.
    """

    board: Board
    gang: Gang
    degree: int
    room: NDArray[np.integer[Any]]
    free: FloatArray
    ahead: FloatArray

    def alone_on(self, nodes: NDArray[np.integer[Any]]) -> FloatArray:
        """Return what it costs to have the whole gang on each of these nodes, those there included, (k,)."""
        board = self.board
        where = nodes.astype(np.int64)
        return np.asarray(board.single(self.gang, where, self.degree) + board.harm[where, self.gang.model])


def candidates(turn: Turn) -> list[Workers]:
    """Return places for a gang, node -> workers, no two alike; `room` in all is enough for it."""
    found, least = _single(turn)
    if least > turn.gang.weight * (1 + 1e-9):  # else there is nothing to gain by more nodes
        found += _several(turn, first=not found)
    seen: set[tuple[tuple[int, int], ...]] = set()
    kept = []
    for workers in found:
        key = tuple(sorted(workers.items()))
        if workers and key not in seen:
            seen.add(key)
            kept.append(workers)
    return kept


def _single(turn: Turn) -> tuple[list[Workers], float]:
    """Return the node of the least cost for each sort of nodes that hold the gang, the cheapest first, and its cost."""
    nodes: Members = np.flatnonzero(turn.room >= turn.degree).astype(np.int64)
    if not len(nodes):
        return [], np.inf
    if len(nodes) > LARGE:
        nodes = _cheap(turn, nodes)
    cost, free, ahead = np.round(turn.alone_on(nodes), 9), turn.free[nodes], np.round(turn.ahead[nodes], 9)
    order = np.lexsort([nodes, ahead, free, cost])
    new = np.ones(len(order), dtype=bool)
    for key in (cost, free, ahead):
        sorted_key = key[order]
        if key is cost:
            new[1:] = sorted_key[1:] != sorted_key[:-1]
        else:
            new[1:] |= sorted_key[1:] != sorted_key[:-1]
    order = order[new]
    chosen = order[:CHEAPEST].tolist()
    _, first = np.unique(free[order], return_index=True)
    others = [i for i in order[np.sort(first)].tolist() if i not in chosen]
    return [{int(nodes[i]): turn.degree} for i in chosen + others[:SORTS]], float(cost[order[0]])


def _cheap(turn: Turn, nodes: Members) -> Members:
    """Return the cheapest nodes of each number of idle GPUs: sorting all of a large fleet takes too long."""
    cost, free = turn.alone_on(nodes), turn.free[nodes]
    kept = []
    for count in np.unique(free):
        here = np.flatnonzero(free == count)
        if len(here) > KEPT:
            here = here[np.argpartition(cost[here], KEPT)[:KEPT]]
        kept.append(here)
    return np.sort(nodes[np.concatenate(kept)])


def _several(turn: Turn, first: bool) -> list[Workers]:
    """Return places on several nodes; `first`: none holds the gang by itself."""
    board, room, degree = turn.board, turn.room, turn.degree
    nodes = np.flatnonzero(room)
    k = turn.gang.model
    compute = board.alone[nodes, k] * (1 + board.suffer[nodes, k])
    dear = board.cost(turn.gang, degree, compute, 0.0) + board.harm[nodes, k]
    order = nodes[np.lexsort([nodes, -room[nodes], np.round(dear, 9)])]
    found = [take(order, room, degree)]
    if turn.gang.collective == "ps" or (not first and len(found[0]) > 1):
        found.append(_thin(turn, 2))
    if not first:
        return found
    view: Any = SimpleNamespace(
        batch=SimpleNamespace(group=board.group, each=[turn.gang.each]), free_gpu=turn.free, taken=board.taken,
        crossing=board.crossing,
    )  # fmt: skip
    whole = room.astype(np.int32)
    found += [topology(view, 0, degree, whole), nearest_by_size(view, 0, degree, whole)]
    for only in (board.taken == 0, board.crossing == 0):
        kept = _kept(turn, only)
        if kept is not None:
            found.append(topology(view, 0, degree, kept))
    found += _racks(turn, order)
    found += _rests(turn, order)
    if turn.gang.collective == "hierarchical":
        found += [one_a_rack(view, 0, degree, whole), one_a_node(view, 0, degree, whole)]
    if turn.gang.collective == "ps":
        found.append(_thin(turn, 4))
    return found


def _racks(turn: Turn, order: NDArray[np.integer[Any]]) -> list[Workers]:
    """Return the places inside the tightest and the roomiest racks that hold the gang: by cost, and on few nodes."""
    rack = turn.board.group[1]
    sums = np.bincount(rack, weights=turn.room)
    able = np.flatnonzero(sums >= turn.degree)
    if not len(able) or len(sums) == 1:
        return []
    by_room = able[np.argsort(sums[able], kind="stable")]
    found = []
    for one in dict.fromkeys([*by_room[:RACKS].tolist(), *by_room[::-1][:RACKS].tolist()]):
        inside = order[rack[order] == one]
        found.append(take(inside, turn.room, turn.degree))
        found.append(compact(np.sort(inside), turn.room, turn.degree))
    return found


def _rests(turn: Turn, order: NDArray[np.integer[Any]]) -> list[Workers]:
    """Return places that fill the roomiest nodes and put the rest on one of the cheapest that hold it."""
    most = int(turn.room.max())
    rest = turn.degree % most
    if not rest:
        return []
    found = []
    for node in order[turn.room[order] >= rest][:RESTS].tolist():
        others = turn.room.copy()
        others[node] = 0
        if int(others.sum(dtype=np.int64)) >= turn.degree - rest:
            found.append({int(node): rest, **compact(np.flatnonzero(others), others, turn.degree - rest)})
    return found


def _thin(turn: Turn, times: int) -> Workers:
    """Return a place on `times` the nodes, the empty ones if they suffice; nothing if that is no other place."""
    fewest = -(-turn.degree // int(turn.room.max()))
    room = np.minimum(turn.room, max(1, -(-turn.degree // (fewest * times))))
    if int(room.sum(dtype=np.int64)) < turn.degree:
        return {}
    empty = np.where(turn.board.taken == 0, room, 0)
    chosen = empty if int(empty.sum(dtype=np.int64)) >= turn.degree else room
    return compact(np.flatnonzero(chosen), chosen, turn.degree)


def _kept(turn: Turn, only: BoolArray) -> NDArray[np.int32] | None:
    kept = np.where(only, turn.room, 0).astype(np.int32)
    return kept if int(kept.sum(dtype=np.int64)) >= turn.degree else None
