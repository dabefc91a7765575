"""The placement problem: which nodes and GPUs the gangs of many jobs get."""

from ..lazy import exported

__getattr__ = exported(__name__)
