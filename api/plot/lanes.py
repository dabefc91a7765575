"""Jobs on nodes over time as boxes: each GPU of a node is a lane, and a job holds lanes while it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray
from gangplan.simulator.trace import Outcome

from .scene import FloatArray, IntArray

GAP = 0.5
"""Between nodes, a GPU's lane being 1."""
TINY = 1e-9
TIME, ROOM = (0, 1), (2, 3)
"""Columns of a table of boxes: start and end, lower and upper lane; then come row and rate."""
Pieces = tuple[tuple[float, float], ...]
"""From where to where in the lanes of a node."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Boxes, b of them, on m nodes; times in seconds, lanes from the top down.

    Attributes:
        start, end: float (b,).
        low, high: in lanes, float (b,).
        job: int (b,).
        row: of the outcome, the first of those the box is of, int (b,).
        restoring: whether the job does not get on, bool (b,).
        node_low, node_high: of each node, float (m,).
    """

    start: FloatArray
    end: FloatArray
    low: FloatArray
    high: FloatArray
    job: IntArray
    row: IntArray
    restoring: BoolArray
    node_low: FloatArray
    node_high: FloatArray


def lanes(outcome: Outcome) -> Lanes:
    """Give each row of `outcome` its lanes, lowest first and side by side where that is possible.

    Where GPUs are told apart, a row is on its GPU; a share of it is as much of a lane. If GPUs were only counted, the
    cluster is one node.
    """
    counted = bool((outcome.row_node < 0).any())
    room = np.array([outcome.n_gpus]) if counted else outcome.room.astype(np.int64)
    top = np.cumsum(room + GAP) - room - GAP
    node = np.zeros(len(outcome.row_job), dtype=np.int64) if counted else outcome.row_node.astype(np.int64)
    found: list[list[float]] = []
    for n in range(len(room)):
        rows = np.flatnonzero((node == n) & (outcome.row_end > outcome.row_start))
        found += [[*box[:2], top[n] + box[2], top[n] + box[3], *box[4:]] for box in _node(outcome, rows, int(room[n]))]
    table = np.array(found, dtype=np.float64).reshape(-1, 6)
    for columns in (TIME, ROOM):
        table = _joined(table, outcome.row_job, columns)
    row, (start, end, low, high) = table[:, 4].astype(np.int64), table[:, :4].T
    job, restoring = outcome.row_job[row].astype(np.int64), table[:, 5] == 0
    return Lanes(start, end, low, high, job, row, restoring, top.astype(np.float64), (top + room).astype(np.float64))


def _joined(table: FloatArray, owner: NDArray[np.int32], ends: tuple[int, int]) -> FloatArray:
    """Make one box of those of a job that follow each other, from one of two columns to the other, else alike."""
    low, high = (table[:, k] for k in ends)
    others = table[:, [k for k in (*TIME, *ROOM) if k not in ends]]
    same = np.column_stack([owner[table[:, 4].astype(np.int64)], others, table[:, 5] == 0])
    order = np.lexsort((low, *same.T))
    joint = np.abs(low[order][1:] - high[order][:-1]) < TINY
    joint &= (same[order][1:] == same[order][:-1]).all(axis=1)
    first = np.flatnonzero(np.append(True, ~joint)[: len(order)])
    found = table[order[first]]
    found[:, ends[1]] = high[order[np.append(first[1:], len(order))[: len(first)] - 1]]
    return found


def _node(o: Outcome, rows: IntArray, room: int) -> list[list[float]]:
    """Return start, end, low, high, row and rate of each box of a node's rows."""
    boxes: list[list[float]] = []
    held: dict[int, Pieces] = {}
    before: dict[tuple[int, int], tuple[float, Pieces]] = {}
    whose = {r: (int(o.row_job[r]), int(o.row_gpu[r])) for r in rows.tolist()}
    ends = {(*whose[r], o.row_end[r]) for r in whose}
    # who goes on where it is chooses before who comes, and the large before the small
    for r in sorted(whose, key=lambda r: (o.row_start[r], (*whose[r], o.row_start[r]) not in ends, -o.row_gpus[r])):
        start, end, gpu = float(o.row_start[r]), float(o.row_end[r]), whose[r][1]
        held = {other: pieces for other, pieces in held.items() if o.row_end[other] > start}
        amount = float(o.row_gpus[r] * o.row_share[r])
        last, pieces = before.get(whose[r], (-np.inf, ()))
        if last != start or abs(sum(high - low for low, high in pieces) - amount) > TINY:
            pieces = _take(_gaps(held, *((room, 0) if gpu < 0 else (1, gpu))), amount)
        boxes += [[start, end, low, high, r, o.row_rate[r]] for low, high in pieces]
        held[r], before[whose[r]] = pieces, (end, pieces)
    return boxes


def _gaps(held: dict[int, Pieces], room: float, base: float) -> list[tuple[float, float]]:
    """Return what is free from `base` to `base` + `room`, ascending."""
    at, found = base, []
    for low, high in sorted(piece for pieces in held.values() for piece in pieces):
        if high <= base or low >= base + room:
            continue
        if low > at + TINY:
            found.append((at, low))
        at = max(at, high)
    return [*found, (at, base + room)] if base + room > at + TINY else found


def _take(gaps: list[tuple[float, float]], amount: float) -> Pieces:
    """Return the first gap that holds all, or else the first ones until it is all there."""
    for low, high in gaps:
        if high - low >= amount - TINY:
            return ((low, low + amount),)
    taken = []
    for low, high in gaps:
        part = min(amount, high - low)
        taken.append((low, low + part))
        amount -= part
        if amount <= TINY:
            break
    return tuple(taken)
