"""Start jobs while they fit: in an order, beside a reservation for the first that does not."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.placer import NodeAllocation

from .policy import Watchdog
from .queue import Request, Shape, Walk
from .state import ClusterState, Nodes, RunningJob

FULL = "it does not fit"
DELAY = "it would delay a job before it"


@dataclass(frozen=True, slots=True)
class Start:
    """A job that starts now.

    Attributes:
        job: its name.
        degree: how many workers it has.
        nodes: its GPUs by name of the node.
        tier: who said that it should start.
        seconds: how long it is expected to run.
    """

    job: str
    degree: int
    nodes: Mapping[str, tuple[int, ...]]
    tier: str
    seconds: float


class Reservation:
    """When a gang fits if nobody else starts, and how much room it then has to spare (EASY; Lifka, JSSPP 1995).

    It looks at GPUs only. A job that runs longer than expected is taken to run as long again.

    Args:
        state: what runs.
        gang: as the placer sees it.

    Attributes:
        time: when it fits, infinite if it never does.
        ends: the jobs that end until then, by their ends.
    """

    def __init__(self, state: ClusterState, gang: GangJob) -> None:
        room, workers = state.placer.room(gang), gang.workers[0]
        self._need = max(1, room.kind.need[0])
        self._free, self._workers = state.placer.free, workers
        self._more: defaultdict[int, int] = defaultdict(int)
        self._total = room.total
        self.time, self.ends = np.inf, list[str]()
        for end, name in state.running.ends(state.now):
            if self._total >= workers and end > self.time:
                break
            for node, gpus in state.running[name].nodes.items():
                before = self._later(node)
                self._more[node] += len(gpus)
                self._total += self._later(node) - before
            self.time = end
            self.ends.append(name)
        if self._total < workers:
            self.time = np.inf

    def _later(self, node: int) -> int:
        """Return how many workers a node takes then."""
        return (int(self._free[node]) + self._more[node]) // self._need

    def stands(self, nodes: Nodes, end: float) -> bool:
        """Return whether it stands if a job, already seated on these GPUs, runs to `end`; if so that is noted."""
        if self.time == np.inf:
            return True
        if end <= self.time:
            for node, gpus in nodes.items():
                self._more[node] += len(gpus)  # they are free again by then
            return True
        lost = 0
        for node, gpus in nodes.items():
            now = int(self._free[node]) + self._more[node]
            lost += (now + len(gpus)) // self._need - now // self._need
        if self._total - lost < self._workers:
            return False
        self._total -= lost
        return True


class Starts:
    """One round of starts.

    Args:
        state: it is changed.
        watchdog: asks those that may fail, and notes what went wrong.
        stop: of the machine's clock.

    Attributes:
        starts: the jobs that started.
        waits: why jobs that were looked at wait.
        more: whether the time was up before all that could start did.
    """

    def __init__(self, state: ClusterState, watchdog: Watchdog, stop: float = np.inf) -> None:
        self._state, self._watchdog, self._stop = state, watchdog, stop
        self._held: GangJob | None = None
        self._reservation: Reservation | None = None
        self.starts: list[Start] = []
        self.waits: dict[str, str] = {}
        self.more = False

    def over(self) -> bool:
        """Return whether the time is up."""
        self.more = self.more or time.perf_counter() >= self._stop
        return self.more

    def one(
        self, name: str, degrees: Sequence[int], tier: str, nodes: Nodes | None = None, *, hold: bool = True
    ) -> bool:
        """Start a waiting job if it may; return whether it did.

        Args:
            name: the job.
            degrees: the numbers of workers to try, the best first.
            tier: who says so.
            nodes: where, if that was said too.
            hold: whether nobody may delay it from now on if it does not fit.
        """
        state, why = self._state, FULL
        request = state.waiting[name]
        for degree in degrees:
            found = self._seat(request, degree, nodes)
            if isinstance(found, str):
                why = found
                if nodes is not None and why != DELAY and hold:
                    self._watchdog.note(why)
                continue
            lasts = request.lasts(degree)
            state.begin(RunningJob(request, degree, state.now, state.now + lasts, dict(found)))
            self.starts.append(Start(name, degree, state.named(found), tier, lasts))
            self.waits.pop(name, None)
            return True
        if why == FULL and hold:
            self._hold(request)
        self.waits[name] = why
        return False

    def all(self, tier: str) -> None:
        """Go through the queue in the order of its keys, and start whoever may."""
        state = self._state
        walk = Walk(state.queue)
        while (head := walk.next()) and state.idle and not self.over():
            shape, name = head
            request = state.waiting[name]
            if self._closed(shape):
                self._hold(request)
                self.waits.setdefault(name, FULL)
            elif self.one(name, state.degrees(request), tier):
                walk.again(shape)

    def _closed(self, shape: Shape) -> bool:
        least = self._state.closed.get(shape.kind)
        return least is not None and not shape.alone and len(shape.degrees) == 1 and shape.degrees[0] >= least

    def _hold(self, request: Request) -> None:
        """Let nobody delay a job from now on, unless one is held already."""
        if self._held is None and self._state.settings.reserve:
            self._held = self._state.placed(request, request.job.workers[0])

    def _seat(self, request: Request, degree: int, nodes: Nodes | None) -> Nodes | str:
        """Give a job its seats; return them, or why not."""
        state, placer = self._state, self._state.placer
        job = state.placed(request, degree)
        if nodes is None and not placer.fits(job):
            return self._full(job, degree)
        if self._held is not None and self._reservation is None:
            self._reservation = Reservation(state, self._held)
        if nodes is None:
            found = self._place(request, degree)
            if found is None:
                return self._full(job, degree)
            nodes = {node: seat.gpus for node, seat in found.items()}
            if wrong := state.wrong(request, degree, nodes):
                placer.remove(job.name)
                self._watchdog.note(f"the placer's seats are refused: {wrong[0]}")
                return wrong[0]
        else:
            if wrong := state.wrong(request, degree, nodes):
                return wrong[0]
            placer.put(job, nodes)
        fixed = request.price is None  # others can be stopped when the reservation is due
        end = state.now + request.lasts(degree)
        if fixed and self._reservation is not None and not self._reservation.stands(nodes, end):
            placer.remove(job.name)
            return DELAY
        return nodes

    def _place(self, request: Request, degree: int) -> dict[int, NodeAllocation] | None:
        """Place a gang where jobs mind it least if speeds were learned or are known, else by the topology."""
        state, placer, job = self._state, self._state.placer, self._state.placed(request, degree)
        if state.learned is not None and state.learned.ready:
            gpus, busy = min(request.gpus(degree), state.size), 1 - state.idle / max(1, state.gpus)
            policy = state.learned.policy(request.job.model, gpus, request.lasts(degree), busy)
            found = placer.place_by(policy, job)
        elif state.interference is not None:
            found = placer.place_by(state.interference.policy(job), job)
        else:
            found = placer.place(job)
        return None if found is None else dict(found)

    def _full(self, job: GangJob, degree: int) -> str:
        """Note that such workers did not fit."""
        if not job.apart:
            kind, closed = Kind.workers(job), self._state.closed
            closed[kind] = min(closed.get(kind, degree), degree)
        return FULL
