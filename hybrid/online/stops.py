"""Who is stopped for whom: the jobs with the least work left run, and a stop must be worth its price.

The running jobs that may be stopped and the waiting ones are put into one order, GPU seconds left (Smith, Naval
Research Logistics 1956, for jobs that may be interrupted; SRSF with Gu et al., NSDI 2019), what a stop costs counted
against it. As many of the first as have room together are to run. Who of them waits is given room: what is free, else
what running jobs hold that are not among them, else a node that is cleared of jobs that go on elsewhere, so that no
gang waits for room that is there but scattered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.instances.verify.actions import Exchange, verify_stop

from .explain import Candidate
from .queue import Request
from .starts import Starts
from .state import EXPENSIVE, ClusterState, RunningJob

TIER = "stops"
MOST = 512
"""Waiting jobs for which others may be stopped, the first in order."""
_LOOKS = 8
"""Nodes that are looked at for a worker, the cheapest by a first estimate."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A job that stops now, before anyone starts, and waits again; if it is among the starts too, it goes on elsewhere.

    Attributes:
        job: its name.
        nodes: the GPUs it held by name of the node.
        other: the job that starts there.
        left: seconds that it was expected to run still.
        price: seconds that its GPUs will be held without getting on when it runs again.
    """

    job: str
    nodes: Mapping[str, tuple[int, ...]]
    other: str
    left: float
    price: float


@dataclass(slots=True)
class Clearance:
    """What it takes to make room: the GPUs to use of each node; who gives way; who is to go on elsewhere."""

    nodes: dict[int, int] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)


class Parts:
    """The parts of running jobs on nodes as a round of stops sees them, and the room that they could leave.

    Attributes:
        movable: which parts are of jobs that may be stopped, and have more left than that costs, bool (parts,).
        key: their place in the order, what a stop must be worth taken off, -1 if they may not be stopped, float64.
        wide: GPUs of the whole job, int64 (parts,).
        head: which are the first of their job, bool (parts,).
        names: the job of each.
    """

    def __init__(self, state: ClusterState) -> None:
        (end, since, price), (node, gpus, wide, head) = state.running.table()
        now = state.now
        left = np.where(end > now, end - now, now - since)
        weight = wide.astype(float) ** state.queue.order
        self._state, self.names = state, [name for name, _ in state.running.parts]
        self.movable = np.isfinite(price) & (left > price)
        self.key = np.where(self.movable, np.maximum(left - EXPENSIVE * price, 0.0) * weight, -1.0)
        self.wide, self.head = wide.copy(), head.astype(bool)
        self._node, self._gpus = node.copy(), gpus.copy()
        self._stays, self._on = np.ones((2, len(node)), dtype=bool)

    def give(self, job: RunningJob) -> None:
        """Have a job be none of those that go on."""
        self._on[self._of(job)] = False

    def leave(self, job: RunningJob) -> None:
        """Forget a job that left its nodes."""
        self._stays[self._of(job)] = False

    def _of(self, job: RunningJob) -> list[int]:
        """Return the parts of a job, looked for where it was: there are many parts, and few on a node."""
        here = [i for node in job.nodes for i in np.flatnonzero(self._node == node).tolist()]
        return [i for i in here if self.names[i] == job.name]

    def find(self, job: GangJob, key: float, moves: bool) -> Clearance | None:
        """Return the cheapest room for a gang: for each worker a node, and who leaves it."""
        placer, need, workers = self._state.placer, job.worker.grants, job.workers[0]
        free = placer.free.astype(np.int64)
        most = placer.most_on(job) * need  # GPUs that may be its own of each node
        alone = self._gpus == self.wide  # all of the job is on this node
        gives = self._stays & self.movable & ~self._on & (self.key > key)
        goes = self._stays & self.movable & alone & ~gives & moves
        given, gone = self._sum(gives), self._sum(goes)
        takes = np.minimum(np.minimum(free + given + gone, most) // need, workers)
        want = takes * need
        cost = np.where(takes > 0, np.maximum(want - free, 0) + 1e3 * np.maximum(want - free - given, 0), np.inf)
        order = np.argsort(cost / np.maximum(takes, 1), kind="stable")
        found, left = Clearance(), workers
        for node in (order[:_LOOKS] if workers == 1 else order).tolist():
            if not takes[node] or not left:
                break
            count = min(left, int(takes[node]))
            stopped, moved = self._out(node, count * need - int(free[node]), gives, goes)
            found.nodes[node] = count * need
            found.stopped += [name for name in stopped if name not in found.stopped]
            found.moved += moved
            left -= count
        return None if left or not self._elsewhere(found, free + given) else found

    def _sum(self, parts: np.ndarray) -> np.ndarray:
        """Return the GPUs of some parts by node, int64 (m,)."""
        held = np.bincount(self._node[parts], self._gpus[parts], minlength=self._state.fleet.n_nodes)
        return np.asarray(held.astype(np.int64))

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
        return [self.names[i] for i in stopped], [self.names[i] for i in moved]

    def _elsewhere(self, found: Clearance, later: np.ndarray) -> bool:
        """Return whether each of the jobs that are to be moved has room on another node."""
        later[list(found.nodes)] = 0
        for gpus in sorted((self._state.running[name].gpus for name in found.moved), reverse=True):
            fits = np.flatnonzero(later >= gpus)
            if not len(fits):
                return False
            later[fits[np.argmin(later[fits])]] -= gpus
        return True


class Stops:
    """One round of stops.

    Args:
        state: it is changed.
        starts: the round of starts that it is part of.

    Attributes:
        stops: the jobs that stopped.
    """

    def __init__(self, state: ClusterState, starts: Starts) -> None:
        self._state, self._starts = state, starts
        self.stops: list[Stop] = []
        self._refused: list[Candidate] = []
        self._was: dict[str, RunningJob] = {}

    def run(self) -> None:
        """Stop jobs, and start those for whom they are stopped."""
        state, queue = self._state, self._state.queue
        first = [state.waiting[name] for name in queue.first(MOST)]
        parts = self._parts = Parts(state)
        if not first or not parts.movable.any():
            return
        if not state.idle and min(queue.key(request.name) for request in first) >= parts.key.max():
            return
        moved: list[str] = []
        for request in sorted(self._chosen(first), key=lambda r: -state.holds(r, state.degrees(r)[0])):
            if self._starts.over():
                return
            if not self._starts.one(request.name, state.degrees(request), TIER, hold=False):
                moved += self._make_room(request, moves=True)
        for name in moved:
            if name in state.waiting and not self._starts.one(name, (self._was[name].degree,), TIER, hold=False):
                self._make_room(state.waiting[name], moves=False)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The stops in words, with the seconds that each had left, and those that were refused."""
        made = (Candidate(f"{stop.job} gives way to {stop.other}", stop.left) for stop in self.stops)
        return (*made, *self._refused)

    def _chosen(self, first: Sequence[Request]) -> list[Request]:
        """Return the waiting jobs that are to run, and mark the running ones that are to go on."""
        state, parts = self._state, self._parts
        fixed, heads = parts.head & ~parts.movable, np.flatnonzero(parts.head & parts.movable)
        room = state.gpus - int(parts.wide[fixed].sum())
        need = np.array([state.holds(r, state.degrees(r)[0]) for r in first])
        keys = np.concatenate([parts.key[heads], [state.queue.key(r.name) for r in first]])
        wide = np.concatenate([parts.wide[heads], need])
        order = np.argsort(keys, kind="stable")
        together = int(np.searchsorted(np.cumsum(wide[order]), room, "right"))  # so many of the first fit together
        taken = order[:together].tolist()
        room -= int(wide[taken].sum())
        for i in order[together:].tolist():
            if not room:
                break
            if wide[i] <= room:
                taken.append(i)
                room -= int(wide[i])
        for part in np.delete(heads, [i for i in taken if i < len(heads)]).tolist():
            parts.give(state.running[parts.names[part]])
        return [first[i - len(heads)] for i in taken if i >= len(heads)]

    def _make_room(self, request: Request, moves: bool) -> list[str]:
        """Start a job where others are stopped for it; return those that are to go on elsewhere."""
        state, degree = self._state, self._state.degrees(request)[0]
        found = self._parts.find(state.placed(request, degree), state.queue.key(request.name), moves)
        if found is None:
            return []
        jobs = [state.running[name] for name in (*found.stopped, *found.moved)]
        exchanges = [self._exchange(job, request, degree, job.name in found.moved) for job in jobs]
        wrong = [words for exchange in exchanges for words in verify_stop(exchange, state.running, state.queue.order)]
        if wrong:
            words = f"{found.stopped + found.moved} give way to {request.name}"
            self._refused.append(Candidate(words, request.lasts(degree), wrong[0]))
            return []
        for job in jobs:  # each waits with what is left of its work
            state.free(job.name)
            state.wait(job.request.stopped(job.degree, job.ran(state.now)))
        where = {node: tuple(state.placer.idle(node)[:count]) for node, count in found.nodes.items()}
        if not self._starts.one(request.name, (degree,), TIER, where, hold=False):
            for job in jobs:
                state.waiting[job.name] = job.request
                state.put(job)
            return []
        for job, exchange in zip(jobs, exchanges, strict=True):
            self._was[job.name] = job
            self._parts.leave(job)
            nodes = state.named(job.nodes)
            self.stops.append(Stop(job.name, nodes, request.name, exchange.left, exchange.price or 0.0))
        return found.moved

    def _exchange(self, job: RunningJob, request: Request, degree: int, moved: bool) -> Exchange:
        left, price = job.left(self._state.now), job.request.price
        lasts, needs = request.lasts(degree), request.gpus(degree)
        return Exchange(job.name, price, left, job.gpus, request.name, lasts, needs, moved)
