"""The links of a cluster as lines in its picture."""

from __future__ import annotations

import numpy as np

from gangplan.instances.placement import PlacementProblem

from . import cluster_words as words
from .cluster_layout import Layout
from .cluster_links import Flows
from .layout import FloatArray, IntArray


def links(
    problem: PlacementProblem, flow: Flows, level: int, layout: Layout, names: list[tuple[str, ...]]
) -> tuple[FloatArray, FloatArray, IntArray, tuple[str, ...]]:
    """Return the lines of all links, how busy they are, how many gangs cross them, and what to say.

    Where units stand for groups of nodes, a line along the left side of each follows, for the busiest link inside it.
    """
    levels = range(level, len(flow.bandwidth))
    lines, busy = list(layout.links), [flow.busy(i) for i in levels]
    gangs = [flow.gangs(i) for i in levels]
    texts = [words.links(problem, flow, i, names[i - level]) for i in levels]
    if level:
        top, below = layout.units[:, :2], layout.units[:, :2] + layout.units[:, 3:] * [0, 1]
        lines.append(np.stack([top, below], axis=1))
        inside, text = flow.busy(0), words.links(problem, flow, 0, problem.fleet.names)
        order = np.lexsort((-inside, flow.members[level]))
        most = order[np.unique(flow.members[level][order], return_index=True)[1]]
        busy.append(inside[most])
        gangs.append(flow.gangs(0)[most])
        texts.append(tuple(f"busiest node inside {u}<br>{text[i]}" for u, i in zip(names[0], most, strict=True)))
    return np.concatenate(lines), np.concatenate(busy), np.concatenate(gangs), tuple(t for part in texts for t in part)
