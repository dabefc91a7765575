"""Everything together: `solve`, which picks methods under one deadline, and guards against their faults."""

from .compiling import warm_up
from .processes import MethodFailed
from .solve import solve
from .table import Entry, methods, register, unregister
from .workers import close_workers

__all__ = ["Entry", "MethodFailed", "close_workers", "methods", "register", "solve", "unregister", "warm_up"]
