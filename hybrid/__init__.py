"""Everything together: `solve`, which picks methods under one deadline."""

from .solve import methods, solve

__all__ = ["methods", "solve"]
