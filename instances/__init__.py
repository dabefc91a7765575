"""What the problem is: clusters, op graphs, problems, plans, and the verifier."""

from .lazy import exported
from .verify import verify as verify  # at once: its package has the same name

__getattr__ = exported(__name__)
