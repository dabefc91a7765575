"""The placement problem: which nodes and GPUs the gangs of many jobs get."""

from .fleet import Fleet
from .job import Demand, GangJob

__all__ = ["Demand", "Fleet", "GangJob"]
