"""Placement as a MILP: what a plan costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

import pulp

from .best_case import BestCase
from .milp_compute import add_computes
from .milp_network import Network
from .milp_sync import Syncs
from .milp_tasks import Programme, Tasks
from .prepare import Batch


@dataclass(frozen=True, slots=True)
class Scale:
    """What a model counts in.

    Attributes:
        unit: of the goal; no plan of interest costs more.
        known: whether a plan of that cost is known, else it is what the worst plan might cost.
        marks: of each job, the slowdowns at which its loss of throughput is exact, ascending from 1.
    """

    unit: float
    known: bool
    marks: Sequence[Sequence[float]]


class Cost:
    """The objective of `Tasks`, in units of `scale`; letters as in docs/placement.md.

    Seconds of job j are counted in its own ticks: for the goal slowdown such that a step of one tick costs one unit
    with all the workers it may have, for the goal throughput such that it makes a slowdown of 1.
    """

    def __init__(self, programme: Programme, tasks: Tasks, scale: Scale) -> None:
        self.new, self.lp, self.tasks, self.scale = programme, programme.lp, tasks, scale
        batch = self.batch = tasks.batch
        self.slowdown = batch.problem.goal == "slowdown"
        self.tick = [_tick(batch, j) / (scale.unit if self.slowdown else 1.0) for j in range(len(batch.jobs))]
        self.compute, self.sync = ([programme.amount() for _ in batch.jobs] for _ in range(2))
        add_computes(programme, tasks, self.tick, self.compute)
        Syncs(programme, tasks, Network(programme, tasks), self.tick, self.sync)
        self._floors()
        self.total = pulp.lpSum(self._cost(j) for j in range(len(batch.jobs)))

    def _floors(self) -> None:
        """(F) What computing and synchronising take at least, wherever the job goes."""
        best = BestCase(self.batch)
        for j, sizes in enumerate(self.tasks.size):
            floors = {k: best.floors(j, k) for k in sizes}
            for k, x in sizes.items():
                if not isfinite(sum(floors[k])):
                    self.lp += x <= 0
            for i, seconds in enumerate((self.compute[j], self.sync[j])):
                terms = [floors[k][i] * self.tick[j] * x for k, x in sizes.items() if isfinite(sum(floors[k]))]
                self.lp += seconds >= pulp.lpSum(terms)

    def _cost(self, j: int) -> Any:
        """(T) A step takes max(c, (1 - o) c + s), and costs by the number of workers; so do absence and moving."""
        batch, job, lp = self.batch, self.batch.jobs[j], self.lp
        placed = pulp.lpSum(self.tasks.size[j].values())
        apart = (job.value or 0.0) * (1 - placed)
        if j in self.tasks.moved:
            apart += batch.standing[j][1] * self.tasks.moved[j]
        if not self.tick[j]:
            return apart * (1 / self.scale.unit)
        step, slowdown = self.new.amount(), self.new.amount()
        lp += step >= self.compute[j]
        lp += step >= (1 - float(batch.overlap[j])) * self.compute[j] + self.sync[j]
        longest = 1.0 if self.slowdown and self.scale.known else longest_step(batch, j) * self.tick[j]
        most = job.workers[-1]
        for k, x in self.tasks.size[j].items():
            lp += slowdown >= most / k * step - (most / k - 1) * longest * (1 - x)
        if self.slowdown:
            return apart * (1 / self.scale.unit) + slowdown
        return (apart + float(batch.weight[j]) * self._loss(j, slowdown)) * (1 / self.scale.unit)

    def _loss(self, j: int, slowdown: Any) -> Any:
        """(L) Of 1, a job loses 1 - 1 over its slowdown, which is concave: on the chords between marks, no more."""
        segments: list[tuple[float, Any]] = []
        filled: list[Any] = []
        for low, high in pairwise(self.scale.marks[j]):
            part = self.new.amount(high - low)
            if filled:
                # a segment counts once the one before is full
                self.lp += part <= (high - low) * filled[-1]
            filled.append(self.new.binary())
            self.lp += part >= (high - low) * filled[-1]
            segments.append((1 / (low * high), part))
        self.lp += slowdown <= 1 + pulp.lpSum(part for _, part in segments)
        return pulp.lpSum(slope * part for slope, part in segments)


def longest_step(batch: Batch, j: int) -> float:
    """Return seconds that no step of job j exceeds."""
    job, speeds = batch.jobs[j], batch.problem.speeds
    others = [i for i in range(len(batch.jobs)) if i != j]
    row = int(batch.model[j])
    added = sum(max(float(table[row, batch.model[i]]) for table in (speeds.host, speeds.gpu)) for i in others)
    compute = max((float(x) for x in batch.alone[j] if isfinite(x)), default=0.0) * (1 + added)
    each = max(1 / min(batch.link), sum(len(batch.jobs) / b for b in batch.bandwidth))
    # at most 2 gradients of each phase go over a link; W P / P through that of parameter servers
    moved = job.workers[-1] if job.servers else 2 * (2 if job.collective == "hierarchical" else 1)
    return float(compute + float(batch.gradient[j]) * moved * each)


def highest_cost(batch: Batch) -> float:
    """Return what no plan costs more than."""
    total = sum(migration for _, migration in batch.standing.values())
    for j, job in enumerate(batch.jobs):
        slowdown = float(batch.best[j]) * longest_step(batch, j) / job.workers[0]
        most = slowdown if batch.problem.goal == "slowdown" else 1.0
        total += max(float(batch.weight[j]) * most, job.value or 0.0)
    return total


def highest_slowdown(batch: Batch, j: int) -> float:
    """Return a slowdown that job j cannot exceed, at least 2."""
    return max(2.0, 2 * float(batch.best[j]) * longest_step(batch, j) / batch.jobs[j].workers[0])


def _tick(batch: Batch, j: int) -> float:
    weight = float(batch.weight[j])
    slowdown = float(batch.best[j]) / batch.jobs[j].workers[-1]
    if batch.problem.goal == "slowdown":
        return weight * slowdown
    return slowdown if weight else 0.0
