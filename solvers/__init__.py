"""How problems are solved: heuristics, bounds, exact methods; a folder a problem, a file a method."""

from .result import Incumbent, Result, Status, Turn
from .run import Run

__all__ = ["Incumbent", "Result", "Run", "Status", "Turn"]
