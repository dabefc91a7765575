"""The placement problem: which nodes and GPUs the gangs of many jobs get."""

from typing import TYPE_CHECKING

from ..lazy import exported

if TYPE_CHECKING:
    from .fleet import Fleet
    from .job import Demand, Expected, GangJob, SpeedModel, Task
    from .problem import PlacementPlan, PlacementProblem, Running
else:
    __getattr__ = exported(
        __name__,
        {
            ".fleet": "Fleet",
            ".job": "Demand Expected GangJob SpeedModel Task",
            ".problem": "PlacementPlan PlacementProblem Running",
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
