"""Boxes of jobs by colour, and the names that fit into them: what both renderers of schedules draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .layout import FloatArray, IntArray
from .simulation import Run, SimulationPicture
from .simulation_colours import DOWN, RESTORING

CHARACTER, SMALLEST, LARGEST = 0.62, 5.5, 8.0
"""Width of a letter in its size, and sizes in points."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of one colour, b of them, on the axes.

    Attributes:
        name, colour: of what they show.
        left, width: on the axis of time, float (b,).
        low, high: in lanes, float (b,).
        at: which of the run's boxes they are, int (b,); empty for nodes that are down.
    """

    name: str
    colour: str
    left: FloatArray
    width: FloatArray
    low: FloatArray
    high: FloatArray
    at: IntArray


@dataclass(frozen=True, slots=True)
class Name:
    """A job's name in its box: middle, words, size of the letters in points."""

    x: float
    y: float
    words: str
    size: float


def boxes(picture: SimulationPicture, run: Run) -> Iterator[Boxes]:
    """Yield the boxes of a run colour by colour: jobs by class, those that are restored, nodes that are down."""
    found = run.lanes
    if found is None:
        return
    start, end = picture.time(found.start), picture.time(found.end)
    kind = run.kind[found.job]
    groups = [
        (n, c, kind == i) for i, (n, c) in enumerate(zip(picture.classes.names, picture.classes.colours, strict=True))
    ]
    for name, colour, mine in [
        *((n, c, which & ~found.restoring) for n, c, which in groups),
        ("restored", RESTORING, found.restoring),
    ]:
        at = np.flatnonzero(mine)
        if len(at):
            yield Boxes(name, colour, start[at], end[at] - start[at], found.low[at], found.high[at], at)
    o = run.outcome
    if len(o.down_node):
        left = np.clip(picture.time(o.down_start), 0, picture.edges[-1])
        right = np.clip(picture.time(o.down_end), 0, picture.edges[-1])
        low, high = found.node_low[o.down_node], found.node_high[o.down_node]
        yield Boxes("node down", DOWN, left, right - left, low, high, np.zeros(0, dtype=np.int64))


def names(picture: SimulationPicture, run: Run, across: float, lane: float) -> Iterator[Name]:
    """Yield the names of jobs that can be read in their boxes.

    Args:
        picture, run: a run of the picture.
        across: points of the axis of time.
        lane: points of a lane.
    """
    found = run.lanes
    if found is None:
        return
    start, end = picture.time(found.start), picture.time(found.end)
    for i, job in enumerate(found.job.tolist()):
        text = run.outcome.workload.names[job]
        wide = (end[i] - start[i]) / picture.edges[-1] * across
        size = min(LARGEST, (found.high[i] - found.low[i]) * lane * 0.8, 0.9 * wide / (CHARACTER * len(text)))
        if size >= SMALLEST and not found.restoring[i]:
            yield Name(float(start[i] + end[i]) / 2, float(found.low[i] + found.high[i]) / 2, text, float(size))
