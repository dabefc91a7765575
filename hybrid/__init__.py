"""Everything together: `solve`, which picks methods under one deadline, and guards against their faults."""

from .processes import MethodFailed
from .solve import solve, warm_up
from .table import Entry, methods, register, unregister
from .workers import close_workers

__all__ = ["Entry", "MethodFailed", "close_workers", "methods", "register", "solve", "unregister", "warm_up"]
