"""Op graphs from other people's files: the format is told by what a file holds, not by its name."""

from .networkx_graph import from_networkx, to_networkx
from .read import parse, read

__all__ = ["from_networkx", "parse", "read", "to_networkx"]
