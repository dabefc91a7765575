"""Who is stopped for whom: the jobs with the least work left run, and a stop must be worth its price.

The running jobs that may be stopped and the waiting ones are put into one order, GPU seconds left (Smith, Naval
Research Logistics 1956, for jobs that may be interrupted; SRSF with Gu et al., NSDI 2019), what a stop costs counted
against it. As many of the first as have room together are to run. Who of them waits is given room: what is free, else
what running jobs hold that are not among them, else a node that is cleared of jobs that go on elsewhere, so that no
gang waits for room that is there but scattered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.instances.verify.stop import Exchange, verify_stop

from .book import Stint
from .decision import Candidate, Stop
from .job import Request
from .settings import DEAR

if TYPE_CHECKING:
    from .desk import Desk
    from .fill import Fill

TIER = "stops"
MOST = 512
"""Waiting jobs for which others may be stopped, the first in order."""
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


class Stopping:
    """One round of stops.

    Args:
        desk: the state; it is changed.
        fill: the round of starts that it is part of.
    """

    def __init__(self, desk: Desk, fill: Fill) -> None:
        self._desk, self._fill = desk, fill
        self.stops: list[Stop] = []
        self._refused: list[Candidate] = []

    def run(self) -> None:
        """Stop jobs, and start those for whom they are stopped."""
        desk, book, line = self._desk, self._desk.book, self._desk.line
        first = [book.waiting[name] for name in line.first(MOST)]
        self._price()
        if not first or not self._movable.any():
            return
        if not book.idle and min(line.key(request.name) for request in first) >= self._key.max():
            return
        chosen = self._chosen(first)
        moved: list[str] = []
        for request in sorted(chosen, key=lambda r: -desk.holds(r, desk.degrees(r)[0])):
            if self._fill.over():
                return
            if not self._fill.one(request.name, self._desk.degrees(request), TIER, hold=False):
                moved += self._make_room(request, moves=True)
        for name in moved:
            if name in book.waiting and not self._fill.one(name, (self._was[name].degree,), TIER, hold=False):
                self._make_room(book.waiting[name], moves=False)

    @property
    def told(self) -> tuple[Candidate, ...]:
        """The stops in words, with the seconds that each had left, and those that were refused."""
        return tuple(Candidate(f"{stop.job} gives way to {stop.other}", stop.left) for stop in self.stops) + tuple(
            self._refused
        )

    def _price(self) -> None:
        """Find what the running jobs have left, and which may be stopped."""
        desk = self._desk
        (end, since, price), (node, gpus, wide, head) = desk.parts.table()
        now, self._names = desk.book.now, [name for name, _ in desk.parts.names]
        left = np.where(end > now, end - now, now - since)
        self._movable = np.isfinite(price) & (left > price)
        self._weight = wide.astype(float) ** desk.line.order
        self._key = np.where(self._movable, np.maximum(left - DEAR * price, 0.0) * self._weight, -1.0)
        self._node, self._gpus, self._wide, self._head = node.copy(), gpus.copy(), wide.copy(), head.astype(bool)
        self._alive = np.ones(len(node), dtype=bool)
        self._was: dict[str, Stint] = {}

    def _chosen(self, first: Sequence[Request]) -> list[Request]:
        """Return the waiting jobs that are to run, and mark the running ones that are to go on."""
        desk, n = self._desk, len(self._key)
        heads = np.flatnonzero(self._head & self._movable)
        room = desk.book.gpus - int(self._wide[self._head & ~self._movable].sum())
        need = np.array([desk.holds(r, desk.degrees(r)[0]) for r in first])
        keys = np.concatenate([self._key[heads], [desk.line.key(r.name) for r in first]])
        wide = np.concatenate([self._wide[heads], need])
        order = np.argsort(keys, kind="stable")
        together = int(np.searchsorted(np.cumsum(wide[order]), room, "right"))  # so many of the first fit together
        taken = [*order[:together].tolist()]
        room -= int(wide[taken].sum())
        for i in order[together:].tolist():
            if not room:
                break
            if wide[i] <= room:
                taken.append(i)
                room -= int(wide[i])
        chosen = [first[i - len(heads)] for i in taken if i >= len(heads)]
        on = {self._names[heads[i]] for i in taken if i < len(heads)}
        on |= {self._names[i] for i in np.flatnonzero(self._head & ~self._movable).tolist()}
        self._on = np.array([name in on for name in self._names], dtype=bool) if n else np.zeros(0, dtype=bool)
        return chosen

    def _make_room(self, request: Request, moves: bool) -> list[str]:
        """Start a job where others are stopped for it; return those that are to go on elsewhere."""
        desk, degree = self._desk, self._desk.degrees(request)[0]
        job = desk.placed(request, degree)
        room = self._find(job, desk.line.key(request.name), moves)
        if room is None:
            return []
        stints = [desk.book.running[name] for name in (*room.stopped, *room.moved)]
        exchanges = [self._exchange(stint, request, degree, stint.request.name in room.moved) for stint in stints]
        wrong = [words for exchange in exchanges for words in verify_stop(exchange, desk.book.running, desk.line.order)]
        if wrong:
            words = f"{room.stopped + room.moved} give way to {request.name}"
            self._refused.append(Candidate(words, request.lasts(degree), wrong[0]))
            return []
        for stint in stints:
            desk.stop(stint.request.name)
        where = {node: tuple(desk.seats.idle(node)[:count]) for node, count in room.nodes.items()}
        if not self._fill.one(request.name, (degree,), TIER, where, hold=False):
            for stint in stints:
                desk.resume(stint)
            return []
        names = {stint.request.name: stint for stint in stints}
        self._was.update(names)
        self._alive &= np.array([name not in names for name in self._names], dtype=bool)
        for stint, exchange in zip(stints, exchanges, strict=True):
            self.stops.append(
                Stop(
                    stint.request.name,
                    self._fill.named(stint.nodes),
                    request.name,
                    exchange.left,
                    exchange.price or 0.0,
                )
            )
        return room.moved

    def _exchange(self, stint: Stint, request: Request, degree: int, moved: bool) -> Exchange:
        left = stint.left(self._desk.book.now)
        return Exchange(
            stint.request.name, stint.request.price, left, stint.gpus,
            request.name, request.lasts(degree), request.gpus(degree), moved,
        )  # fmt: skip

    def _find(self, job: GangJob, key: float, moves: bool) -> Room | None:
        """Return the cheapest room for a gang: for each worker a node, and who leaves it."""
        desk, need, workers = self._desk, job.worker.grants, job.workers[0]
        free = desk.seats.free.astype(np.int64)
        most = desk.seats.most_on(job) * need  # GPUs that may be its own of each node
        alone = self._gpus == self._wide  # all of the job is on this node
        gives = self._alive & self._movable & ~self._on & (self._key > key)
        goes = self._alive & self._movable & alone & ~gives & moves
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
            found = self._leave(node, count * need - int(free[node]), gives, goes)
            room.nodes[node] = count * need
            room.stopped += [name for name in found[0] if name not in room.stopped]
            room.moved += found[1]
            left -= count
        if left or not self._elsewhere(room, free, gives):
            return None
        return room

    def _leave(self, node: int, lack: int, gives: np.ndarray, goes: np.ndarray) -> tuple[list[str], list[str]]:
        """Return who leaves a node so that `lack` more GPUs are free: those stopped and those moved."""
        here = np.flatnonzero(self._node == node)
        stopped: list[int] = []
        for i in sorted(here[gives[here]].tolist(), key=lambda i: -self._key[i]):
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
        return [self._names[i] for i in stopped], [self._names[i] for i in moved]

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
