"""The course of things: which job ran where and when, and how much of its work each run did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from ..queue import Request
from ..running import Nodes, RunningJob

if TYPE_CHECKING:
    from ..scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Run:
    """Hold a run of a job: seconds, GPUs by node, and whether it was stopped or lost before its end."""

    start: float
    end: float
    nodes: Nodes
    stopped: bool

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
        down: each node that was away, and when it failed or left, and when it came.
        gpus: of each node that was ever there, by its number.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.runs: dict[str, list[Run]] = {}
        self.first: dict[str, float] = {}
        self.finish: dict[str, float] = {}
        self.done: dict[str, float] = {}
        self.unit: dict[str, Request] = {}
        self.down: list[tuple[int, float, float]] = []
        self.gpus: list[int] = scheduler._state.fleet.gpus.tolist()
        self._fails = {node: 0.0 for node, up in enumerate(scheduler._state.up) if not up}
        self._running: dict[str, RunningJob] = {}

    def follow(self, scheduler: Scheduler) -> None:
        """Go on with the present state of a scheduler, which has the same jobs, or is the first."""
        self._scheduler, state = scheduler, scheduler._state
        self._running = dict(state.running)
        for name, job in state.running.items():
            self.first.setdefault(name, job.since)
            self.unit.setdefault(name, job.request)
        for name in scheduler.waiting:
            self.unit.setdefault(name, state.later.request(state, name))
        self.turned()

    def note(self, names: Iterable[str] | None = None, finished: str = "") -> None:
        """Note what has changed for these jobs, or for all; one of them may have finished."""
        state, now = self._scheduler._state, self._scheduler.now
        running, waiting = state.running, state.waiting
        for name in [*self._running, *running] if names is None else names:
            was, runs = self._running.pop(name, None), running.get(name)
            if was is not None and (runs is None or runs.since != was.since):  # else it runs on
                stays = runs is not None and runs.nodes is was.nodes  # after a change of its estimate
                over, again = name == finished, waiting.get(name) if runs is None else runs.request
                kept = over or (again is not None and again.done > was.request.done)
                self.done[name] = self.done.get(name, 0.0) + (self.work(was, was.ran(now)) if kept else 0.0)
                self.runs.setdefault(name, []).append(Run(was.since, now, was.nodes, not (over or stays)))
                if over:
                    self.finish[name] = now
            if runs is not None:
                self._running[name] = runs
                self.first.setdefault(name, runs.since)

    def work(self, job: RunningJob, seconds: float) -> float:
        """Return what share of its work a job does in so many seconds on a place that is not slow."""
        return seconds / self.seconds(job.name, job.degree)

    def seconds(self, name: str, degree: int) -> float:
        """Return the seconds of all the work with so many workers, as first expected; never 0."""
        job, unit = self.unit[name].job, self.unit[name]
        return unit.seconds[job.workers.index(degree)] * unit.left or job.workers[-1] / degree

    def turned(self) -> None:
        """Note which nodes are there and up."""
        state, now = self._scheduler._state, self._scheduler.now
        for node in range(len(self.gpus), len(state.up)):
            self.gpus.append(int(state.fleet.gpus[node]))
            self._fails[node] = 0.0
        for node in range(len(self.gpus)):
            up = node < len(state.up) and state.up[node]
            if up and node in self._fails:
                self.down.append((node, self._fails.pop(node), now))
            elif not up:
                self._fails.setdefault(node, now)

    def close(self) -> None:
        """Note what runs still, and the nodes that are down for good."""
        now = self._scheduler.now
        for name, job in self._running.items():
            self.runs.setdefault(name, []).append(Run(job.since, now, job.nodes, False))
        self.down += [(node, at, inf) for node, at in self._fails.items()]
        self._running.clear()
        self._fails.clear()
