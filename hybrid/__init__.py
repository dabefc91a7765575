"""Everything together: `solve`, which picks methods under one deadline."""

from .solve import solve

__all__ = ["solve"]
