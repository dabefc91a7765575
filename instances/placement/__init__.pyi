"""The placement problem: which nodes and GPUs the gangs of many jobs get."""

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
