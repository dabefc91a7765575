"""Op graphs and models from other people's files: the format is told by what a file holds, not by its name."""

from .hugging_face import read_transformer
from .networkx_graph import from_networkx, to_networkx
from .read import parse, read

__all__ = ["from_networkx", "parse", "read", "read_transformer", "to_networkx"]
