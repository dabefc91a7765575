"""The placement problem: which nodes and GPUs the gangs of many jobs get."""

from .fleet import Fleet
from .job import Demand, GangJob
from .problem import PlacementPlan, PlacementProblem, Running
from .speed import SpeedModel
from .task import Expected, Task

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
