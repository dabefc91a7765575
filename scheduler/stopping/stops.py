"""Who is stopped for whom: the jobs with the least work left run, and a stop must be worth its price.

The running jobs that may be stopped and the waiting ones are put into one order, GPU seconds left (Smith, Naval
Research Logistics 1956, for jobs that may be interrupted; SRSF with Gu et al., NSDI 2019), what a stop costs counted
against it. As many of the first as have room together are to run. Who of them waits is given room: what is free, else
what running jobs hold that are not among them, else a node that is cleared of jobs that go on elsewhere, so that no
gang waits for room that is there but scattered.

Jobs cannot stop each other for ever. A job stops only after it got on, since it last started, for its price, and for
longer than nothing. So each price that is paid stands beside at least as many GPU seconds in which a job got on, what
stops cost is never more than the work there is, and a job of d seconds with the price p is stopped at most d / p times.
Where stops cost nothing, whoever holds GPUs gets on all the time. A job that was due when it started is not stopped
here at all; a higher class may stop it, and who has less than its share (`preempt`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.instances.verify.actions import Exchange, verify_stop
from gangplan.solvers.nodes import held, most_workers
from gangplan.solvers.placement.online.capacity import Kind

from ..decision import GAIN, Considered, Start, Stop
from ..queueing.queue import in_order
from ..queueing.request import Request
from ..settings import EXPENSIVE
from ..starting.bundles import EmptyNodes
from ..starting.starts import StartRound
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


class RunningParts:
    """Keep the parts of running jobs, and which of them may be stopped.

    Attributes:
        movable: whether the job of each part may be stopped now, and has more left than that costs, bool (parts,).
        key: place of each part in the order, less what a stop must be worth, -1 if it may not be stopped, float64.
    """

    def __init__(self, state: SchedulerState) -> None:
        table = state.running.table()
        weight = table.wide.astype(float) ** state.queue.order
        self._state, self._names = state, list(state.running.parts)
        self.movable = table.movable(state.now)
        with np.errstate(invalid="ignore", over="ignore"):
            key = np.maximum(table.counts(state.now) - EXPENSIVE * table.price, 0.0) * weight
        self.key = np.where(self.movable, key, -1.0)
        self._wide, self._head, self._serial = table.wide.copy(), table.head.astype(bool), table.serial.copy()
        self._node, self._used = table.node.copy(), table.used.copy()
        self._up, self._sums = np.array(state.up), dict[int, np.ndarray]()  # what parts use on nodes, by their number
        self._stays, self._on = np.ones((2, len(table.node)), dtype=bool)
        self._every, self._key = self.movable, self.key
        self._level, self._queue = table.level.copy(), state.accounts.queues[table.payer]
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


TIER = "stops"
MOST = 512
"""Waiting jobs for which others may be stopped, the first in order."""


class Stops:
    """One round of stops.

    Args:
        state: it is changed.
        starts: the round of starts that it is part of.

    """

    def __init__(self, state: SchedulerState, starts: StartRound) -> None:
        self._state, self._starts = state, starts
        self._refused: list[Considered] = []
        self._earlier = {*starts.starts}  # of other rounds
        self._counts: dict[str, float] = {}  # seconds of jobs that stopped, as they count in the order

    def run(self) -> bool:
        """Stop jobs, and start those for whom they are stopped; return whether any stopped."""
        state, queue, starts = self._state, self._state.queue, self._starts
        if starts.gives[0] != state.changes:
            starts.gives = state.changes, bool(state.running.table().movable(state.now).any())
        if not starts.gives[1]:
            return False
        parts = self._parts = RunningParts(state)
        first = [state.waiting[name] for name in islice(in_order(queue), MOST)]
        claims = state.notices.claims
        first = [x for x in first if x.job.worker.gpu and x.terms.preempts and x.name not in claims]
        first = [x for x in first if starts.degrees(x) and not starts.gave_way(x.name)]
        if not first:
            return False
        if not state.idle and min(queue.key(request.name) for request in first) >= parts.key.max():
            return False
        pools: dict[tuple[int, int], list[Request]] = {}  # those of a queue that may be on the same nodes compete
        for request in first:
            number = state.ground(request, state.degrees(request)[0]).number
            pools.setdefault((number, state.accounts.leaf(request.terms)), []).append(request)
        with starts.kept.holding():
            rest = {name for pool in pools.values() for name in self._run(pool)}
            held: set[int] = set()  # pools whose first is held, so that those behind it leave it its room
            for request in first:
                if request.name in rest:
                    self._begin(request)
                number = state.ground(request, state.degrees(request)[0]).number
                if number not in held and request.name in state.waiting:
                    starts.kept.hold(request)
                    held.add(number)
            self._settle()
        starts.traded += [Considered(f"{stop.job} gives way to {stop.other}", stop.left) for stop in self._stops()]
        starts.traded += self._refused
        return bool(self._counts)

    def _run(self, pool: list[Request]) -> set[str]:
        """Have those of a pool run that are to and may be stopped, the widest first; return the names of the others.

        Who may not be stopped starts after them, beside who is before it in any pool.
        """
        state = self._state
        ground = state.ground(pool[0], state.degrees(pool[0])[0])
        if self._starts.over() or self._parts.none(pool, ground):
            return set()
        self._parts.compete(pool[0])
        chosen = self._parts.choose(pool, ground)
        for request in sorted(chosen, key=lambda r: -state.holds(r, state.degrees(r)[0])):
            if request.price is not None:
                self._begin(request)
        return {request.name for request in chosen if request.price is None}

    def _begin(self, request: Request) -> None:
        """Start a job where there is room, or where others stop for it, if there is time."""
        if not self._starts.over() and not self._starts.one(
            request.name, self._starts.degrees(request), TIER, hold=False
        ):
            self._parts.compete(request)
            self._make_room(request)

    def _stops(self) -> list[Stop]:
        """Return the jobs that stopped."""
        return [self._starts.stops[name] for name in self._counts]

    def _make_room(self, request: Request) -> None:
        """Start a job where others are stopped for it, and have those go on that are to; or leave all as it is."""
        state, starts, degree = self._state, self._starts, self._starts.degrees(request)[0]
        room = self._parts.find(
            state.placed(request, degree), state.queue.key(request.name), state.shut(request, degree)
        )
        if room is None:
            return
        jobs = [state.running[name] for name in (*room.stopped, *room.moved)]
        asks = request.name, request.counts(degree), request.gpus(degree)
        exchanges = [
            Exchange(x.name, x.request.price, x.counts(state.now), x.gpus, *asks, x.name in room.moved) for x in jobs
        ]
        wrong = [words for exchange in exchanges for words in verify_stop(exchange, state.running, state.queue.order)]
        if wrong:
            words = f"{room.stopped + room.moved} give way to {request.name}"
            self._refused.append(Considered(words, request.lasts(degree), wrong[0]))
            return

        def begin() -> Iterator[bool]:
            where = {node: self._seats(node, count, jobs) for node, count in room.nodes.items()}
            yield starts.one(request.name, (degree,), TIER, where, hold=False)
            for job in jobs[len(room.stopped) :]:
                yield starts.one(job.name, (job.degree,), TIER, hold=False)

        if starts.exchange([(job, request.name, GAIN) for job in jobs], begin()):
            for job, exchange in zip(jobs, exchanges, strict=True):
                self._counts[job.name] = exchange.left
                self._parts.leave(job)

    def _seats(self, node: int, count: int, jobs: Sequence[RunningJob]) -> tuple[int, ...]:
        """Return so many idle GPUs of a node, first those that jobs left."""
        left = {gpu for job in jobs for gpu in job.nodes.get(node, ())}
        return tuple(sorted(sorted(self._state.placer.idle(node), key=lambda gpu: gpu not in left)[:count]))

    def _settle(self) -> None:
        """Take back stops that gain no more than they cost, now that all starts are known, and what rests on them.

        Whoever starts on a node of such a job may rest on its GPUs, cores or memory, whoever started after one that
        nobody may delay may delay it, and whoever has the same user or queue may be within its limits by the stop.
        """
        while loss := next((x for x in self._stops() if not self._gains(x)), None):
            stops, starts = {loss.job}, set[str]()
            while True:
                where = {node for x in self._stops() if x.job in stops for node in x.nodes}
                made = self._made()
                more = {
                    s.job for s in made if s.job in stops or where & {*s.nodes} or self._shares(s.job, stops)
                } | starts
                ahead = next(
                    (i for i, s in enumerate(made) if s.job in more and self._starts.kept.holds(s.job)), len(made)
                )
                more |= {s.job for s in made[ahead:]}
                back = stops | {x.job for x in self._stops() if x.other in more or x.job in more}
                if (back, more) == (stops, starts):
                    break
                stops, starts = back, more
            self._starts.trial.back(starts, stops)
            self._counts = {name: left for name, left in self._counts.items() if name not in stops}
            words = f"{loss.job} gives way to {loss.other}"
            self._refused.append(Considered(words, loss.left, "it gains no more than it costs"))

    def _shares(self, name: str, stops: set[str]) -> bool:
        """Return whether a job has the user or queue of one that stopped, if these have limits."""
        accounts, terms = self._state.accounts, self._state.running[name].request.terms
        halted = self._starts.trial.halted
        others = [halted[other].request.terms for other in stops] if accounts.bounded else []
        mine = set(accounts.all[accounts.leaf(terms)].above)
        return any(
            (terms.user and terms.user == other.user) or mine & {*accounts.all[accounts.leaf(other)].above}
            for other in others
        )

    def _made(self) -> list[Start]:
        return [s for s in self._starts.starts.values() if s.tier == TIER and s.job not in self._earlier]

    def _gains(self, stop: Stop) -> bool:
        """Return whether a stop gains more than it costs, in the seconds for which jobs count."""
        now, running = self._state.now, self._state.running
        made = [replace(s, seconds=running[s.job].counts(now)) if running[s.job].index else s for s in self._made()]
        return replace(stop, left=self._counts[stop.job]).gains(made, self._stops())
