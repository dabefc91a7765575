"""The picture as PNG, by matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .colours import FEW, paler
from .picture import Bars, Picture
from .shapes import Drawing

WIDTH, DPI = 13.0, 110
LEFT, RIGHT = 0.8, WIDTH - 0.2
HEADER, BETWEEN, BARS, BOTTOM = 0.85, 1.0, 2.4, 0.78
"""Inches: text above the graph, between graph and bars, the bars, below them."""
LEGEND_COLUMNS = 6
DEPTH = "depth in the graph: ops on the longest path before"
INK, FAINT, GRID = "#222222", "#b8bec6", "#e3e6ea"
MOST_NAMES, MOST_VALUES = 32, 12
"""Bars that can be named, and given their value, without overlap."""
MOST_ANCHORS = 40
"""Devices that can be numbered in a graph of blocks."""


def draw(picture: Picture) -> bytes:
    """Return the PNG's bytes."""
    low, high = extent(picture.drawing)
    tall = min(5.0, max(1.8, 0.34 * (high - low))) if picture.drawing.dots else 4.2
    legend = 0.24 * -(-len(_entries(picture)) // LEGEND_COLUMNS)
    height = HEADER + legend + tall + BETWEEN + BARS + BOTTOM
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)

    def axes(left: float, right: float, bottom: float, size: float) -> Any:
        return figure.add_axes((left / WIDTH, bottom / height, (right - left) / WIDTH, size / height))

    figure.text(0.25 / WIDTH, 1 - 0.30 / height, picture.title, size=15, weight="bold", color=INK, va="center")
    figure.text(0.25 / WIDTH, 1 - 0.60 / height, picture.subtitle, size=11.5, color="#555555", va="center")
    _graph(axes(LEFT, RIGHT, BOTTOM + BARS + BETWEEN, tall), picture)
    if picture.memory is None:
        _bars(axes(LEFT, RIGHT, BOTTOM, BARS), picture, picture.load, "load")
    else:
        middle = (LEFT + RIGHT) / 2
        _bars(axes(LEFT, middle - 0.2, BOTTOM, BARS), picture, picture.load, "load")
        _bars(axes(middle + 0.6, RIGHT, BOTTOM, BARS), picture, picture.memory, "memory")
    content = BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def extent(drawing: Drawing) -> tuple[float, float]:
    """Return the lowest and the highest point of the drawing."""
    points = [drawing.y - drawing.height / 2, drawing.y + drawing.height / 2]
    points += [lines[:, :, 1].ravel() for lines in (drawing.inner, drawing.cut) if len(lines)]
    return float(min(p.min() for p in points)), float(max(p.max() for p in points))


def _graph(axes: Any, picture: Picture) -> None:
    drawing = picture.drawing
    low, high = extent(drawing)
    margin = 0.04 * (high - low)
    left, right = float(drawing.x.min()), float(drawing.x.max())
    pitch = _pitch(drawing)
    axes.set_xlim(left - pitch * 0.8, right + pitch * 0.8)
    axes.set_ylim(low - margin, high + margin)
    colour = [picture.colours[d] for d in drawing.device.tolist()]
    axes.add_collection(LineCollection(list(drawing.inner), colors=FAINT, linewidths=0.9, zorder=1))
    if drawing.dots:
        size = _dot(axes, drawing)
        axes.scatter(drawing.x, drawing.y, s=size**2, c=colour, edgecolors="white", linewidths=0.5, zorder=3)
        if drawing.labels and size >= 11:
            for x, y, label in zip(drawing.x, drawing.y, drawing.labels, strict=True):
                axes.text(x, y, label, size=min(8.0, size * 0.48), color="white", ha="center", va="center", zorder=4)
    else:
        bottom = drawing.y - drawing.height / 2
        axes.bar(drawing.x, drawing.height, width=pitch, bottom=bottom, color=colour, linewidth=0, zorder=2)
    widths = np.minimum(1.6 + 0.35 * np.log2(drawing.weight), 3.0) if len(drawing.weight) else 1.0
    axes.add_collection(LineCollection(list(drawing.cut), colors=INK, linewidths=widths, zorder=2.5, alpha=0.85))
    _anchors(axes, picture)
    _tidy(axes)
    axes.set_xlabel(DEPTH if drawing.dots else f"{DEPTH}; height: ops at that depth", color=INK, size=10)
    axes.set_yticks([])
    if drawing.halves:
        for half, word in ((drawing.y > 0, "forward"), (drawing.y < 0, "backward")):
            y = float(drawing.y[half].mean()) if half.any() else 0.0
            place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center", "rotation": 90}
            axes.text(-0.008, y, word, size=10, color=INK, **place)
    _legend(axes, _entries(picture))


def _anchors(axes: Any, picture: Picture) -> None:
    drawing = picture.drawing
    if len(picture.devices) > MOST_ANCHORS:
        return
    box = {"boxstyle": "circle,pad=0.22", "fc": "white", "ec": INK, "lw": 0.9}
    for (x, y), device in zip(drawing.anchors.tolist(), drawing.anchor_device.tolist(), strict=True):
        number = picture.devices[device].split()[0]
        axes.text(x, y, number, size=7.5, color=INK, ha="center", va="center", bbox=box, zorder=4)


def _entries(picture: Picture) -> list[Any]:
    """Return the entries of the graph's legend; many devices are told by the bars, which have the same colours."""
    handles: list[Any] = []
    if len(picture.devices) <= len(FEW):
        handles += [Patch(color=c, label=f"device {d}") for c, d in zip(picture.colours, picture.devices, strict=True)]
    several = "" if picture.drawing.dots else ", the thicker the more"
    handles.append(Line2D([], [], color=INK, lw=1.4, label=f"edges between devices{several}"))
    if len(picture.drawing.inner):
        handles.append(Line2D([], [], color=FAINT, lw=1.4, label="edges inside a device"))
    return handles


def _legend(axes: Any, handles: list[Any]) -> None:
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncol=LEGEND_COLUMNS,
        frameon=False,
        fontsize=9,
        borderaxespad=0.2,
        borderpad=0.1,
    )


def _bars(axes: Any, picture: Picture, bars: Bars, kind: str) -> None:
    place = np.arange(len(bars.solid))
    solid, pale = list(picture.colours), [paler(c) for c in picture.colours]
    axes.bar(place, bars.solid, width=0.76, color=solid, zorder=2)
    handles: list[Any] = []
    total = bars.solid + bars.pale
    highest = float(total.max())
    if kind == "load":
        axes.bar(
            place, bars.pale, width=0.76, bottom=bars.solid, color=pale, hatch="////", edgecolor="white", lw=0, zorder=2
        )
        handles += [Patch(color="#777777", label="compute")]
        handles += [Patch(facecolor=paler("#777777"), hatch="////", edgecolor="white", lw=0, label="transfer")]
        if np.isfinite(bars.limit[0]):
            axes.axhline(bars.limit[0], color=INK, lw=1.2, ls=(0, (5, 3)), zorder=3)
            label = f"bound {bars.least}: no plan is better"
            handles.append(Line2D([], [], color=INK, lw=1.2, ls=(0, (5, 3)), label=label))
            highest = max(highest, bars.limit[0])
    else:
        finite = np.isfinite(bars.limit)
        if bars.off_scale:
            label = f"capacity {bars.least}, off the scale"
            handles.append(Line2D([], [], lw=0, label=label))
        else:
            highest = max(highest, float(bars.limit[finite].max()))
            axes.hlines(bars.limit[finite], place[finite] - 0.46, place[finite] + 0.46, color=INK, lw=1.4, zorder=3)
            handles.append(Line2D([], [], color=INK, lw=1.4, label="capacity"))
    axes.set_ylim(0, highest * 1.06 or 1.0)
    middle, reach = (len(place) - 1) / 2, max(len(place), 5) / 2 + 0.2
    axes.set_xlim(middle - reach, middle + reach)
    names = [name.split()[0] for name in picture.devices]
    if len(place) <= MOST_VALUES:
        names = [f"{name}\n{value:.4g}" for name, value in zip(names, total, strict=True)]
    step = -(-len(place) // MOST_NAMES)
    axes.set_xticks(place[::step], names[::step])
    idle = f"; {picture.idle} more idle" if picture.idle else ""
    axes.set_xlabel(f"device, in the order of the stages{idle}", color=INK, size=10)
    axes.set_ylabel(bars.label, color=INK, size=10)
    _tidy(axes)
    axes.grid(axis="y", color=GRID, lw=0.8, zorder=0)
    _legend(axes, handles)


def _tidy(axes: Any) -> None:
    axes.set_axisbelow(True)
    axes.tick_params(colors="#555555", labelsize=9, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def _pitch(drawing: Drawing) -> float:
    """Return the distance between two columns."""
    x = np.unique(drawing.x)
    return float(np.diff(x).min()) if len(x) > 1 else 1.0


def _dot(axes: Any, drawing: Drawing) -> float:
    """Return the diameter of a dot, points: as large as its column and its row have room for."""
    box: Any = axes.get_window_extent()
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    room: float = min(box.width / (right - left) * 1.0, box.height / (high - low)) * 72 / DPI
    return min(18.0, max(3.0, 0.66 * room))
