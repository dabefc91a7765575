"""Colours and sizes that both renderers of schedules share."""

from __future__ import annotations

import numpy as np

from .colours import FEW, colours
from .simulation import Run

SHADES = ("#e9edf2", "#b9d3ea", "#6fa8d6", "#2a72b5", "#0b3c6f")
"""Of a node, from idle to full."""
DOWN = "#8c3b3b"
"""Of a node that is down."""
RESTORING = "#444b55"
"""Of a job that is being restored."""
QUEUE = "#8a929c"
"""Of the number of jobs that wait."""
LANE, HEAT_ROW = 0.09, 0.1
"""Inches of a GPU's lane and of a row of a heat map."""


def policy_colours(count: int) -> list[str]:
    """Return a colour for each policy."""
    return colours(count) if count > len(FEW) else list(FEW[:count])


def tall(run: Run) -> tuple[float, float]:
    """Return the inches of the timeline of a run and of its heat map, 0 if it has none."""
    above = 2.6 if run.lanes is None else float(np.clip(run.lanes.node_high[-1] * LANE, 1.6, 9.0))
    below = 0.0 if run.heat is None else float(np.clip(len(run.heat.names) * HEAT_ROW, 0.7, 4.0))
    return above, below


def node_ticks(low: np.ndarray, high: np.ndarray, inches: float) -> tuple[list[float], list[str]]:
    """Return places and names of nodes on an axis that is so long, no more than can be read."""
    every = max(1, int(np.ceil(len(low) * 0.14 / inches)))
    middle = (low + high) / 2
    return middle[::every].tolist(), [str(n) for n in range(0, len(low), every)]
