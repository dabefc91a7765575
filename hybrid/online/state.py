"""The state of the cluster: which nodes are up, who waits, who runs where and since when, and views kept beside it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, GangJob, SpeedModel
from gangplan.instances.verify.actions import verify_start
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.interference import LeastInterference

from .placer import ANY_MODEL, FailingPlacer
from .queue import Estimates, Queue, Request, Shape

if TYPE_CHECKING:
    from .learned_speeds import LearnedSpeeds

Nodes = Mapping[int, tuple[int, ...]]
"""The GPUs of a job by node."""
RECENT = 1024
"""Jobs that are over whose names are remembered: longer ago, a name is new again."""
COME = 4.0
"""Jobs that wait for the GPUs of one that starts, by jobs that wait already."""
EXPENSIVE = 2.0
"""Times its price that a stop has to be worth: who was stopped once is often stopped again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a scheduler is told when it is made, see `Scheduler`; `ahead`: whether the lookahead chooses the order."""

    together: bool
    reserve: bool
    order: float
    ahead: bool
    price: float | None

    def __post_init__(self) -> None:
        require_number(self.order, "order")
        require_number(self.price, "price", optional=True)


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs.

    Attributes:
        request: the job.
        degree: how many workers it has.
        since: seconds of the user's clock.
        end: when it is expected to be done.
        nodes: its GPUs by node.
    """

    request: Request
    degree: int
    since: float
    end: float
    nodes: Nodes

    @property
    def name(self) -> str:
        """The job's name."""
        return self.request.name

    @property
    def gpus(self) -> int:
        """How many GPUs it holds."""
        return sum(len(gpus) for gpus in self.nodes.values())

    def ran(self, now: float) -> float:
        """Return the seconds for which it got on; what its start cost is none of them."""
        return max(0.0, now - self.since - self.request.pays)

    def left(self, now: float) -> float:
        """Return the seconds that it is expected to run still: as long as it did, if it was expected to be done."""
        return self.end - now if self.end > now else now - self.since


class RunningJobs(dict[str, RunningJob]):
    """The running jobs by name, in the order in which they are expected to end, and their parts on nodes as arrays.

    Attributes:
        by_end: (end, serial, name), ascending.
        parts: (name, node) of each row of the arrays, which have no gaps.
        stoppable: parts of jobs that may be stopped.
    """

    def __init__(self) -> None:
        self.by_end: list[tuple[float, int, str]] = []
        self.parts: list[tuple[str, int]] = []
        self.stoppable = 0
        self._at: dict[tuple[str, int], int] = {}
        self._times, self._counts = np.zeros((3, 256)), np.zeros((4, 256), dtype=np.int64)

    def add(self, job: RunningJob) -> None:
        """Note a job that starts."""
        self[job.name] = job
        insort(self.by_end, (job.end, job.request.serial, job.name))
        price, wide = job.request.price, job.gpus
        self.stoppable += 0 if price is None else len(job.nodes)
        for i, (node, gpus) in enumerate(job.nodes.items()):
            at = len(self.parts)
            if at == self._times.shape[1]:
                self._times = np.concatenate([self._times, self._times], axis=1)
                self._counts = np.concatenate([self._counts, self._counts], axis=1)
            self._times[:, at] = job.end, job.since, np.inf if price is None else price
            self._counts[:, at] = node, len(gpus), wide, 0 if i else 1
            self._at[job.name, node] = at
            self.parts.append((job.name, node))

    def ends(self, now: float) -> Iterator[tuple[float, str]]:
        """Yield when jobs are expected to end, see `RunningJob.left`, and their names, ascending."""
        late = bisect_left(self.by_end, (now, np.inf, ""))
        again = sorted((now + self[name].left(now), serial, name) for _, serial, name in self.by_end[:late])
        for end, _, name in merge(again, islice(self.by_end, late, None)):
            yield end, name

    def remove(self, name: str) -> RunningJob:
        """Forget a job that stops and return it: the last part takes the place of each of its own."""
        job = self.pop(name)
        del self.by_end[bisect_left(self.by_end, (job.end, job.request.serial, name))]
        self.stoppable -= 0 if job.request.price is None else len(job.nodes)
        for node in job.nodes:
            at = self._at.pop((name, node))
            last, n = self.parts.pop(), len(self.parts)
            if at < n:
                self.parts[at], self._at[last] = last, at
                self._times[:, at], self._counts[:, at] = self._times[:, n], self._counts[:, n]
        return job

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Return views on all parts: times and counts.

        Times are the end, the start, and the price, infinite for jobs that may not be stopped, float64 (3, parts);
        counts the node, the GPUs, those of the whole job, and whether it is the job's first part, int64 (4, parts).
        """
        n = len(self.parts)
        return self._times[:, :n], self._counts[:, :n]


class ClusterState:
    """What is so, and what is kept beside it so that a decision need not look at all of it.

    Attributes:
        fleet, speeds, settings: see `Scheduler`.
        now: the latest time that was heard of.
        up: which nodes are up, (m,).
        holders: of each node, who holds each of its GPUs that is held, (m,).
        waiting, running: jobs by name.
        held: gang and GPUs of each running job, for the verifier.
        finished: names of the last `RECENT` jobs that are done or were withdrawn, the oldest first.
        serial: how many jobs were submitted.
        idle, gpus: GPUs of nodes that are up: those that nobody holds, and all.
        placer, queue, estimates: where gangs fit, who waits in which order, how long jobs without an estimate take.
        interference: the rule for nodes where `speeds` are known, told who runs where; `None` without.
        learned: what jobs reported of their speeds; `None` before the first report.
        closed: the least number of workers of each kind that did not fit since something last became free.
        changes: how many events there were.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel | None, settings: Settings) -> None:
        usable = fleet.usable
        assert usable is not None
        self.fleet, self.speeds, self.settings = fleet, speeds, settings
        self.now, self.serial, self.changes = 0.0, 0, 0
        self.up: list[bool] = usable.tolist()
        self.holders: list[dict[int, str]] = [{} for _ in self.up]
        self.waiting: dict[str, Request] = {}
        self.running = RunningJobs()
        self.held: dict[str, tuple[GangJob, Nodes]] = {}
        self.finished: dict[str, None] = {}
        self.idle = self.gpus = int(fleet.gpus[usable].sum())
        self.placer = FailingPlacer(fleet, speeds)
        self.queue, self.estimates = Queue(settings.order), Estimates()
        self.interference: LeastInterference | None = None if speeds is None else LeastInterference(fleet, speeds)
        self.learned: LearnedSpeeds | None = None
        self.closed: dict[Kind, int] = {}
        self.size = int(fleet.gpus.max())
        self._index = {name: node for node, name in enumerate(fleet.names)}
        self._placed: dict[tuple[str, int], GangJob] = {}
        self._most: dict[Kind, int] = {}

    def at(self, now: float | None) -> float:
        """Return the time of an event: `now`, or that of the last one.

        Raises:
            InstanceError: if it is no number or before the last one.
        """
        if now is None:
            return self.now
        require_number(now, "now")
        if now < self.now:
            words = f"{now!r} is before {self.now!r}, when something happened already: report events in their order"
            raise InstanceError("now", words)
        return float(now)

    def node(self, node: str | int) -> int:
        """Return the number of a node given by name or number.

        Raises:
            InstanceError: if there is no such node.
        """
        if isinstance(node, str):
            if node not in self._index:
                raise InstanceError("node", f"{node!r} is no node of the cluster{_instead(node, self._index)}")
            return self._index[node]
        if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < self.fleet.n_nodes:
            words = f"which has {self.fleet.n_nodes}, from 0 on"
            raise InstanceError("node", f"{node!r} is no node of the cluster, {words}")
        return node

    def find(self, name: str, state: str) -> None:
        """Raise unless a job of this name is where it should be: it ``runs`` or ``waits``."""
        where: dict[str, Mapping[str, object]]
        where = {"runs": self.running, "waits": self.waiting, "is done": self.finished}
        found = next((words for words, jobs in where.items() if isinstance(name, str) and name in jobs), None)
        if found != state:
            words = f"it {found}" if found else f"it is not known{_instead(name, where[state])}"
            raise InstanceError("job", f"{name!r} does not {state.removesuffix('s')}: {words}")

    def placed(self, request: Request, degree: int) -> GangJob:
        """Return the gang that the placer sees."""
        key = request.name, degree
        if key not in self._placed:
            self._placed[key] = request.placed(degree, self.size, None if self.speeds else ANY_MODEL)
        return self._placed[key]

    def holds(self, request: Request, degree: int) -> int:
        """Return how many GPUs it keeps from others with so many workers: whole nodes if it takes several."""
        job = self.placed(request, degree)
        return job.workers[0] * job.worker.grants

    def degrees(self, request: Request) -> Sequence[int]:
        """Return the numbers of workers to try, the best first: soon done, and with few GPU seconds.

        A GPU that it holds for a second is a second less for those who wait, and for those who come meanwhile, here
        counted as `COME` times as many.
        """
        degrees = request.job.workers
        if len(degrees) == 1:
            return degrees
        others = COME * len(self.waiting) / max(1, self.gpus)
        return sorted(degrees, key=lambda d: (request.lasts(d) * (1 + others * request.gpus(d)), d))

    def check(self, request: Request) -> None:
        """Refuse a job that cannot run here, whatever else runs.

        Raises:
            InstanceError: naming the field.
        """
        job, name = request.job, request.name
        for words, jobs in (("waits", self.waiting), ("runs", self.running), ("was done", self.finished)):
            if name in jobs:
                raise InstanceError("job.name", f"{name!r} {words} already: give each job a name of its own")
        if 0 < job.worker.gpu < 1 or not job.worker.gpu:
            raise InstanceError("job.worker.gpu", f"{job.worker.gpu!r} is not a whole number of GPUs from 1 on")
        if job.servers:
            raise InstanceError("job.servers", f"{job.servers!r} is not 0: parameter servers are not placed here")
        try:
            placed = self.placed(request, job.workers[0])
            kind = Kind.workers(placed)
            if kind not in self._most:
                if len(self._most) >= 1024:
                    self._most.clear()
                self._most[kind] = int(self.placer.most_on(placed, up=False).sum())
            if self._most[kind] < placed.workers[0]:
                words = f"with {job.workers[0]} workers never fits, on no node or not on as many as there are"
                raise InstanceError("job", f"{job.name!r} {words}")
        except InstanceError:
            self.forget(request)
            raise

    def forget(self, request: Request) -> None:
        """Forget what was kept of a job."""
        for degree in request.job.workers:
            self._placed.pop((request.name, degree), None)

    def over(self, name: str) -> None:
        """Note that a job is done or was withdrawn, and forget who was so long ago."""
        self.finished[name] = None
        if len(self.finished) > RECENT:
            del self.finished[next(iter(self.finished))]

    def wait(self, request: Request) -> None:
        """Put a job into the queue."""
        self.changes += 1
        self.waiting[request.name] = request
        job, degree = request.job, request.job.workers[-1]
        alone = job.name if job.apart else ""
        shape = Shape(Kind.workers(self.placed(request, degree)), job.workers, request.gpus(degree), alone)
        self.queue.add(request, shape, request.lasts(degree))

    def leave(self, name: str) -> Request:
        """Take a job out of the queue and return it."""
        self.changes += 1
        self.queue.remove(name)
        return self.waiting.pop(name)

    def begin(self, job: RunningJob) -> None:
        """Have a waiting job, whose seats are taken, run."""
        self.leave(job.name)
        self.running.add(job)
        self.held[job.name] = job.request.job, job.nodes
        for node, gpus in job.nodes.items():
            self.holders[node].update(dict.fromkeys(gpus, job.name))
        self.idle -= job.gpus
        if self.interference is not None:
            placed = self.placed(job.request, job.degree)
            need = max(1, placed.worker.grants)
            self.interference.note(placed, {node: (len(gpus) // need, 0) for node, gpus in job.nodes.items()})
        if self.learned is not None:
            self.learned.note(job)

    def free(self, name: str) -> RunningJob:
        """Have a running job hold nothing any more, and return it."""
        job = self.running.remove(name)
        del self.held[name]
        for node, gpus in job.nodes.items():
            for gpu in gpus:
                del self.holders[node][gpu]
        self.idle += job.gpus
        self.placer.remove(name)
        if self.interference is not None:
            self.interference.forget(name)
        if self.learned is not None:
            self.learned.forget(name)
        self.closed.clear()
        self.changes += 1
        return job

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

    def wrong(self, request: Request, degree: int, nodes: Nodes) -> list[str]:
        """Return what the verifier has against a start."""
        return verify_start(self.fleet, self.up, self.holders, self.held, request.job, degree, nodes)

    def put(self, job: RunningJob) -> None:
        """Have a waiting job run on GPUs that are known."""
        self.placer.put(self.placed(job.request, job.degree), job.nodes)
        self.begin(job)

    def named(self, nodes: Nodes) -> dict[str, tuple[int, ...]]:
        """Return GPUs by name of the node."""
        return {self.fleet.names[node]: tuple(gpus) for node, gpus in nodes.items()}


def _instead(name: object, known: Mapping[str, object]) -> str:
    """Return names that are like one that is not known, in words."""
    close = get_close_matches(str(name), list(known)[:10_000], 3)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
