"""How problems are solved: heuristics, bounds, exact methods; a folder a problem, a file a method."""

from .run import Incumbent, Result, Run, Status, Turn

__all__ = ["Incumbent", "Result", "Run", "Status", "Turn"]
