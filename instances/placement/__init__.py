"""The placement problem: which nodes and GPUs the gangs of many jobs get."""

from typing import TYPE_CHECKING

from ..lazy import exported

if TYPE_CHECKING:
    from .fleet import Fleet
    from .job import Demand, GangJob
    from .problem import PlacementPlan, PlacementProblem, Running
    from .speed import SpeedModel
    from .task import Expected, Task
else:
    __getattr__ = exported(
        __name__,
        {
            ".fleet": "Fleet",
            ".job": "Demand GangJob",
            ".problem": "PlacementPlan PlacementProblem Running",
            ".speed": "SpeedModel",
            ".task": "Expected Task",
        },
    )

__all__ = [
    "Demand",
    "Expected",
    "Fleet",
    "GangJob",
    "PlacementPlan",
    "PlacementProblem",
    "Running",
    "SpeedModel",
    "Task",
]
