"""The order in which a PipeDream profile lists its ops, which published figures of PAC-ML depend on."""

from __future__ import annotations

import numpy as np

from ..arrays import IntArray
from ..errors import InstanceError
from ..graph import OpGraph


def listed_order(text: str, graph: OpGraph) -> IntArray:
    """Return the ops of `graph` that `text` lists, in its order, int32.

    The reader sorts ops by number, while the files list them in the order of a hash table.

    Args:
        text: the content of the profile.
        graph: what was read from it. Ops that were dropped are skipped.

    Raises:
        InstanceError: if no line of the text lists an op of the graph.
    """
    position = {name: i for i, name in enumerate(graph.names)}
    listed = [line.split(" -- ")[0].strip() for line in text.splitlines() if line.strip() and line[0] != "\t"]
    found = list(dict.fromkeys(position[name] for name in listed if name in position))
    if not found:
        raise InstanceError("text", "lists no op of the graph")
    return np.array(found, dtype=np.int32)
