"""Everything together: `solve`, which picks methods under one deadline, and guards against their faults."""

from .guard import MethodFailed
from .loading import warm_up
from .registry import Entry, register, unregister
from .solve import methods, solve

__all__ = ["Entry", "MethodFailed", "methods", "register", "solve", "unregister", "warm_up"]
