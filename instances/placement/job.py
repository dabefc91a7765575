"""Gangs and single tasks: what they need, where they may go, and how fast models run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, frozen, require, require_names, require_number, require_text
from ..errors import DEVICES, InstanceError, unknown


@dataclass(frozen=True, slots=True)
class Task:
    """One task, placed as a whole on one node.

    Attributes:
        demand: GPUs, cores and memory. Several GPUs are whole ones of one node; a share is of one GPU.
        gpu_types: the types of GPU it accepts, by name; none named means any. Of no meaning without GPUs.
    """

    demand: Demand
    gpu_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.demand, Demand):
            raise InstanceError("demand", f"{self.demand!r} is not a Demand")
        object.__setattr__(self, "gpu_types", tuple(sorted(set(self.gpu_types))))
        for i, name in enumerate(self.gpu_types):
            require_text(name, f"gpu_types[{i}]")


@dataclass(frozen=True, slots=True)
class Expected:
    """A kind of task that is to be expected.

    Attributes:
        task: what it is like.
        share: how often it comes, in proportion to the others.
    """

    task: Task
    share: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.task, Task):
            raise InstanceError("task", f"{self.task!r} is not a Task")
        require_number(self.share, "share", positive=True)


@dataclass(frozen=True, slots=True, eq=False)
class SpeedModel:
    """What is known of K model types on T types of GPU; docs/placement.md has the formulas.

    Attributes:
        models: the model types by name.
        gpu_types: the GPU types by name.
        compute: seconds a worker computes in one step, alone, float64 (T, K); infinite where it cannot run.
        gradient: bytes that the workers synchronise in each step, float64 (K,).
        overlap: the share of the compute behind which synchronisation can hide, float64 (K,), from 0 to 1.
        host: what a job adds to the compute of another on the same node, as a share of it, float64 (K, K): row the job
            that suffers, column the one that is there.
        gpu: the same for jobs that share a GPU, float64 (K, K).
        duty: the share of the time that a gang of the model loads a link that it crosses, as those see it that cross it
            too, float64 (K,), from 0 to 1; 1 if none is given: links are shared by the number of gangs.
    """

    models: tuple[str, ...]
    gpu_types: tuple[str, ...]
    compute: FloatArray = dataclasses.field(metadata={"rank": 2, "null": "infinite"})
    gradient: FloatArray
    overlap: FloatArray
    host: FloatArray = dataclasses.field(metadata={"rank": 2})
    gpu: FloatArray = dataclasses.field(metadata={"rank": 2})
    duty: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        require_names(self, "models", "gpu_types")
        k, t = len(self.models), len(self.gpu_types)
        if not frozen(self.duty, np.float64, "duty", (None,)).size:
            object.__setattr__(self, "duty", np.ones(k))
        shapes: dict[str, tuple[int, ...]] = {
            "compute": (t, k),
            "gradient": (k,),
            "overlap": (k,),
            "host": (k, k),
            "gpu": (k, k),
            "duty": (k,),
        }
        for name, shape in shapes.items():
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64, name, shape))
        require(self.compute > 0, self.compute, "compute", "is not positive")
        for name in ("gradient", "overlap", "host", "gpu", "duty"):
            values = getattr(self, name)
            require(np.isfinite(values) & (values >= 0), values, name, "is not a finite number from 0 on")
        for name in ("overlap", "duty"):
            values = getattr(self, name)
            require(values <= 1, values, name, "is more than 1")

    def __repr__(self) -> str:
        return f"SpeedModel({len(self.models)} models on {', '.join(self.gpu_types)})"


COLLECTIVES = ("ring", "tree", "hierarchical", "ps")


@dataclass(frozen=True, slots=True)
class Demand:
    """What one task occupies on its node.

    Attributes:
        gpu: GPUs: a whole number of them, or a share of one between 0 and 1.
        cpu: cores.
        memory: bytes of host memory.
        nic: bytes/s set aside of the link that joins its node to the network.
    """

    gpu: float = 1.0
    cpu: float = 0.0
    memory: float = 0.0
    nic: float = 0.0

    def __post_init__(self) -> None:
        for field in ("gpu", "cpu", "memory", "nic"):
            require_number(getattr(self, field), field)
        if self.gpu > 1 and self.gpu != int(self.gpu):
            raise InstanceError("gpu", f"{self.gpu!r} is neither whole nor a share of one")
        DEVICES.check(self.grants, "gpu")

    @property
    def grants(self) -> int:
        """How many GPUs a task holds, or has a share of."""
        return int(self.gpu) if self.gpu >= 1 else int(self.gpu > 0)


@dataclass(frozen=True, slots=True)
class GangJob:
    """A job whose tasks all run, or none.

    Attributes:
        name: unique in a batch.
        model: the model type; speed and interference are known by it.
        workers: the numbers of workers it may run with, ascending; one number if it is rigid.
        worker: what a worker occupies.
        collective: how workers synchronise: all-reduce by ``ring``, ``tree`` or ``hierarchical``, or through
            parameter servers, ``ps``.
        servers: parameter servers, 0 unless the collective is ``ps``.
        server: what a parameter server occupies, no GPU.
        weight: of its slowdown.
        value: what placing it is worth, if it may be left out; `None` if it must be placed.
        requires: labels that its nodes carry.
        apart: names of jobs that share no node with it.
        most_per_node: of its workers, `None` if any number may share a node.
        whole_nodes: whether nobody else may be on its nodes.
    """

    name: str
    model: str
    workers: tuple[int, ...]
    worker: Demand = Demand()
    collective: str = "ring"
    servers: int = 0
    server: Demand = Demand(gpu=0.0)
    weight: float = 1.0
    value: float | None = None
    requires: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    most_per_node: int | None = None
    whole_nodes: bool = False

    def __post_init__(self) -> None:
        require_text(self.name, "name")
        require_text(self.model, "model")
        for field in ("workers", "requires", "apart"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        for i, degree in enumerate(self.workers):
            require_number(degree, f"workers[{i}]", positive=True, whole=True)
            if i and degree <= self.workers[i - 1]:
                raise InstanceError(f"workers[{i}]", f"{degree!r} does not ascend")
        if not self.workers:
            raise InstanceError("workers", "names no number of workers")
        for field in ("requires", "apart"):
            for i, name in enumerate(getattr(self, field)):
                require_text(name, f"{field}[{i}]")
        if self.collective not in COLLECTIVES:
            raise InstanceError("collective", unknown(self.collective, COLLECTIVES))
        require_number(self.servers, "servers", whole=True)
        if (self.servers > 0) != (self.collective == "ps"):
            raise InstanceError("servers", f"{self.servers!r} does not go with the collective {self.collective}")
        if self.server.gpu:
            raise InstanceError("server.gpu", f"{self.server.gpu!r} is not 0: parameter servers run on cores")
        require_number(self.weight, "weight")
        require_number(self.value, "value", optional=True)
        require_number(self.most_per_node, "most_per_node", positive=True, whole=True, optional=True)
        if not isinstance(self.whole_nodes, bool):
            raise InstanceError("whole_nodes", f"{self.whole_nodes!r} is not true or false")

    @property
    def gang(self) -> int:
        """How many workers it has at least."""
        return self.workers[0]
