"""The state of the cluster as events change it, and the one transaction: what is not kept is taken back."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from sys import float_info
from typing import Any, NamedTuple, Self

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain
from gangplan.instances.placement import GangJob
from gangplan.instances.verify.actions import verify_start
from gangplan.solvers.placement.online.capacity import Capacity, Kind
from gangplan.solvers.placement.online.placer import NodeAllocation
from gangplan.solvers.placement.policies import GangPolicy

from .queueing.job_lines import JobLines
from .queueing.request import Request
from .starting.gpu_types import verify_terms
from .stopping.running_jobs import Nodes, RunningJob

RECENT = 1024
"""Jobs that are over whose names are remembered: longer ago, a name is new again."""


class SchedulerState(JobLines):
    """The state as events change it."""

    def node(self, node: str | int) -> int:
        """Return the number of a node given by name or number.

        Raises:
            InstanceError: if there is no such node.
        """
        if isinstance(node, str):
            if node not in self._index:
                raise InstanceError("node", f"{node!r} is no node of the cluster{_instead(node, self._index)}")
            return self._index[node]
        node = plain(node)
        if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < self.fleet.n_nodes:
            words = f"which has {self.fleet.n_nodes}, from 0 on"
            raise InstanceError("node", f"{node!r} is no node of the cluster, {words}")
        return node

    def find(self, name: str, state: str) -> None:
        """Raise unless a job of this name is where it should be: it ``runs`` or ``waits``."""
        where: dict[str, Mapping[str, object]]
        waits: Mapping[str, object] = ChainMap[str, Any](self.waiting, self.later.held)
        where = {"runs": self.running, "waits": waits, "is done": self.finished}
        found = next((words for words, jobs in where.items() if isinstance(name, str) and name in jobs), None)
        if found != state:
            words = f"it {found}" if found else f"it is not known{_instead(name, where[state])}"
            raise InstanceError("job", f"{name!r} does not {state.removesuffix('s')}: {words}")

    def grace(self, request: Request) -> float:
        """Return the seconds that a job has when it is told to stop."""
        return self.settings.grace if request.terms.grace is None else request.terms.grace

    def delay(self, jobs: Iterable[RunningJob]) -> float:
        """Return the longest grace of jobs, but of those that were told to stop before."""
        return max((self.grace(job.request) for job in jobs if job.price is not None), default=0.0)

    def over(self, name: str) -> None:
        """Note that a job is done or was withdrawn, and forget who was so long ago."""
        self.finished[name] = None
        self.freed.pop(name, None)
        if len(self.finished) > RECENT:
            del self.finished[next(iter(self.finished))]

    def note_freed(self, stops: Iterable[str], starts: Iterable[str] = ()) -> None:
        """Note which jobs wait again from now on, and which run."""
        self.freed.update(dict.fromkeys(stops, self.now))
        for name in starts:
            self.freed.pop(name, None)

    def begin(self, job: RunningJob) -> None:
        """Have a job, whose seats are taken, run; it waits, or ran in the state that this one is a twin of."""
        if job.name in self.waiting:
            self.leave(job.name)
        used = self.placer.uses(job.name)[1]
        self.running.add(job, used, 0 if self.accounts.trivial else self.accounts.leaf(job.request.terms))
        if self.accounts.kept:
            self._pay(job, used, 1)
        self.held[job.name] = job.request.job, job.nodes
        for node, gpus in job.nodes.items():
            self.holders[node].update(dict.fromkeys(gpus, job.name))
        self.idle -= job.gpus
        if self.interference is not None and job.gpus:
            self.interference.note(job.request.job, job.rows)
        if self.learned is not None:
            self.learned.note(job)

    def free(self, name: str) -> RunningJob:
        """Have a running job hold nothing any more, and return it."""
        job = self.running.remove(name)
        self.notices.stopping.pop(name, None)
        if self.accounts.kept:
            self._pay(job, self.placer.uses(name)[1], -1)
        del self.held[name]
        for node, gpus in job.nodes.items():
            for gpu in gpus:
                del self.holders[node][gpu]
        self.idle += job.gpus
        self.placer.remove(name)
        if self.interference is not None and job.gpus:
            self.interference.forget(job.request.job, job.rows)
        if self.learned is not None:
            self.learned.forget(name)
        self.closed.clear()
        self.changes += 1
        return job

    def lose(self, name: str) -> RunningJob:
        """Have a running job that lost a node wait with the work that was left when it started, and return it."""
        ended = self.free(name)
        again, due = ended.request.price is not None, ended.request.due + self.now - ended.since
        self.wait(replace(ended.request, again=again, due=due, paid=None))
        self.note_freed([name])
        return ended

    def halt(self, name: str) -> RunningJob:
        """Have a running job stop, and wait with what is left of its work; return it as it ran."""
        job = self.free(name)
        self.wait(job.request.stopped(job.degree, job.ran(self.now), self.now - job.since))
        return job

    def trial(self) -> Trial:
        """Return a transaction: what is done by it is taken back unless it is kept."""
        return Trial(self)

    def turn(self, node: int, up: bool) -> None:
        """Have a node, on which nobody is, be up or down."""
        self.up[node] = up
        more = int(self.fleet.gpus[node]) * (1 if up else -1)
        self.idle += more
        self.gpus += more
        if up:
            self.placer.repair(node)
            self.closed.clear()
        else:
            self.placer.fail(node)
        self.changes += 1
        self._count()
        self.bundles.clear()
        if self.places is not None:
            self.places.clear()
        self._placed.clear()
        self._kinds.clear()
        for shape, names in self.queue.lines():  # gangs may stick together otherwise than before
            first, degrees = self.waiting[names[0]], shape.degrees
            asks = self.asks(first, degrees[0]) if shape.asks else ()
            if (Kind.workers(self.placed(first, degrees[-1])), asks) != (shape.kind, shape.asks):
                self._reline(names)

    def alter(self, job: RunningJob) -> None:
        """Have a running job be another one on the same nodes."""
        used = self.placer.uses(job.name)[1]
        self.held[job.name] = job.request.job, job.nodes
        if self.accounts.kept:
            self._pay(self.running[job.name], used, -1)
            self._pay(job, used, 1)
        self.alike = self.alike and not job.request.terms.priority
        self.running.change(job, self.accounts.leaf(job.request.terms), self.now)

    def wrong(self, request: Request, degree: int, nodes: Nodes) -> list[str]:
        """Return what the verifier has against a start."""
        start = self.fleet, self.up, self.holders, self.held, request.job, degree, nodes, self.speeds
        wrong = verify_start(*start)
        return wrong or (verify_terms(request, degree, self.fleet, nodes) if self.differs(request) else [])

    def shut(self, request: Request, degree: int) -> np.ndarray:
        """Return the nodes that close before a job would end that starts now at its best place, int64 (nodes,)."""
        return self.calendar.closed(request, self.now, self.now + self.lasts(request, degree))

    def runs(self, request: Request, degree: int, nodes: Nodes) -> RunningJob:
        """Return a job as it runs from now on, with so many workers on these GPUs."""
        slower = self.slower(request, degree, nodes)
        end = min(self.now + request.lasts(degree, slower), float_info.max)
        return RunningJob(request, degree, self.now, end, dict(sorted(nodes.items())), slower, self.sharing.least_run)

    def trimmed(self, request: Request, degree: int, nodes: Nodes) -> Nodes:
        """Return GPUs without those of workers that a job does not need, in its last bundle, if it has them in part."""
        need = request.job.worker.grants or 1
        rest = sum(map(len, nodes.values())) // need - degree
        part = [node for node, gpus in nodes.items() if len(gpus) < self.fleet.gpus[node]]
        if rest <= 0 or not part:
            return nodes
        node = min(part, key=lambda node: len(nodes[node]))
        return {**nodes, node: nodes[node][: len(nodes[node]) - rest * need]}

    def put(self, job: RunningJob) -> bool:
        """Have a waiting job run on GPUs that are known, if cores, memory and NIC suffice."""
        if fits := self.placer.put(self.loose(job.request), job.nodes):
            self.begin(job)
        return fits

    def named(self, nodes: Nodes) -> dict[str, tuple[int, ...]]:
        """Return GPUs by name of the node."""
        return {self.fleet.names[node]: tuple(gpus) for node, gpus in nodes.items()}


def _instead(name: object, known: Mapping[str, object]) -> str:
    """Return names that are like one that is not known, in words."""
    close = get_close_matches(str(name), list(known)[:10_000], 3)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


START, STOP, OTHER = "start", "stop", "other"


class _Change(NamedTuple):
    """Hold what was done, with which job, and what takes it back."""

    what: str
    name: str
    undo: Callable[[], object]


class Trial:
    """Changes of a state: ``with state.trial() as trial: ...; trial.keep()``.

    What is not kept is taken back, the newest first, also where something is raised. Whoever tries something while a
    larger trial goes on enters that one again: only what was done since then is taken back.

    Args:
        state: it is changed.
        around: of whoever keeps more than the state has: entered, with the names of the jobs, while some is taken back.

    Attributes:
        halted: the jobs that stopped, as they ran.
    """

    def __init__(
        self,
        state: SchedulerState,
        around: Callable[[Collection[str]], AbstractContextManager[None]] = lambda names: nullcontext(),
    ) -> None:
        self._state, self._around = state, around
        self._done, self._marks = list[_Change](), list[tuple[int | None, dict[str, float]]]()
        self._promises = dict(state.promises)
        self.halted: dict[str, RunningJob] = {}

    def __enter__(self) -> Self:
        """Begin something that may be taken back alone."""
        self._marks.append((len(self._done), dict(self._state.promises)))
        return self

    def __exit__(self, *_: object) -> None:
        """Take it back unless it is kept."""
        mark, promises = self._marks.pop()
        if mark is not None:
            self._undo(self._done[mark:], self._done[:mark], promises)

    def keep(self) -> None:
        """Leave what was done since the trial was entered last as it is."""
        self._marks[-1] = None, {}

    def back(self, starts: Collection[str] | None = None, stops: Collection[str] = ()) -> None:
        """Take back some starts and stops, on which no others rest; by default all that was done."""
        some = {START: starts or (), STOP: stops, OTHER: ()}
        rest = [] if starts is None else [x for x in self._done if x.name not in some[x.what]]
        gone = self._done if starts is None else [x for x in self._done if x.name in some[x.what]]
        self._undo(gone, rest, self._promises)

    def _undo(self, gone: Sequence[_Change], rest: list[_Change], promises: dict[str, float]) -> None:
        self._done = rest
        if gone:
            with self._around({change.name for change in gone}):
                for change in reversed(gone):
                    fits = change.undo()
                    assert fits is not False, f"{change.name} had these seats"
            # what was promised meanwhile was of room that jobs would have left
            waiting = self._state.waiting
            self._state.promises = {name: time for name, time in promises.items() if name in waiting}

    def note(self, name: str, undo: Callable[..., object], *args: object, what: str = OTHER) -> None:
        """Note something that was done, and how it is taken back."""
        self._done.append(_Change(what, name, partial(undo, *args)))

    def begin(self, job: RunningJob) -> None:
        """Have a waiting job, whose seats are taken, run."""
        self._state.begin(job)
        self.note(job.name, self._end, job.name, what=START)

    def _end(self, name: str) -> None:
        self._state.wait(self._state.free(name).request)

    def halt(self, name: str) -> None:
        """Have a running job stop, and wait with what is left of its work."""
        self.halted[name] = self._state.halt(name)
        self.note(name, self._run_on, name, what=STOP)

    def _run_on(self, name: str) -> bool:
        job = self.halted.pop(name)
        self._state.waiting[name] = job.request
        return self._state.put(job)

    def place(
        self, gang: GangJob, room: Capacity | None = None, policy: GangPolicy | None = None
    ) -> Mapping[int, NodeAllocation] | None:
        """Seat a gang where it fits; see `Placer.place`."""
        seats = self._state.placer.place(gang, room, policy)
        if seats is not None:
            self.note(gang.name, self._state.placer.remove, gang.name)
        return seats

    def put(self, request: Request, nodes: Nodes) -> bool:
        """Seat a gang on GPUs that are known; see `Placer.put`."""
        fits = self._state.placer.put(self._state.loose(request), nodes)
        if fits:
            self.note(request.name, self._state.placer.remove, request.name)
        return fits

    def unseat(self, jobs: Iterable[RunningJob]) -> None:
        """Have the seats of running jobs be free, though the jobs count as running."""
        for job in jobs:
            self._state.placer.remove(job.name)
            self.note(job.name, self._state.placer.put, self._state.loose(job.request), job.nodes)

    def hold(self, request: Request, amounts: Sequence[int], sign: int) -> None:
        """Count that a job holds so much, of limits too; or that it does not if the sign is -1, but for limits."""
        hold = partial(self._state.accounts.hold, request.terms, amounts, limits=sign > 0)
        hold(sign)
        self.note(request.name, hold, -sign)

    def close(self, node: int, gpus: Collection[int], amounts: np.ndarray, gang: GangJob) -> np.ndarray:
        """Have idle GPUs of a node and such amounts, as far as it has them, be a gang's that is no job; return them."""
        state, others = self._state, self._state.held.get(gang.name, (gang, {}))[1]
        less = state.placer.close(node, gpus, amounts)
        state.holders[node].update(dict.fromkeys(gpus, gang.name))
        state.held[gang.name] = gang, {**others, node: tuple(gpus)}
        state.idle -= len(gpus)
        self.note(gang.name, self._open, node, gpus, less, gang.name)
        return less

    def _open(self, node: int, gpus: Collection[int], amounts: np.ndarray, name: str) -> None:
        self._state.placer.open(node, gpus, amounts)
        for gpu in gpus:
            del self._state.holders[node][gpu]
        self._state.held.pop(name, None)
        self._state.idle += len(gpus)
