"""The placement problem: which nodes and GPUs the gangs of many jobs get."""

from typing import TYPE_CHECKING

from ..lazy import exported

if TYPE_CHECKING:
    from .fleet import Fleet as Fleet
    from .job import Demand as Demand
    from .job import Expected as Expected
    from .job import GangJob as GangJob
    from .job import SpeedModel as SpeedModel
    from .job import Task as Task
    from .problem import PlacementPlan as PlacementPlan
    from .problem import PlacementProblem as PlacementProblem
    from .problem import Running as Running
    from .proximity import Proximity as Proximity
else:
    __getattr__ = exported(__name__, __file__)
