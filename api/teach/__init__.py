"""Teach with the library: its models, its methods step by step, tiny instances, classic words, homework and grades."""

from gangplan.instances.lazy import exported

__getattr__ = exported(__name__)
