"""Room that could be made for a gang: who would leave which node for it, stopped or moved elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.placement import GangJob

from .book import Stint
from .settings import DEAR

if TYPE_CHECKING:
    from .desk import Desk

_LOOKS = 8
"""Nodes that are looked at for a worker, the cheapest by a first estimate."""


@dataclass(slots=True)
class Room:
    """What it takes to make room.

    Attributes:
        nodes: the GPUs to use of each node.
        stopped: running jobs that give way.
        moved: running jobs that are to go on elsewhere.
    """

    nodes: dict[int, int]
    stopped: list[str]
    moved: list[str]


class Clearing:
    """The parts of running jobs on nodes as a round of stops sees them, and the room that they could leave.

    Args:
        desk: the state.

    Attributes:
        movable: which parts are of jobs that may be stopped, and have more left than that costs, bool (parts,).
        key: their place in the order, what a stop must be worth taken off, -1 if they may not be stopped, float64.
        wide: GPUs of the whole job, int64 (parts,).
        head: which are the first of their job, bool (parts,).
    """

    def __init__(self, desk: Desk) -> None:
        (end, since, price), (node, gpus, wide, head) = desk.parts.table()
        now = desk.book.now
        left = np.where(end > now, end - now, now - since)
        weight = wide.astype(float) ** desk.line.order
        self._desk, self._parts = desk, desk.parts.names.copy()
        self.movable = np.isfinite(price) & (left > price)
        self.key = np.where(self.movable, np.maximum(left - DEAR * price, 0.0) * weight, -1.0)
        self.wide, self.head = wide.copy(), head.astype(bool)
        self._node, self._gpus = node.copy(), gpus.copy()
        self._stays, self._on = np.ones((2, len(node)), dtype=bool)

    def name(self, part: int) -> str:
        """Return the job of a part."""
        return self._parts[part][0]

    def off(self, stint: Stint) -> None:
        """Have a job be none of those that go on."""
        self._on[self._of(stint)] = False

    def leave(self, stint: Stint) -> None:
        """Forget a job that left its nodes."""
        self._stays[self._of(stint)] = False

    def _of(self, stint: Stint) -> list[int]:
        """Return the parts of a job, looked for where it was: there are many parts, and few on a node."""
        here = [i for node in stint.nodes for i in np.flatnonzero(self._node == node).tolist()]
        return [i for i in here if self.name(i) == stint.request.name]

    def find(self, job: GangJob, key: float, moves: bool) -> Room | None:
        """Return the cheapest room for a gang: for each worker a node, and who leaves it."""
        desk, need, workers = self._desk, job.worker.grants, job.workers[0]
        free = desk.seats.free.astype(np.int64)
        most = desk.seats.most_on(job) * need  # GPUs that may be its own of each node
        alone = self._gpus == self.wide  # all of the job is on this node
        gives = self._stays & self.movable & ~self._on & (self.key > key)
        goes = self._stays & self.movable & alone & ~gives & moves
        given = np.bincount(self._node[gives], self._gpus[gives], minlength=len(free)).astype(np.int64)
        gone = np.bincount(self._node[goes], self._gpus[goes], minlength=len(free)).astype(np.int64)
        takes = np.minimum(np.minimum(free + given + gone, most) // need, workers)
        want = takes * need
        cost = np.where(takes > 0, np.maximum(want - free, 0) + 1e3 * np.maximum(want - free - given, 0), np.inf)
        cost = cost / np.maximum(takes, 1)
        order = np.argsort(cost, kind="stable")
        if workers == 1:
            order = order[:_LOOKS]
        room, left = Room({}, [], []), workers
        for node in order.tolist():
            if not takes[node] or not left:
                break
            count = min(left, int(takes[node]))
            found = self._out(node, count * need - int(free[node]), gives, goes)
            room.nodes[node] = count * need
            room.stopped += [name for name in found[0] if name not in room.stopped]
            room.moved += found[1]
            left -= count
        if left or not self._elsewhere(room, free, gives):
            return None
        return room

    def _out(self, node: int, lack: int, gives: np.ndarray, goes: np.ndarray) -> tuple[list[str], list[str]]:
        """Return who leaves a node so that `lack` more GPUs are free: those stopped and those moved."""
        here = np.flatnonzero(self._node == node)
        stopped: list[int] = []
        for i in sorted(here[gives[here]].tolist(), key=lambda i: -self.key[i]):
            if lack <= 0:
                break
            stopped.append(i)
            lack -= int(self._gpus[i])
        for i in list(stopped):  # who is in nobody's way is spared
            if lack + int(self._gpus[i]) <= 0:
                stopped.remove(i)
                lack += int(self._gpus[i])
        moved: list[int] = []
        rest = here[goes[here]].tolist()
        while lack > 0:
            enough = [i for i in rest if self._gpus[i] >= lack]
            pick = min(enough, key=lambda i: self._gpus[i]) if enough else max(rest, key=lambda i: self._gpus[i])
            rest.remove(pick)
            moved.append(pick)
            lack -= int(self._gpus[pick])
        return [self.name(i) for i in stopped], [self.name(i) for i in moved]

    def _elsewhere(self, room: Room, free: np.ndarray, gives: np.ndarray) -> bool:
        """Return whether each of the jobs that are to be moved has room on another node."""
        if not room.moved:
            return True
        later = free + np.bincount(self._node[gives], self._gpus[gives], minlength=len(free)).astype(np.int64)
        later[list(room.nodes)] = 0
        wide = sorted((self._desk.book.running[name].gpus for name in room.moved), reverse=True)
        for gpus in wide:
            fits = np.flatnonzero(later >= gpus)
            if not len(fits):
                return False
            later[fits[np.argmin(later[fits])]] -= gpus
        return True
