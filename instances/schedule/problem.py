"""The schedule problem and its plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import FloatArray, IntArray, frozen, require, require_number, require_text, require_unique
from ..errors import InstanceError, unknown
from ..workload import Workload
from .capacity import Capacity, total
from .job import MoldableJob

GOALS = ("weighted_completion", "mean_jct", "makespan", "blocked", "throughput")


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleProblem:
    """Choose for every job whether it runs, on how many GPUs, from when on and where.

    Attributes:
        jobs: all that will arrive, known beforehand.
        capacity: what they run on.
        goal: what is minimised.
            ``weighted_completion``: the sum of weight times completion; a job left out costs its value.
            ``mean_jct``: the mean of completion less release, of a job left out of its value.
            ``makespan``: the last completion, and the values of the jobs left out.
            ``blocked``: the values of the jobs left out; any may be, one without a value costs 1.
            ``throughput``: the weights of the jobs left out or not complete by the horizon; any may be left out.
        horizon: seconds; of ``throughput``, and of no other goal.
    """

    jobs: tuple[MoldableJob, ...]
    capacity: Capacity
    goal: str = "weighted_completion"
    horizon: float | None = None

    objective: ClassVar[str] = "schedule"
    variant: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", tuple(self.jobs))
        if self.goal not in GOALS:
            raise InstanceError("goal", unknown(self.goal, GOALS))
        if not self.jobs:
            raise InstanceError("jobs", "the problem has no job")
        require_number(self.horizon, "horizon", optional=True)
        if (self.horizon is not None) != (self.goal == "throughput"):
            raise InstanceError("horizon", f"{self.horizon!r} does not go with the goal {self.goal}")
        require_unique([job.name for job in self.jobs], "jobs", ".name")

    def __repr__(self) -> str:
        return f"ScheduleProblem({len(self.jobs)} jobs over time on {total(self.capacity)} GPUs: {self.goal})"

    @classmethod
    def of(cls, workload: Workload, capacity: Capacity, goal: str = "mean_jct") -> ScheduleProblem:
        """Return the problem that a clairvoyant scheduler of a trace solves: rigid jobs, released as submitted.

        Raises:
            InstanceError: if a job holds a share of its GPUs.
        """
        share = np.asarray(workload.share)
        require(share == 1, share, "share", "is not 1: GPUs are not shared here")
        columns = (workload.names, workload.gpus.tolist(), workload.duration.tolist(), workload.submit.tolist())
        jobs = (MoldableJob(n, (g,), (p,), release=r) for n, g, p, r in zip(*columns, strict=True))
        return cls(tuple(jobs), capacity, goal)

    def price(self, j: int) -> float | None:
        """Return what leaving out job j costs, in the unit of the goal before any mean; `None` if it must run."""
        job = self.jobs[j]
        if self.goal == "throughput":
            return job.weight
        return 1.0 if self.goal == "blocked" and job.value is None else job.value


@dataclass(frozen=True, slots=True, eq=False)
class SchedulePlan:
    """An answer: degree and start of each of n jobs, and which nodes they hold; r rows.

    Attributes:
        jobs: the names of the problem's jobs, in its order.
        degree: int32 (n,), index into the job's menu, -1 if it is left out.
        start: seconds, float64 (n,), 0 where a job is left out.
        job: int32 (r,), index into `jobs`. A pool of counted GPUs has no rows.
        node: int32 (r,), the node, or the server of a RAMP cluster; a job has at most one row a node.
        gpus: int32 (r,), how many it holds there.
        instance: content hash of the problem it answers, if known.
    """

    jobs: tuple[str, ...]
    degree: IntArray
    start: FloatArray
    job: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    node: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    gpus: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    instance: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", tuple(self.jobs))
        for i, name in enumerate(self.jobs):
            require_text(name, f"jobs[{i}]")
        if self.instance is not None:
            require_text(self.instance, "instance")
        n = len(self.jobs)
        object.__setattr__(self, "degree", frozen(self.degree, np.int32, "degree", (n,)))
        object.__setattr__(self, "start", frozen(self.start, np.float64, "start", (n,)))
        require(self.degree >= -1, self.degree, "degree", "is neither an index nor -1")
        require(np.isfinite(self.start) & (self.start >= 0), self.start, "start", "is not a finite number from 0 on")
        object.__setattr__(self, "job", frozen(self.job, np.int32, "job", (None,)))
        for field in ("node", "gpus"):
            object.__setattr__(self, field, frozen(getattr(self, field), np.int32, field, (len(self.job),)))
        require((self.job >= 0) & (self.job < n), self.job, "job", f"is not one of the {n} jobs")
        require(self.node >= 0, self.node, "node", "is negative")
        require(self.gpus > 0, self.gpus, "gpus", "is not positive")

    def __repr__(self) -> str:
        return f"SchedulePlan({(self.degree >= 0).sum()} of {len(self.jobs)} jobs run)"
