"""A gang job: what its tasks need, and where they may go."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import require_number, require_text
from ..errors import DEVICES, InstanceError, unknown

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
