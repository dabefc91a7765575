"""Speeds learned from what jobs report, who is where, and where a gang costs all jobs least by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.typed import STATE
from gangplan.solvers.placement.online.interference import cheapest
from gangplan.solvers.placement.policies import GangPolicy, Vacancy

from ..stopping.running_jobs import RunningJob
from .model_speeds import BesideModel, Spot

EMPTY, BUSY = 1.5, 4
"""An empty node costs the mean seconds of running jobs times this and the share of GPUs in use to the power `BUSY`: a
gang to come may need it whole. The best on validation seeds of benchmarks/learned_speeds.py."""
_NODE, _STEP = 0.1, 0.03
"""What another node costs a gang, and what costs are rounded to, in parts of its seconds: of equal nodes the fullest is
taken."""
_MOST, _LEAST = 3.0, 0.1
"""Of logarithms of predicted slowdowns; of its seconds, what a job has left at least while it runs."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What a scheduler believes of speeds.

    Attributes:
        used: whether gangs are placed by it.
        error, alone: mean errors of what was predicted of recent reports, as shares, and of the mean speeds of models.
        slowdown: how many times as long a model (first key) takes beside a job on one GPU (second).
    """

    used: bool
    error: float
    alone: float
    slowdown: Mapping[str, Mapping[str, float]]


@dataclass(slots=True)
class _TimedJob:
    """A running job: GPUs by node, seconds it takes alone, how many it has done, and when that was known."""

    kind: int
    nodes: dict[int, int]
    seconds: float
    done: float
    at: float


class LearnedSpeeds:
    """What jobs reported, and the rule for nodes made of it.

    Args:
        model: of speeds.
        nodes: m.

    Attributes:
        seconds: of all jobs that run.
    """

    def __init__(self, model: BesideModel, nodes: int) -> None:
        self.model, self._m = model, nodes
        self._tasks = np.zeros((nodes, 0))  # GPUs that jobs of each model hold on each node
        self._jobs: dict[str, _TimedJob] = {}
        self._on: list[dict[str, _TimedJob]] = [{} for _ in range(nodes)]
        self.seconds = 0.0

    @property
    def ready(self) -> bool:
        """Whether gangs are to be placed by it."""
        self.model.refresh()
        return self.model.trusted

    def note(self, job: RunningJob, done: float = 0.0, at: float | None = None) -> None:
        """Note a job that runs, `done` seconds of it alone until `at`."""
        kind = self.kind(job.request.job.model)
        held = {node: len(gpus) for node, gpus in job.nodes.items()}
        lasts = max(job.request.lasts(job.degree, job.slower), 1e-9)
        made = self._jobs[job.name] = _TimedJob(kind, held, lasts, done, job.since if at is None else at)
        self.seconds += lasts
        for node, gpus in held.items():
            self._tasks[node, kind] += gpus
            self._on[node][job.name] = made

    def forget(self, name: str) -> None:
        """Take a job off that ends or stops."""
        job = self._jobs.pop(name)
        self.seconds = self.seconds - job.seconds if self._jobs else 0.0
        for node, gpus in job.nodes.items():
            self._tasks[node, job.kind] -= gpus
            del self._on[node][name]

    def report(self, name: str, speed: float, now: float) -> None:
        """Learn from the speed of a running job; it is taken to have had that since it last reported."""
        job = self._jobs[name]
        others = self._tasks[list(job.nodes)].copy()
        others[:, job.kind] -= list(job.nodes.values())
        spot = Spot(job.kind, sum(job.nodes.values()), list(job.nodes), others.max(axis=0))
        job.done += (now - job.at) * self.model.report(spot, speed)
        job.at = now

    def policy(self, model: str, gpus: int, seconds: float, busy: float) -> GangPolicy:
        """Return the rule for nodes of a gang.

        Args:
            model: its model.
            gpus: that it holds on a node.
            seconds: that it takes alone.
            busy: the share of all GPUs that is in use.
        """
        kind = self.kind(model)

        def choose(room: Vacancy, degree: int) -> dict[int, int]:
            nodes, cost = np.flatnonzero(room.room), np.zeros(self._m)
            across = room.room.max(initial=0) < degree
            cost[nodes] = self._cost(kind, gpus, seconds, nodes, across)
            mean = self.seconds / max(1, len(self._jobs))
            cost[nodes] += EMPTY * busy**BUSY * mean * (self._tasks[nodes].sum(axis=1) == 0)
            step = _STEP * seconds
            return cheapest(room, degree, step * np.round(cost / step), _NODE * seconds)

        return choose

    def believes(self) -> Learned:
        """Return what it believes."""
        self.model.refresh()
        model, (reports, error, alone) = self.model, self.model.errors.tolist()
        slow, names = model.slowdown, list(model.kinds.items())
        table = {a: {b: float(slow[i, j]) for b, j in names} for a, i in names}
        return Learned(model.trusted, error / max(reports, 1e-9), alone / max(reports, 1e-9), table)

    def _cost(self, kind: int, gpus: int, seconds: float, nodes: np.ndarray, across: bool) -> FloatArray:
        """Return the seconds that a gang and the jobs on each of these nodes lose if it is there, float64 (n,)."""
        model = self.model
        slower = (np.log1p(self._tasks[nodes]) * (model.pair[kind] + model.crowded[nodes, None])).sum(axis=1)
        slower += model.site[nodes] + across * model.across[nodes]
        cost = seconds * np.expm1(np.clip(slower, -1.0, _MOST))
        parts = [
            (i, node, job.kind, job.nodes[node], max(job.seconds - job.done, _LEAST * job.seconds))
            for i, node in enumerate(nodes.tolist())
            for job in self._on[node].values()
        ]
        if not parts:
            return np.asarray(cost)
        *whole, held, left = np.array(parts).T
        at, node, other = np.array(whole, dtype=np.int64)
        beside, load = self._tasks[node], model.crowded[node]
        beside[np.arange(len(node)), other] -= held
        now = (np.log1p(beside) * (model.pair[other] + load[:, None])).sum(axis=1)
        there = beside[:, kind]
        more = (np.log1p(there + gpus) - np.log1p(there)) * (model.pair[other, kind] + load)
        lost = left * np.exp(np.clip(now, 0.0, _MOST)) * np.expm1(np.clip(more, -1.0, _MOST))
        return np.asarray(cost + np.bincount(at, lost, len(nodes)))

    def kind(self, model: str) -> int:
        """Return the number of a model, a new one if it was not known."""
        found = self.model.kind(model)
        more = len(self.model.pair) - self._tasks.shape[1]
        if more:
            self._tasks = np.pad(self._tasks, ((0, 0), (0, more)))
        return found

    def save(self) -> dict[str, Any]:
        """Return what was learned, and how far running jobs are, for JSON."""
        return {"model": self.model.save(), **self.progress()}

    def progress(self) -> dict[str, Any]:
        """Return how far running jobs are, for JSON."""
        return {"jobs": [[name, job.done, job.at] for name, job in self._jobs.items()], "seconds": self.seconds}

    def go_on(self, saved: Mapping[str, Any]) -> None:
        """Take over what `progress` returned, of the same jobs; of all of it the sum of seconds will do."""
        self.seconds = float(saved["seconds"])
        for name, done, at in saved.get("jobs", ()):
            job = self._jobs[name] = self._jobs.pop(name)
            job.done, job.at = done, at

    @classmethod
    def load(cls, saved: Mapping[str, Any], nodes: int, running: Mapping[str, RunningJob]) -> LearnedSpeeds:
        """Return what `save` returned, of a state in which the same jobs run.

        Raises:
            InstanceError: naming what of it is wrong.
        """
        found = cls(BesideModel.load(saved["model"], nodes), nodes)
        for name, done, at in STATE.read(tuple[tuple[str, float, float], ...], saved["jobs"], "jobs"):
            if name in found._jobs or name not in running:
                raise InstanceError("jobs", f"{name!r} does not run, or is there twice")
            found.note(running[name], float(done), float(at))
        if len(found._jobs) != len(running):
            raise InstanceError("jobs", f"are {len(found._jobs)} where {len(running)} run")
        # sums in another order differ by an ulp
        found.seconds = float(STATE.read(float, saved.get("seconds", found.seconds), "seconds"))
        return found
