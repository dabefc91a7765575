"""The schedule problem: jobs that run for a time on some GPUs, and when each of them starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from .arrays import (
    AMOUNT,
    NONE,
    POSITIVE,
    Checked,
    FloatArray,
    IntArray,
    array,
    check_fields,
    limited,
    require,
    require_count,
    require_kind,
    require_unique,
)
from .cluster import RampTopology
from .errors import InstanceError
from .ramp import blocks, blocks_by_shape
from .workload import Workload


@dataclass(frozen=True, slots=True)
class Pool:
    """GPUs of which a job holds any that are free."""

    gpus: int = field(metadata={"positive": True})

    def __post_init__(self) -> None:
        check_fields(self)
        require_count(self.gpus, "gpus")


@dataclass(frozen=True, slots=True)
class NodePool:
    """Equal nodes on which jobs are consolidated.

    A job of at most `gpus` GPUs is on one node; a larger one fills nodes, and what is left of it is on one more, which
    it may share.
    """

    nodes: int = field(metadata={"positive": True})
    gpus: int = limited(8, positive=True)

    def __post_init__(self) -> None:
        check_fields(self)
        require_count(self.nodes * self.gpus, "nodes")


Capacity = Pool | NodePool | RampTopology
"""On a RAMP cluster a job holds one block of servers of a shape that PAC-ML knows, see `gangplan.instances.ramp`."""


def total(capacity: Capacity) -> int:
    """Return how many GPUs there are."""
    if isinstance(capacity, Pool):
        return capacity.gpus
    return capacity.nodes * capacity.gpus if isinstance(capacity, NodePool) else capacity.n_devices


def holds(capacity: Capacity, degree: int) -> bool:
    """Return whether a job of `degree` GPUs fits while nothing else runs."""
    if isinstance(capacity, RampTopology):
        return next(blocks(capacity, degree), None) is not None
    return degree <= total(capacity)


@lru_cache(maxsize=256)
def ramp_blocks(topology: RampTopology, size: int) -> IntArray:
    """Return the blocks of `size` servers, int32 (blocks, size), servers ascending, in the order of first fit."""
    rows = [rows for _, rows in blocks_by_shape(topology, size)]
    found = np.concatenate(rows) if rows else np.zeros((0, size), dtype=np.int32)
    found.setflags(write=False)
    return found


@dataclass(frozen=True, slots=True)
class MoldableJob:
    """A job with several degrees; the one it uses is chosen before it starts and kept to its end.

    Attributes:
        name: unique in a problem.
        degrees: how many GPUs it may hold, ascending; one number if it is rigid.
        durations: seconds it runs with each of them.
        release: seconds, before which it cannot start.
        weight: of its completion or of its being done.
        deadline: seconds by which it is complete if it runs at all; `None` if there is no such time.
        value: what leaving it out costs, in the unit of the goal; `None` if it must run.
    """

    name: str
    degrees: tuple[int, ...] = field(metadata={"positive": True, "ascending": True})
    durations: tuple[float, ...]
    release: float = 0.0
    weight: float = 1.0
    deadline: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.degrees:
            raise InstanceError("degrees", "names no number of GPUs")
        if len(self.durations) != len(self.degrees):
            raise InstanceError("durations", f"has {len(self.durations)} entries for {len(self.degrees)} degrees")


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
    goal: str = limited("weighted_completion", choices=GOALS)
    horizon: float | None = None

    objective: ClassVar[str] = "schedule"
    variant: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.jobs:
            raise InstanceError("jobs", "the problem has no job")
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
        require_kind(workload, "workload", (Workload,))
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
class SchedulePlan(Checked):
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
    degree: IntArray = field(metadata=array("jobs", holds=((lambda x: x >= -1, "is neither an index nor -1"),)))
    start: FloatArray = field(metadata=array("jobs", holds=AMOUNT))
    job: IntArray = field(default=NONE, metadata=array(None, of="jobs", what="jobs"))
    node: IntArray = field(default=NONE, metadata=array("job", holds=AMOUNT))
    gpus: IntArray = field(default=NONE, metadata=array("job", holds=POSITIVE))
    instance: str | None = None

    def __repr__(self) -> str:
        return f"SchedulePlan({(self.degree >= 0).sum()} of {len(self.jobs)} jobs run)"
