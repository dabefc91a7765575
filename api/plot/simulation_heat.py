"""How full the nodes are over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.simulator.metrics import means_of_groups
from gangplan.simulator.trace import Outcome

from .layout import FloatArray, IntArray

MOST_NODES = 80
"""Rows of a heat map; more nodes are put together."""


@dataclass(frozen=True, slots=True)
class Heat:
    """How full nodes are, R rows of one or several nodes each.

    Attributes:
        names: of the rows.
        share: of the GPUs that are not down, held in each span of time; NaN while all are down, float (R, SPANS).
    """

    names: tuple[str, ...]
    share: FloatArray


def heat(outcome: Outcome, amount: FloatArray, edges: FloatArray) -> Heat:
    """Return how full nodes are, given the GPUs that each row holds, float (r,), and the edges of spans of time."""
    m = len(outcome.room)
    each = -(-m // MOST_NODES)
    group = np.arange(m) // each
    count = int(group[-1]) + 1
    held = means_of_groups(group[outcome.row_node], count, amount, outcome.row_start, outcome.row_end, edges)
    total = np.bincount(group, weights=outcome.room, minlength=count)
    there = total[:, None] - down(outcome, group, edges)
    alive = there > 1e-6 * total[:, None]
    share = np.divide(held, there, out=np.full(held.shape, np.nan), where=alive)
    names = [str(g * each) if each == 1 else f"{g * each}-{min(m, (g + 1) * each) - 1}" for g in range(count)]
    return Heat(tuple(names), np.clip(share, 0.0, 1.0).round(4))


def down(outcome: Outcome, group: IntArray, edges: FloatArray) -> FloatArray:
    """Return how many GPUs of each group are down, float (groups, spans), given the group of each node."""
    node = outcome.down_node
    time = (outcome.down_start, outcome.down_end, edges)
    return means_of_groups(group[node], int(group.max()) + 1, outcome.room[node], *time)
