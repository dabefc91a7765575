"""Minimum cuts by OR-Tools' flows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import max_flow


def minimum_cut(arcs: Any, source: int, sink: int, *, sides: bool = True) -> tuple[int, NDArray[np.int64]] | None:
    """Return the capacity of a minimum cut and, with `sides`, the nodes on the source's side; `None` if there is none.

    `arcs`: tails, heads and capacities, whole numbers, (arcs,) each.
    """
    flow = max_flow.SimpleMaxFlow()
    tail, head, capacity = arcs
    flow.add_arcs_with_capacity(np.asarray(tail, np.int32), np.asarray(head, np.int32), np.asarray(capacity, np.int64))
    if flow.solve(source, sink) != flow.OPTIMAL:
        return None
    return flow.optimal_flow(), np.array(flow.get_source_side_min_cut() if sides else (), dtype=np.int64)
