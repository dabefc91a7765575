"""The placement problem and its plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import AMOUNT, NONE, Checked, FloatArray, IntArray, array, check_fields, limited, require_unique
from ..errors import InstanceError
from .fleet import Fleet
from .job import Expected, GangJob, SpeedModel, Task

GOALS = ("slowdown", "throughput", "communication", "fragmentation")


@dataclass(frozen=True, slots=True)
class Running:
    """Where a job of the batch runs already.

    Attributes:
        job: its name.
        nodes: names of its nodes.
        workers, servers: how many of its tasks are on each of them.
        movable: whether it may go elsewhere; otherwise it stays as it is.
        migration: what moving it costs, in the unit of the goal.
    """

    job: str
    nodes: tuple[str, ...]
    workers: tuple[int, ...]
    servers: tuple[int, ...] = ()
    movable: bool = False
    migration: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.servers:
            object.__setattr__(self, "servers", (0,) * len(self.nodes))
        for counts in ("workers", "servers"):
            if len(getattr(self, counts)) != len(self.nodes):
                words = f"has {len(getattr(self, counts))} entries where {len(self.nodes)} are expected"
                raise InstanceError(counts, words)


@dataclass(frozen=True, slots=True, eq=False)
class PlacementProblem:
    """Give every gang of a batch its nodes and GPUs.

    Attributes:
        fleet: the nodes.
        jobs: the batch, those that run already among them.
        speeds: how fast they run.
        running: where those that run already are.
        goal: ``slowdown`` (minimise the sum of weighted slowdowns), ``throughput`` (minimise the sum of weighted
            losses of normalised throughput, no less than 0 each), ``communication`` (minimise the sum of weighted
            communication costs, see `rate.communication`) or ``fragmentation`` (minimise the GPUs left over that tasks
            to come cannot use, see `verify.fragmentation`); a job left out costs its value, a job moved its migration,
            in the unit of the goal.
        mix: the tasks to come; if none is named, such as the workers of the batch: see `expected`.
    """

    fleet: Fleet
    jobs: tuple[GangJob, ...]
    speeds: SpeedModel
    running: tuple[Running, ...] = ()
    goal: str = limited("slowdown", choices=GOALS)
    mix: tuple[Expected, ...] = ()

    objective: ClassVar[str] = "placement"
    variant: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.jobs:
            raise InstanceError("jobs", "the batch has no job")
        if not self.fleet.names:
            raise InstanceError("fleet", "has no node")
        require_unique([job.name for job in self.jobs], "jobs", ".name")
        index = {job.name: i for i, job in enumerate(self.jobs)}
        models, labels = set(self.speeds.models), set(self.fleet.labels)
        for i, job in enumerate(self.jobs):
            if job.model not in models:
                raise InstanceError(f"jobs[{i}].model", f"{job.model!r} has no speed")
            for k, label in enumerate(job.requires):
                if label not in labels:
                    raise InstanceError(f"jobs[{i}].requires[{k}]", f"{label!r} is no label of the fleet")
        for i, job in enumerate(self.jobs):
            for k, name in enumerate(job.apart):
                if name not in index or name == job.name:
                    raise InstanceError(f"jobs[{i}].apart[{k}]", f"{name!r} is no other job of the batch")
        kinds = set(self.speeds.gpu_types)
        for i, kind in enumerate(self.fleet.gpu_types):
            if kind not in kinds:
                raise InstanceError(f"fleet.gpu_types[{i}]", f"{kind!r} has no speeds")
        self._check_running(index)

    def __repr__(self) -> str:
        fleet = self.fleet
        return f"PlacementProblem({len(self.jobs)} jobs on {fleet.n_nodes} nodes with {fleet.n_gpus} GPUs: {self.goal})"

    def _check_running(self, index: dict[str, int]) -> None:
        nodes = set(self.fleet.names)
        require_unique([run.job for run in self.running], "running", ".job")
        for i, run in enumerate(self.running):
            if run.job not in index:
                raise InstanceError(f"running[{i}].job", f"{run.job!r} is no job of the batch")
            for k, name in enumerate(run.nodes):
                if name not in nodes:
                    raise InstanceError(f"running[{i}].nodes[{k}]", f"{name!r} is no node of the fleet")
            require_unique(run.nodes, f"running[{i}].nodes")
            job = self.jobs[index[run.job]]
            if sum(run.workers) not in job.workers or sum(run.servers) != job.servers:
                words = f"{sum(run.workers)} workers and {sum(run.servers)} parameter servers are not what"
                words += f" {run.job!r} runs with"
                raise InstanceError(f"running[{i}].workers", words)

    def expected(self) -> tuple[Expected, ...]:
        """Return the mix of tasks to come with shares that add up to 1.

        If none is named, these are the workers of the batch, as many as gangs have at least: each with its demand and
        the GPU types of the fleet on which its model runs.
        """
        count: dict[Task, float] = {}
        for x in self.mix:
            count[x.task] = count.get(x.task, 0.0) + x.share
        if not self.mix:
            seconds = self._by_type()
            for j, job in enumerate(self.jobs):
                able = tuple(kind for kind, x in zip(self.fleet.gpu_types, seconds[j], strict=True) if np.isfinite(x))
                if able:
                    task = Task(job.worker, able if len(able) < len(self.fleet.gpu_types) else ())
                    count[task] = count.get(task, 0.0) + job.gang
        total = sum(count.values())
        return tuple(Expected(task, share / total) for task, share in count.items())

    def compute(self) -> FloatArray:
        """Return the seconds a worker of each job computes on each node, alone, inf where it cannot, (J, m)."""
        return self.compute_at(np.arange(len(self.jobs))[:, None], np.arange(self.fleet.n_nodes))

    def compute_at(self, job: NDArray[Any], node: NDArray[Any]) -> FloatArray:
        """Return the seconds a worker of `job` computes on `node`, elementwise: at scale all pairs are too many."""
        fleet = self.fleet
        seconds = self._by_type()[job, np.where(fleet.gpus > 0, fleet.gpu_type, 0)[node]]
        return np.asarray(np.where(fleet.gpus[node] > 0, seconds, np.inf))

    def fastest(self) -> FloatArray:
        """Return the seconds a worker of each job computes on the GPUs of the fleet that suit it best, (J,)."""
        fleet = self.fleet
        present = np.unique(fleet.gpu_type[fleet.gpus > 0])
        return np.asarray(self._by_type()[:, present].min(axis=1, initial=np.inf))

    def _by_type(self) -> FloatArray:
        """Return the seconds a worker of each job computes on each GPU type of the fleet, (J, types)."""
        speeds = self.speeds
        rows = np.array([speeds.gpu_types.index(kind) for kind in self.fleet.gpu_types], dtype=int)
        index = {name: k for k, name in enumerate(speeds.models)}
        seconds = np.asarray(speeds.compute[rows][:, [index[job.model] for job in self.jobs]].T)
        for j, job in enumerate(self.jobs):
            if job.gpu_types and job.worker.grants:
                seconds[j, [kind not in job.gpu_types for kind in self.fleet.gpu_types]] = np.inf
        return seconds


@dataclass(frozen=True, slots=True, eq=False)
class PlacementPlan(Checked):
    """An answer: which tasks of which job are on which node, and which GPUs they hold; r rows.

    Attributes:
        jobs: the names of the batch's jobs, in its order.
        job: int32 (r,), index into `jobs`; a job without a row is left out.
        node: int32 (r,), index into the fleet's nodes; a job has at most one row a node.
        workers, servers: int32 (r,), how many of its tasks are there.
        grant_row: int32 (g,), the row that each grant of a GPU belongs to.
        grant_gpu: int32 (g,), the GPU on the row's node, from 0. A task of whole GPUs has as many grants of its own; a
            task that needs a share has one grant, on a GPU that others may share.
        instance: content hash of the problem it answers, if known.
    """

    jobs: tuple[str, ...]
    job: IntArray = field(metadata=array(None, of="jobs", what="jobs"))
    node: IntArray = field(metadata=array("job", holds=AMOUNT))
    workers: IntArray = field(metadata=array("job", holds=AMOUNT))
    servers: IntArray = field(metadata=array("job", holds=AMOUNT))
    grant_row: IntArray = field(default=NONE, metadata=array(None, of="job", what="rows"))
    grant_gpu: IntArray = field(default=NONE, metadata=array("grant_row", holds=AMOUNT))
    instance: str | None = None

    def __repr__(self) -> str:
        placed, nodes = len(np.unique(self.job)), len(np.unique(self.node))
        return f"PlacementPlan({placed} of {len(self.jobs)} jobs on {nodes} nodes)"
