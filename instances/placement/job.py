"""Gangs and single tasks: what they need, where they may go, and how fast models run."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays import AMOUNT, NONE, POSITIVE, SHARE, Checked, FloatArray, array, check_fields, limited
from ..errors import DEVICES, InstanceError


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
        check_fields(self)
        object.__setattr__(self, "gpu_types", tuple(sorted(set(self.gpu_types))))


@dataclass(frozen=True, slots=True)
class Expected(Checked):
    """A kind of task that is to be expected.

    Attributes:
        task: what it is like.
        share: how often it comes, in proportion to the others.
    """

    task: Task
    share: float = limited(1.0, positive=True)


@dataclass(frozen=True, slots=True, eq=False)
class SpeedModel(Checked):
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

    models: tuple[str, ...] = field(metadata={"unique": True})
    gpu_types: tuple[str, ...] = field(metadata={"unique": True})
    compute: FloatArray = field(metadata=array("gpu_types", "models", holds=POSITIVE, null="infinite"))
    gradient: FloatArray = field(metadata=array("models", holds=AMOUNT))
    overlap: FloatArray = field(metadata=array("models", holds=SHARE))
    host: FloatArray = field(metadata=array("models", "models", holds=AMOUNT))
    gpu: FloatArray = field(metadata=array("models", "models", holds=AMOUNT))
    duty: FloatArray = field(default=NONE, metadata=array("models", holds=SHARE, usual=1.0))

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
        check_fields(self)
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
        tolerates: taints that its nodes may have; it stays off nodes with any other.
        gpu_types: the types of GPU its workers accept, by name; none named means any. Of no meaning without GPUs.
        apart: names of jobs that share no node with it.
        most_per_node: of its workers, `None` if any number may share a node.
        whole_nodes: whether nobody else may be on its nodes.
    """

    name: str
    model: str
    workers: tuple[int, ...] = field(metadata={"positive": True, "ascending": True})
    worker: Demand = Demand()
    collective: str = limited("ring", choices=COLLECTIVES)
    servers: int = 0
    server: Demand = Demand(gpu=0.0)
    weight: float = 1.0
    value: float | None = None
    requires: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    most_per_node: int | None = limited(None, positive=True)
    whole_nodes: bool = False
    tolerates: tuple[str, ...] = limited((), later=True)
    gpu_types: tuple[str, ...] = limited((), later=True)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.workers:
            raise InstanceError("workers", "names no number of workers")
        if (self.servers > 0) != (self.collective == "ps"):
            raise InstanceError("servers", f"{self.servers!r} does not go with the collective {self.collective}")
        if self.server.gpu:
            raise InstanceError("server.gpu", f"{self.server.gpu!r} is not 0: parameter servers run on cores")

    @property
    def gang(self) -> int:
        """How many workers it has at least."""
        return self.workers[0]

    @property
    def seat(self) -> Demand:
        """What a worker occupies with its share of the parameter servers, rounded up, if they are beside workers."""
        if not self.servers:
            return self.worker
        share, w, s = -(-self.servers // self.gang), self.worker, self.server
        return Demand(w.gpu, w.cpu + share * s.cpu, w.memory + share * s.memory, w.nic + share * s.nic)

    @property
    def where(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """What says on which nodes it may be: labels, taints and GPU types."""
        return self.requires, self.tolerates, self.gpu_types
