"""The parts of running jobs on nodes as a round of stops sees them, and the cheapest room that they could leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.solvers.nodes import held, most_workers
from gangplan.solvers.placement.online.capacity import Kind

from ..queueing.request import Request
from ..settings import EXPENSIVE
from ..starting.bundles import EmptyNodes
from ..state import SchedulerState
from .running_jobs import RunningJob

_LOOKS = 8
"""Maximum number of nodes that are looked at for a worker, the cheapest by a first estimate."""


@dataclass(slots=True)
class Clearance:
    """Say what makes room: the GPUs to use of each node, the jobs that stop, and those that go on elsewhere."""

    nodes: dict[int, int] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)


def movable(state: SchedulerState) -> np.ndarray:
    """Return whether the job of each part may be stopped now, and has more left than that costs, bool (parts,)."""
    end, since, price, settled, index = state.running.table()[0]
    now = state.now
    left = np.where(np.isnan(index), np.where(end >= now, end - now, now - since), index)
    return np.asarray((settled <= now) & (since < now) & (left > price))


class RunningParts:
    """Keep the parts of running jobs, and which of them may be stopped.

    Attributes:
        movable: whether the job of each part may be stopped now, and has more left than that costs, bool (parts,).
        key: place of each part in the order, less what a stop must be worth, -1 if it may not be stopped, float64.
    """

    def __init__(self, state: SchedulerState) -> None:
        (end, since, price, _, index), (node, wide, head, serial), used = state.running.table()
        now = state.now
        left = np.where(np.isnan(index), np.where(end >= now, end - now, now - since), index)
        weight = wide.astype(float) ** state.queue.order
        self._state, self._names = state, list(state.running.parts)
        self.movable = movable(state)
        with np.errstate(invalid="ignore", over="ignore"):
            self.key = np.where(self.movable, np.maximum(left - EXPENSIVE * price, 0.0) * weight, -1.0)
        self._wide, self._head, self._serial = wide.copy(), head.astype(bool), serial.copy()
        self._node, self._used = node.copy(), used.copy()
        self._up, self._sums = np.array(state.up), dict[int, np.ndarray]()  # what parts use on nodes, by their number
        self._stays, self._on = np.ones((2, len(node)), dtype=bool)
        self._every, self._key = self.movable, self.key
        _, self._leaf, self._level = (column.copy() for column in state.running.standing())
        self._queue = state.accounts.queues[self._leaf]
        self._best = np.full(len(state.accounts.all), -1.0)  # the last in order of each queue
        np.maximum.at(self._best, self._queue, self.key)

    def compete(self, request: Request) -> None:
        """Have only those give way to a waiting job that are of its queue, and of no higher class."""
        if self._state.alike:
            return
        accounts = self._state.accounts
        same = self._queue == accounts.queues[accounts.leaf(request.terms)]
        self.movable = self._every & same & (self._level <= request.terms.priority)
        self.key = np.where(self.movable, self._key, -1.0)

    def none(self, waiting: Sequence[Request], ground: EmptyNodes) -> bool:
        """Return whether `choose` surely returns nobody: all come after all who run there, and no room is left."""
        state = self._state
        number = 0 if state.alike else int(state.accounts.queues[state.accounts.leaf(waiting[0].terms)])
        best = self._best.max() if state.alike else self._best[number] if number < len(self._best) else -1.0
        if min(state.queue.key(request.name) for request in waiting) < best:
            return False
        needs = min(state.holds(request, state.degrees(request)[0]) for request in waiting)
        return needs > int(state.placer.free[ground.nodes].sum())

    def choose(self, waiting: Sequence[Request], ground: EmptyNodes) -> list[Request]:
        """Return the waiting jobs that are to run, and note which running ones are to go on.

        All are put into one order, and the first that have room together are to run. Room is that of the nodes on which
        these waiting jobs may be, their `ground`, and what running jobs hold there.
        """
        state = self._state
        degrees = [state.degrees(request)[0] for request in waiting]
        wanted = [*zip(waiting, degrees, strict=True)]
        asked = np.array([state.kind(*each)[0].need for each in wanted]).T * [
            state.placed(*each).workers[0] for each in wanted
        ]
        rows = np.flatnonzero(asked.max(axis=1))
        here = np.ones(len(self._node), dtype=bool)
        heads = np.flatnonzero(self._head & self.movable)
        held = self._wide[None, heads]
        some = len(rows) > 1 or not (ground.nodes | ~self._up).all()
        if some:
            here = ground.nodes[self._node]
            of, first, part = np.unique(self._serial[here], return_index=True, return_inverse=True)
            heads = np.flatnonzero(here)[first]
            held = np.stack([np.bincount(part, self._used[row][here], len(of)) for row in rows]).astype(np.int64)
            held, heads = held[:, self.movable[heads]], heads[self.movable[heads]]
        room = state.placer.whole[rows][:, ground.nodes].sum(axis=1)
        if (number := ground.number if some else -1) not in self._sums:
            self._sums[number] = self._used[:, here].sum(axis=1)
        room -= self._sums[number][rows] - self._used[rows][:, here & self.movable].sum(axis=1)
        keys = np.concatenate([self.key[heads], [state.queue.key(request.name) for request in waiting]])
        takes = np.concatenate([held, asked[rows]], axis=1)
        serial = np.concatenate([self._serial[heads], [request.serial for request in waiting]])
        order = np.lexsort((serial, keys))
        fit = (np.cumsum(takes[:, order], axis=1) <= room[:, None]).all(axis=0)
        together = int(fit.cumprod().sum())  # so many of the first fit together
        taken = order[:together].tolist()
        room -= takes[:, taken].sum(axis=1)
        for i in order[together:].tolist():
            if not room[0]:
                break
            if (takes[:, i] <= room).all():
                taken.append(i)
                room -= takes[:, i]
        gives = np.delete(heads, [i for i in taken if i < len(heads)])
        self._on = ~np.isin(self._serial, self._serial[gives])
        return [waiting[i - len(heads)] for i in taken if i >= len(heads)]

    def leave(self, job: RunningJob) -> None:
        """Forget a job that left its nodes."""
        self._stays &= self._serial != job.request.serial

    def find(self, job: GangJob, key: float, shut: np.ndarray) -> Clearance | None:
        """Return the cheapest room for a gang on nodes that are open: for each worker a node, and who leaves it."""
        placer, workers, kind = self._state.placer, job.workers[0], Kind.workers(job)
        need = kind.need
        rows = [i for i, amount in enumerate(need) if amount]
        alone = self._used[0] == self._wide  # all of the job is on this node
        gives = self._stays & self.movable & ~self._on & (self.key > key)
        goes = self._stays & self.movable & alone & ~gives
        takes = np.minimum(self._state.bundles.ground(job).most, workers)
        takes[placer.blocked(job)] = takes[shut] = 0
        if job.whole_nodes:
            takes[self._node[self._stays & ~gives]] = 0
        leaves, m = gives | goes, len(takes)
        takes = most_workers(placer.vacant + held(self._node[leaves], self._used[:, leaves], m), need, takes)
        free, given = placer.free, held(self._node[gives], self._used[:1, gives], m)[0]
        want = takes * need[0]
        cost = np.where(takes > 0, np.maximum(want - free, 0) + 1e3 * np.maximum(want - free - given, 0), np.inf)
        if (part := placer.part(kind)) is not None:
            other = part != _cheapest(part, takes, cost, workers)
            takes[other], cost[other] = 0, np.inf
        order = np.argsort(cost / np.maximum(takes, 1), kind="stable")
        room, left = Clearance(), workers
        for node in (order[:_LOOKS] if workers == 1 else order).tolist():
            if not takes[node] or not left:
                break
            count = min(left, int(takes[node]))
            lack = count * np.array(need)[rows] - placer.vacant[rows, node]
            stopped, moved = self._out(node, rows, lack, gives, goes, job.whole_nodes)
            room.nodes[node] = count * need[0]
            room.stopped += [name for name in stopped if name not in room.stopped]
            room.moved += moved
            left -= count
        return None if left or not all(self._elsewhere(name, room) for name in room.moved) else room

    def _out(
        self, node: int, rows: list[int], lack: np.ndarray, gives: np.ndarray, goes: np.ndarray, clear: bool
    ) -> tuple[list[str], list[str]]:
        """Return who leaves a node so that as much as is lacked is free, or all do: those stopped and those moved."""
        here = np.flatnonzero(self._node == node)
        here = here[np.argsort(self._serial[here])]
        stopped: list[int] = []
        uses = self._used[rows]
        for i in sorted(here[gives[here]].tolist(), key=lambda i: -self.key[i]):
            if (lack <= 0).all() and not clear:
                break
            stopped.append(i)
            lack = lack - uses[:, i]
        for i in list(stopped):  # who is in nobody's way is spared
            if not clear and (lack + uses[:, i] <= 0).all():
                stopped.remove(i)
                lack = lack + uses[:, i]
        moved: list[int] = []
        rest = here[goes[here]].tolist()
        while (lack > 0).any():
            enough = [i for i in rest if (uses[:, i] >= lack).all()]
            pick = min(enough, key=lambda i: uses[0, i]) if enough else max(rest, key=lambda i: uses[0, i])
            rest.remove(pick)
            moved.append(pick)
            lack = lack - uses[:, pick]
        return [self._names[i][0] for i in stopped], [self._names[i][0] for i in moved]

    def _elsewhere(self, name: str, room: Clearance) -> bool:
        """Return whether a job that is to be moved has room on other nodes."""
        running = self._state.running[name]
        job = self._state.placed(running.request, running.degree)
        has = self._state.placer.room(job)
        return has.total - int(has.room[list(room.nodes)].sum()) >= job.workers[0]


def _cheapest(part: np.ndarray, takes: np.ndarray, cost: np.ndarray, workers: int) -> int:
    """Return the part of the fleet that has a gang for the least cost, -1 if none has it."""
    each = np.where(takes > 0, cost / np.maximum(takes, 1), 0.0)
    order = np.lexsort((each, part))
    taken = np.cumsum(takes[order])
    before = taken - takes[order]
    first = before[np.unique(part[order], return_index=True)[1]]  # what the parts before take
    asked = np.clip(workers - (before - first[part[order]]), 0, takes[order])
    total = np.bincount(part[order], asked * each[order])
    total[np.bincount(part, takes) < workers] = np.inf
    return int(total.argmin()) if np.isfinite(total).any() else -1
