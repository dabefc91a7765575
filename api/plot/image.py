"""A scene as PNG, by matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from .pixels import PIXELS, each, groups
from .scene import DPI, Boxes, Dots, Lines, Mark, Scene, Words


def draw(scene: Scene) -> bytes:
    """Return the content of a ``.png`` file."""
    content = BytesIO()
    figure_of(scene).savefig(content, format="png")
    return content.getvalue()


def figure_of(scene: Scene) -> Figure:
    """Return the picture as a figure of matplotlib, which no window shows."""
    figure = Figure(figsize=(scene.width, scene.height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_axes((0, 0, 1, 1), xlim=(0, scene.width * PIXELS), ylim=(scene.height * PIXELS, 0))
    axes.axis("off")
    marks = [(mark, group.clip) for group in groups(scene) for mark in group.marks]
    for order, (mark, clip) in enumerate(marks):
        for artist in _artists(mark, axes):
            artist.set(zorder=order, clip_on=clip is not None)
            if clip is not None:
                artist.set_clip_path(Rectangle(clip[:2], *clip[2:], transform=axes.transData))
    return figure


@singledispatch
def _artists(mark: Mark, axes: Any) -> Iterator[Any]:
    """Add a mark in pixels to the axes, and yield what was added."""
    raise TypeError(type(mark).__name__)


@_artists.register
def _(mark: Boxes, axes: Any) -> Iterator[Any]:
    n, (x, y, width, height) = len(mark.at), mark.at.T
    corners = np.stack([x, y, x + width, y, x + width, y + height, x, y + height], axis=1).reshape(-1, 4, 2)
    faces, edges = ([colour or "none" for colour in each(given, n)] for given in (mark.colour, mark.edge))
    look: dict[str, Any] = {
        "facecolors": faces,
        "edgecolors": edges,
        "linewidths": mark.line,
        "antialiaseds": not mark.crisp,
    }
    yield axes.add_collection(PolyCollection([*corners], **look), autolim=False)


@_artists.register
def _(mark: Lines, axes: Any) -> Iterator[Any]:
    paths = [np.asarray(path) for path in mark.paths]
    look: dict[str, Any] = {"colors": each(mark.colour, len(paths)), "linewidths": mark.width, "alpha": mark.opacity}
    style = (0, (5, 3)) if mark.dash else "solid"
    yield axes.add_collection(LineCollection(paths, linestyles=style, **look), autolim=False)


@_artists.register
def _(mark: Dots, axes: Any) -> Iterator[Any]:
    if mark.shape and len(mark.at):
        look = {"linewidths": 1.5} if mark.shape in "|x" else {"linewidths": 0.6, "edgecolors": mark.edge}
        colours, sizes = each(mark.colour, len(mark.at)), np.square(mark.size)
        yield axes.scatter(*mark.at.T, s=sizes, c=colours, marker=mark.shape, **look)


@_artists.register
def _(mark: Words, axes: Any) -> Iterator[Any]:
    n, look = len(mark.texts), {"ha": mark.align, "va": "center", "weight": "bold" if mark.bold else "normal"}
    columns = (mark.at.tolist(), mark.texts, each(mark.size, n), each(mark.colour, n), mark.halo or [""] * n)
    for (x, y), text, size, colour, halo in zip(*columns, strict=True):
        said = axes.text(x, y, text.replace("$", r"\$"), size=size, color=colour, rotation=90 * mark.turned, **look)
        said.set_path_effects([withStroke(linewidth=2, foreground=halo)] if halo else [])
        yield said
