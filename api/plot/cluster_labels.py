"""The names in the picture of a cluster, where they fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .cluster import ClusterPicture
from .cluster_colours import ink_on
from .cluster_layout import HEAD
from .cluster_tiles import BAND_NAME, NAME, PAD

GREY, INK = "#555555", "#222222"


@dataclass(frozen=True, slots=True)
class Label:
    """A name.

    Attributes:
        x, y: its middle if `paper` is given, else its left end.
        text, colour: what it says.
        size: of its letters, points.
        paper: the colour it is written on, of a job; empty for names of nodes and groups.
    """

    x: float
    y: float
    text: str
    colour: str
    size: float
    paper: str = ""


def labels(picture: ClusterPicture) -> Iterator[Label]:
    """Yield the names of jobs, units and groups that can be read in their boxes."""
    for (x, y, width, height), job in zip(picture.runs.tolist(), picture.run_job.tolist(), strict=True):
        name, paper = picture.jobs[job], picture.colours[job]
        if size := picture.size(name, width, height * 0.75):
            yield Label(x + width / 2, y + height / 2, name, ink_on(paper), size, paper)
    if picture.named:
        strip, above = (NAME, PAD) if picture.single else (BAND_NAME, 0.0)
        for (x, y, width, _), name in zip(picture.layout.units.tolist(), picture.units, strict=True):
            if size := picture.size(name, width - 3 * PAD, strip):
                yield Label(x + 2 * PAD, y + above + strip / 2, name, GREY, size)
    groups = picture.layout.groups
    for boxes, names in zip(groups[:-1], picture.groups[:-1], strict=True):
        for (x, y, width, _), name in zip(boxes.tolist(), names, strict=True):
            if size := picture.size(name, width - 1.6, HEAD - 0.5):
                yield Label(x + 1.1, y + (HEAD - 0.5) / 2, name, INK, size)
