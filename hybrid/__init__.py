"""Everything together: `solve`, which picks methods under one deadline, and guards against their faults."""

from .guard import MethodFailed
from .server import close_workers
from .solve import solve, warm_up
from .table import Entry, methods, register, unregister

__all__ = ["Entry", "MethodFailed", "close_workers", "methods", "register", "solve", "unregister", "warm_up"]
