"""What all methods for schedules share: the options of each job as arrays, costs brought to one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.schedule import NodePool, Pool, SchedulePlan, ScheduleProblem
from gangplan.instances.schedule.capacity import holds, ramp_blocks, total
from gangplan.instances.topology import RampTopology
from gangplan.instances.verify import TOLERANCE

Ints = NDArray[Any]
"""Whole numbers of any width."""
POOL, NODES, RAMP = 0, 1, 2
LEFT_OUT, EARLIEST = -1, -2
"""Instead of an option: the job does not run; it takes whichever ends first."""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """The capacity in numbers.

    Attributes:
        kind: `POOL`, `NODES` or `RAMP`.
        total: GPUs in all.
        nodes, gpus: of `NODES`; a RAMP server is a node of one GPU; a pool is one node.
        size: of each block of RAMP, ascending, int32 (b,).
        first: int32 (b + 1,), where its servers begin in `server`.
        server: int32.
    """

    kind: int
    total: int
    nodes: int
    gpus: int
    size: Ints
    first: Ints
    server: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A schedule problem of n jobs with o options in all.

    The goal is `constant` plus, for jobs that run, the sum of slope times completion (or the last completion of all, if
    `makespan`), plus the prices of those left out.

    Attributes:
        problem: as given.
        cluster: what they run on.
        first: int64 (n + 1,), where the options of each job begin; larger degrees later. An option that does not fit,
            is late on an idle cluster, or is no faster than a smaller one is not here.
        gpus, menu: int64 (o,), degree of an option and its place on the job's menu.
        seconds: float64 (o,), its duration.
        owner: int64 (o,), its job.
        release, deadline, slope, price: float64 (n,); without a deadline inf; a job that must run has the price inf.
        constant: see above.
        makespan: see above.
    """

    problem: ScheduleProblem
    cluster: Cluster
    first: Ints
    gpus: Ints
    menu: Ints
    seconds: FloatArray
    owner: Ints
    release: FloatArray
    deadline: FloatArray
    slope: FloatArray
    price: FloatArray
    constant: float
    makespan: bool

    @property
    def n(self) -> int:
        """How many jobs there are."""
        return len(self.release)

    def options(self, j: int) -> range:
        """Return the options of job j."""
        return range(int(self.first[j]), int(self.first[j + 1]))

    def goal(self, option: Ints, start: FloatArray) -> float:
        """Return what the schedule costs, as prepared; an option below 0 is a job left out."""
        runs = option >= 0
        finish = start[runs] + self.seconds[option[runs]]
        lost = float(self.price[~runs].sum())
        if self.makespan:
            return self.constant + float(finish.max(initial=0.0)) + lost
        return self.constant + float(self.slope[runs] @ finish) + lost

    def plan(self, option: Ints, start: FloatArray, rows: Ints) -> SchedulePlan:
        """Return the plan; `rows` are (job, node, GPUs), (3, r)."""
        runs = option >= 0
        degree = np.full(self.n, -1)
        degree[runs] = self.menu[option[runs]]
        names = tuple(job.name for job in self.problem.jobs)
        return SchedulePlan(names, degree, np.where(runs, start, 0.0), *np.asarray(rows, dtype=np.int32))


def prepare(problem: ScheduleProblem) -> Prepared:
    """Bring `problem` to the form that methods work on."""
    jobs, n = problem.jobs, len(problem.jobs)
    release = np.array([job.release for job in jobs], dtype=float)
    due = [np.inf if job.deadline is None else float(job.deadline) for job in jobs]
    deadline = np.minimum(due, np.inf if problem.horizon is None else problem.horizon)
    values = [problem.price(j) for j in range(n)]
    price = np.array([np.inf if value is None else value for value in values], dtype=float)
    slope, constant = np.zeros(n), 0.0
    if problem.goal == "weighted_completion":
        slope = np.array([job.weight for job in jobs], dtype=float)
    elif problem.goal == "mean_jct":
        slope = np.full(n, 1.0 / n)
        price = (price + release) / n
        constant = -float(release.sum()) / n
    first, gpus, menu, seconds = [0], [], [], []
    for j, job in enumerate(jobs):
        best = np.inf
        for k, (degree, duration) in enumerate(zip(job.degrees, job.durations, strict=True)):
            # on RAMP a smaller block need not be part of a larger one
            slower = duration >= best and not isinstance(problem.capacity, RampTopology)
            late = release[j] + duration > deadline[j] * (1 + TOLERANCE)
            if not slower and not late and holds(problem.capacity, degree):
                best = min(best, duration)
                gpus.append(degree)
                menu.append(k)
                seconds.append(duration)
        first.append(len(gpus))
    return Prepared(
        problem,
        _cluster(problem, sorted(set(gpus))),
        np.array(first),
        np.array(gpus, dtype=np.int64),
        np.array(menu, dtype=np.int64),
        np.array(seconds, dtype=float),
        np.repeat(np.arange(n), np.diff(first)),
        release,
        deadline,
        slope,
        price,
        constant,
        problem.goal == "makespan",
    )


def _cluster(problem: ScheduleProblem, degrees: list[int]) -> Cluster:
    capacity = problem.capacity
    size, first, server = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32)
    if isinstance(capacity, Pool):
        return Cluster(POOL, capacity.gpus, 1, capacity.gpus, size, first, server)
    if isinstance(capacity, NodePool):
        return Cluster(NODES, total(capacity), capacity.nodes, capacity.gpus, size, first, server)
    known = [ramp_blocks(capacity, d) for d in degrees]
    size = np.repeat(np.array(degrees, dtype=np.int32), [len(blocks) for blocks in known])
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int32)
    server = np.concatenate([server, *(blocks.ravel() for blocks in known)]).astype(np.int32)
    return Cluster(RAMP, capacity.n_devices, capacity.n_devices, 1, size, first, server)
