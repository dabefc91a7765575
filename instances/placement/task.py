"""Tasks that arrive by themselves: what they occupy, on which types of GPU they may run, how often they come."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import require_number, require_text
from ..errors import InstanceError
from .job import Demand


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
