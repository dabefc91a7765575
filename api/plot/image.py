"""A scene as PNG or SVG, by matplotlib."""

from __future__ import annotations

from functools import singledispatch
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from .colours import FAINT, GREY, GRID, INK
from .scene import DPI, LINE, WIDTH, Axis, Boxes, Dots, FloatArray, Heat, Key, Lines, Mark, Panel, Scene, Words

DASH = (0, (5, 3))


def draw(scene: Scene, ending: str) -> bytes:
    """Return the content of a ``.png`` or ``.svg`` file."""
    content = BytesIO()
    # the same picture makes the same file
    with mpl.rc_context({"svg.hashsalt": "gangplan"}):
        metadata = {"Date": None} if ending == ".svg" else None
        figure_of(scene).savefig(content, format=ending[1:], metadata=metadata)
    return content.getvalue()


def figure_of(scene: Scene) -> Figure:
    """Return the picture as a figure of matplotlib, which no window shows."""
    figure = Figure(figsize=(WIDTH, scene.height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    _say(figure, 0.25, 0.30, scene.height, scene.title, size=15, weight="bold", color=INK)
    _say(figure, 0.25, 0.60, scene.height, scene.subtitle, size=11.5, color=GREY)
    for panel in scene.panels:
        _panel(figure, panel, scene.height)
    return figure


def _say(figure: Any, left: float, top: float, height: float, text: str, **look: Any) -> None:
    figure.text(left / WIDTH, 1 - top / height, text.replace("$", r"\$"), va="center", **look)


def _panel(figure: Any, panel: Panel, height: float) -> None:
    bottom = height - panel.top - panel.height
    place = panel.left / WIDTH, bottom / height, panel.width / WIDTH, panel.height / height
    axes: Any = figure.add_axes(place, facecolor="none")
    axes.set_axisbelow(True)
    axes.tick_params(colors=GREY, labelsize=8.5, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    if panel.bare:
        axes.axis("off")
    for which, axis in (("x", panel.x), ("y", panel.y)):
        _axis(axes, which, axis)
    for order, mark in enumerate(panel.marks, 2):
        _draw(mark, axes, order)
    left = panel.edge
    if panel.heading:
        top = panel.top - LINE * len(panel.legend) - 0.16
        _say(figure, left, top, height, panel.heading, size=10.5, weight="bold", color=INK)
    for i, keys in enumerate(panel.lines):
        look: dict[str, Any] = {"loc": "lower right", "frameon": True, "framealpha": 0.9, "edgecolor": "none"}
        if not panel.inside:
            up = panel.top - LINE * (len(panel.lines) - i) - 0.02
            look = {"loc": "upper left", "frameon": False, "ncol": len(keys), "borderaxespad": 0.0}
            look |= {"bbox_to_anchor": ((left - 0.08) / WIDTH, 1 - up / height), "bbox_transform": figure.transFigure}
        look |= {"fontsize": 9, "handler_map": {tuple: HandlerTuple(ndivide=None, pad=0.0)}}
        words = [key.label.replace("$", r"\$") for key in keys]
        legend = Legend(axes, [_handle(key) for key in keys], words, columnspacing=1.4, borderpad=0.1, **look)
        legend.set_zorder(len(panel.marks) + 3)
        axes.add_artist(legend)


def _axis(axes: Any, which: str, axis: Axis) -> None:
    if axis.log:
        getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(axis.low, axis.high)
    if axis.ticks is not None:
        getattr(axes, f"set_{which}ticks")([at for at, _ in axis.ticks], [text for _, text in axis.ticks])
        axes.minorticks_off()
    elif not axis.log:
        axes.locator_params(axis=which, nbins=3 if axes.get_window_extent().height < DPI and which == "y" else "auto")
    if axis.grid:
        axes.grid(axis=which, color=GRID, lw=0.8, zorder=0.5)
    axes.tick_params(axis=which, **({f"label{'bottom' if which == 'x' else 'left'}": False} if axis.quiet else {}))
    getattr(axes, f"set_{which}label")("" if axis.quiet else axis.label, color=INK, size=9.5)


def _handle(key: Key) -> Any:
    colour = key.colours[0]
    if key.look == "hatch":
        return Patch(facecolor=colour, edgecolor=key.colours[-1], hatch="////", lw=0.6)
    if key.look == "box":
        return tuple(Patch(color=c) for c in key.colours)
    if key.look in {"line", "dash"}:
        return Line2D([], [], color=colour, lw=1.5, ls="-" if key.look == "line" else DASH)
    return Line2D([], [], color=colour, marker=key.look or "None", ms=7, ls="", mec=INK if key.look == "D" else colour)


def corners(at: FloatArray) -> FloatArray:
    """Return the corners of boxes, float (n, 4, 2)."""
    x, y, width, height = at.T
    return np.stack([np.stack([x, x + width, x + width, x], 1), np.stack([y, y, y + height, y + height], 1)], axis=2)


@singledispatch
def _draw(mark: Mark, axes: Any, order: int) -> None:
    raise TypeError(type(mark).__name__)


@_draw.register
def _(mark: Boxes, axes: Any, order: int) -> None:
    if not len(mark.at):
        return
    at = np.array(mark.at, dtype=np.float64)
    pixel = abs(np.subtract(*axes.get_xlim())) / axes.get_window_extent().width
    wide = at[:, 2] > 4 * pixel
    at[:, 2] = np.maximum(at[:, 2], 0.7 * pixel)
    colour = np.broadcast_to(np.array(mark.colour, dtype=object), len(at)).tolist()
    edges = [mark.edge or c if w else c for w, c in zip(wide, colour, strict=True)]
    look: dict[str, Any] = {"edgecolors": edges, "linewidths": np.where(wide, mark.line if mark.edge else 0.0, 0.0)}
    if mark.hatch:  # the colour of the outline is that of the hatching
        look = {"edgecolors": mark.edge, "linewidths": mark.line, "hatch": "////", "hatch_linewidth": 0.6}
    faces = ["none" if c == "" else c for c in colour]
    axes.add_collection(PolyCollection(list(corners(at)), facecolors=faces, zorder=order, **look))


@_draw.register
def _(mark: Lines, axes: Any, order: int) -> None:
    colour = mark.colour if isinstance(mark.colour, str) else list(mark.colour)
    paths = [np.asarray(path) for path in mark.paths]
    look: dict[str, Any] = {"alpha": mark.opacity, "zorder": order}
    if mark.fill:
        axes.add_collection(PolyCollection(paths, facecolors=colour, linewidths=0, **look))
    else:
        style = DASH if mark.dash else "solid"
        axes.add_collection(LineCollection(paths, colors=colour, linewidths=mark.width, linestyles=style, **look))


@_draw.register
def _(mark: Dots, axes: Any, order: int) -> None:
    if mark.shape and len(mark.at):
        colour = mark.colour if isinstance(mark.colour, str) else list(mark.colour)
        look: dict[str, Any] = {"marker": mark.shape, "linewidths": 0.6, "zorder": order}
        look |= {"linewidths": 1.5} if mark.shape in "|x" else {"edgecolors": mark.edge}
        axes.scatter(*mark.at.T, s=np.square(mark.size), c=colour, **look)


@_draw.register
def _(mark: Words, axes: Any, order: int) -> None:
    for i, ((x, y), text) in enumerate(zip(np.asarray(mark.at).tolist(), mark.texts, strict=True)):
        size = mark.size if isinstance(mark.size, int | float) else mark.size[i]
        look: dict[str, Any] = {"path_effects": [withStroke(linewidth=2, foreground=mark.halo[i])]} if mark.halo else {}
        colour = mark.colour if isinstance(mark.colour, str) else mark.colour[i]
        look |= {"ha": mark.align, "va": "center", "size": size, "color": colour, "clip_on": not mark.outside}
        axes.text(x, y, text.replace("$", r"\$"), zorder=order, **look)


@_draw.register
def _(mark: Heat, axes: Any, order: int) -> None:
    shades = LinearSegmentedColormap.from_list("shades", list(mark.shades)).with_extremes(bad=mark.missing)
    x, y, width, height = mark.box
    look = {"aspect": "auto", "interpolation": "nearest", "vmin": 0, "vmax": 1, "zorder": order}
    limits = {"xlim": axes.get_xlim(), "ylim": axes.get_ylim()}
    axes.imshow(np.ma.masked_invalid(mark.values), cmap=shades, extent=(x, x + width, y + height, y), **look)
    axes.set(**limits)
