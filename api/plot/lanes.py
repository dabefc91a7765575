"""Jobs on nodes over time as boxes: each GPU of a node is a lane, and a job holds lanes while it runs."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray
from gangplan.simulator.trace import Outcome

from .scene import FloatArray, IntArray

GAP = 0.5
"""Between nodes, a GPU's lane being 1."""
TINY = 1e-9
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
    table = _joined(np.array(found, dtype=np.float64).reshape(-1, 6), outcome.row_job)
    row = table[:, 4].astype(np.int64)
    job, ends = outcome.row_job[row].astype(np.int64), (top.astype(np.float64), (top + room).astype(np.float64))
    start, end, low, high = table[:, :4].T
    return Lanes(start, end, low, high, job, row, table[:, 5] == 0, *ends)


def _joined(table: FloatArray, owner: NDArray[np.int32]) -> FloatArray:
    """Make one box of those of a job that lie side by side all the time: start, end, low, high, row, rate of each."""
    start, end, low, high, row, rate = table.T
    job = owner[row.astype(np.int64)]
    order = np.lexsort((low, end, start, job))
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for values in (job, start, end, rate == 0):
        same &= values[order][1:] == values[order][:-1]
    same &= np.abs(low[order][1:] - high[order][:-1]) < TINY
    first = np.flatnonzero(np.append(True, ~same)[: len(order)])
    last = np.append(first[1:], len(order))[: len(first)] - 1
    joint = table[order[first]]
    joint[:, 3] = high[order[last]]
    return joint


def _node(o: Outcome, rows: IntArray, room: int) -> list[list[float]]:
    """Return start, end, low, high, row and rate of each box of a node's rows."""
    boxes: list[list[float]] = []
    busy: list[tuple[float, int]] = []  # end and row
    held: dict[int, Pieces] = {}
    before: dict[tuple[int, int], tuple[float, Pieces, list[int], bool]] = {}
    order = rows[np.lexsort((-o.row_gpus[rows], o.row_start[rows]))].tolist()
    ends_at = {(int(o.row_job[r]), int(o.row_gpu[r]), float(o.row_end[r])) for r in order}
    # who goes on where it is chooses before who comes
    start_of = {r: (int(o.row_job[r]), int(o.row_gpu[r]), float(o.row_start[r])) for r in order}
    order.sort(key=lambda r: (start_of[r][2], start_of[r] not in ends_at))
    for r in order:
        start, end, key = float(o.row_start[r]), float(o.row_end[r]), (int(o.row_job[r]), int(o.row_gpu[r]))
        while busy and busy[0][0] <= start:
            del held[heapq.heappop(busy)[1]]
        amount, running = float(o.row_gpus[r] * o.row_share[r]), bool(o.row_rate[r] > 0)
        last = before.get(key)
        if last and last[0] == start and abs(_size(last[1]) - amount) < TINY:
            pieces, mine, same = last[1], last[2], last[3] == running
        else:
            pieces, mine, same = _take(_gaps(held, *((room, 0) if key[1] < 0 else (1, key[1]))), amount), [], False
        if same:
            for i in mine:
                boxes[i][1] = end
        else:
            mine = list(range(len(boxes), len(boxes) + len(pieces)))
            boxes += [[start, end, low, high, r, o.row_rate[r]] for low, high in pieces]
        held[r] = pieces
        heapq.heappush(busy, (end, r))
        before[key] = (end, pieces, mine, running)
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


def _size(pieces: Pieces) -> float:
    return sum(high - low for low, high in pieces)
