"""The course of things: which job ran where and when, and how much of its work each run did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from ..queueing.request import Request
from ..stopping.running_jobs import Nodes, RunningJob

if TYPE_CHECKING:
    from ..scheduler import Scheduler

FAILURE, WITHDRAWN = "failure", "withdrawn"
"""Why a run is over that was neither done nor stopped by a decision."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """Hold a run of a job.

    Attributes:
        start, end: seconds.
        nodes: GPUs by number of the node, as in `Course.gpus`.
        cause: of its stop, as of a `Stop`; ``failure`` or ``withdrawn``, "" if it ended or goes on.
    """

    start: float
    end: float
    nodes: Nodes
    cause: str = ""

    @property
    def stopped(self) -> bool:
        """Whether a decision stopped it."""
        return self.cause not in ("", FAILURE, WITHDRAWN)

    @property
    def gpus(self) -> dict[int, int]:
        """The number of GPUs on each node; workers without GPUs have numbers below 0."""
        return {node: sum(gpu >= 0 for gpu in gpus) for node, gpus in self.nodes.items()}


class Course:
    """Keep what happened beside a scheduler that is told of it.

    Work is counted in the seconds of the first estimate: a job that took as long as was expected has done 1. So it is
    known how long it takes with another number of workers, and on a place that is not as slow.

    Attributes:
        runs, first, finish: by job, its runs that are over, when it first ran and when it was done.
        done: by job, its work without what a failure lost and what stops cost.
        unit: by job, its first estimate, seconds for each number of workers.
        gpus: those of each node that there ever was.
        down: each node that was not there or failed, and when it failed and came back.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.runs: dict[str, list[JobRun]] = {}
        self.first: dict[str, float] = {}
        self.finish: dict[str, float] = {}
        self.done: dict[str, float] = {}
        self.unit: dict[str, Request] = {}
        self.down: list[tuple[int, float, float]] = []
        self.gpus: list[int] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._here: list[int] = []  # the numbers of the nodes that the scheduler has
        self._fails = dict[int, float]()
        self._running: dict[str, RunningJob] = {}
        self._began: dict[str, float] = {}
        self._seats: dict[str, Nodes] = {}
        self._count()
        self._fails = {node: 0.0 for node, up in enumerate(scheduler._state.up) if not up}

    def follow(self, scheduler: Scheduler) -> None:
        """Go on with the present state of a scheduler, which has the same jobs, or is the first."""
        self._scheduler, state = scheduler, scheduler._state
        self.turned()
        self._running = dict(state.running)
        self._began = {name: self._began.get(name, job.since) for name, job in state.running.items()}
        self._seats = {name: self._seats_of(job) for name, job in state.running.items()}
        for name, job in state.running.items():
            self.first.setdefault(name, job.since)
            self.unit.setdefault(name, job.request)
        for name in scheduler.waiting:
            self.unit.setdefault(name, state.later.request(state, name))

    def note(
        self,
        names: Iterable[str] | None = None,
        stops: Mapping[str, str] | None = None,
        *,
        finished: str = "",
        cause: str = FAILURE,
    ) -> None:
        """Note what has changed for these jobs, or for all.

        Args:
            names: of jobs.
            stops: why jobs were stopped; others that run still go on, whatever was changed of them.
            finished: the job that is done.
            cause: why others do not run any more.
        """
        state, now, stops = self._scheduler._state, self._scheduler.now, stops or {}
        running, waiting = state.running, state.waiting
        for name in {**self._running, **running} if names is None else dict.fromkeys(names):
            was, runs = self._running.get(name), running.get(name)
            if was is runs:
                continue
            if was is not None:
                over, again = name == finished, waiting.get(name) if runs is None else runs.request
                kept = over or (again is not None and again.done > was.request.done)
                self.done[name] = self.done.get(name, 0.0) + (self.work(was, was.ran(now)) if kept else 0.0)
                if runs is None or name in stops:
                    del self._running[name]
                    run = JobRun(
                        self._began.pop(name), now, self._seats.pop(name), "" if over else stops.get(name, cause)
                    )
                    self.runs.setdefault(name, []).append(run)
                if over:
                    self.finish[name] = now
            if runs is not None:
                self._running[name] = runs
                self._began.setdefault(name, runs.since)
                self._seats.setdefault(name, self._seats_of(runs))
                self.first.setdefault(name, runs.since)

    def _seats_of(self, job: RunningJob) -> Nodes:
        return {self._here[node]: gpus for node, gpus in job.nodes.items()} if job.gpus else {}

    def work(self, job: RunningJob, seconds: float) -> float:
        """Return what share of its work a job does in so many seconds on a place that is not slow."""
        return seconds / self.seconds(job.name, job.degree)

    def seconds(self, name: str, degree: int) -> float:
        """Return the seconds of all the work with so many workers, as first expected; never 0."""
        job, unit = self.unit[name].job, self.unit[name]
        return unit.seconds[job.workers.index(degree)] * unit.left or job.workers[-1] / degree

    def _count(self) -> None:
        """Give each node that the scheduler has a number; one that is new was not there until now."""
        fleet = self._scheduler._state.fleet
        nodes = [*zip(fleet.names, fleet.gpus.tolist(), strict=True)]
        for node in nodes:
            if node not in self._numbers:
                self._numbers[node] = len(self.gpus)
                self._fails[len(self.gpus)] = 0.0
                self.gpus.append(node[1])
        self._here = [self._numbers[node] for node in nodes]

    def turned(self) -> None:
        """Note which nodes there are, and which are down."""
        now, state = self._scheduler.now, self._scheduler._state
        self._count()
        up = {node for node, up in zip(self._here, state.up, strict=True) if up}
        for node in range(len(self.gpus)):
            if node not in up:
                self._fails.setdefault(node, now)
            elif node in self._fails:
                self.down.append((node, self._fails.pop(node), now))

    def close(self) -> None:
        """Note what runs still, and the nodes that are down for good."""
        now = self._scheduler.now
        for name in self._running:
            self.runs.setdefault(name, []).append(JobRun(self._began[name], now, self._seats[name]))
        self.down += [(node, at, inf) for node, at in self._fails.items()]
        self._running.clear()
        self._fails.clear()
