"""A Gantt chart as PNG, by matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from gangplan.instances.timeline import KINDS

from .chart import CHARACTER, COLOURS, STYLES, Chart
from .gantt import Gantt
from .layout import FloatArray
from .png import DPI, FAINT, GRID, INK, WIDTH

SIDE, BUSY = 2.35, 0.75
"""Inches to the right of the bars, for how busy each device is and how full; for the first alone."""
HEADER, HEADING, CAPTION, BETWEEN, BOTTOM = 1.05, 0.28, 0.24, 0.34, 0.62
"""Inches: text on top, which plan a chart shows, captions above it, between charts, below the last."""
PITCH, MOST_TALL = 0.44, 10.0
"""Inches of a device's row, and of all charts together before rows get flatter."""
SMALLEST, LARGEST = 6.0, 8.5
"""Points of text in bars and beside rows."""
MOST_STEPS = 80
"""Lines from bar to bar of the chain that can be followed; more are drawn paler."""


def draw_gantt(picture: Gantt) -> bytes:
    """Return the PNG's bytes."""
    several = len(picture.charts) > 1
    pitch = min(PITCH, MOST_TALL * len(picture.charts) ** 0.5 / sum(chart.bottom for chart in picture.charts))
    tall = [max(pitch * chart.bottom, 0.5) for chart in picture.charts]
    above = CAPTION + (HEADING if several else 0.0)
    height = HEADER + sum(tall) + above * len(tall) + BETWEEN * (len(tall) - 1) + BOTTOM
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.25 / WIDTH, 1 - 0.30 / height, picture.title, size=15, weight="bold", color=INK, va="center")
    figure.text(0.25 / WIDTH, 1 - 0.60 / height, picture.subtitle, size=11.5, color="#555555", va="center")
    handles, labels = _entries(picture)
    figure.legend(
        handles=handles,
        labels=labels,
        loc="upper left",
        bbox_to_anchor=(0.17 / WIDTH, 1 - 0.76 / height),
        ncol=len(handles),
        frameon=False,
        fontsize=9,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.0)},
        columnspacing=1.6,
        borderaxespad=0.0,
        borderpad=0.1,
    )
    beside = SIDE if any(any(chart.memory) for chart in picture.charts) else BUSY
    longest = max(len(name) for chart in picture.charts for name in chart.names)
    left = max(0.9, 0.3 + longest * CHARACTER * LARGEST / 72)
    top = height - HEADER
    for i, (chart, size) in enumerate(zip(picture.charts, tall, strict=True)):
        top -= above + size
        axes: Any = figure.add_axes((left / WIDTH, top / height, (WIDTH - beside - left) / WIDTH, size / height))
        side: Any = figure.add_axes(
            ((WIDTH - beside + 0.12) / WIDTH, top / height, (SIDE - 0.3) / WIDTH, size / height)
        )
        points = pitch * 72
        _bars(axes, chart, picture.horizon, points)
        _side(side, chart, points)
        if several:
            axes.text(
                -(left - 0.25) / (WIDTH - beside - left),
                1 + (CAPTION + 0.04) / size,
                chart.heading,
                size=10.5,
                color=INK,
                weight="bold",
                transform=axes.transAxes,
            )
        if i == len(tall) - 1:
            axes.set_xlabel(picture.axis, color=INK, size=10)
        else:
            axes.tick_params(labelbottom=True)
        top -= BETWEEN
    content = BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def _bars(axes: Any, chart: Chart, horizon: float, points: float) -> None:
    axes.set_xlim(0, horizon * 1.012)
    axes.set_ylim(chart.bottom + 0.12, -0.12)
    for y, high, link in zip(chart.y, chart.height, chart.link, strict=True):
        axes.axhspan(y - high / 2, y + high / 2, color="#f6f7f9" if not link else "#fbfbfc", lw=0, zorder=0)
    pixel = horizon / (axes.get_window_extent().width or 1.0)
    for style, colour in enumerate(COLOURS):
        mine = np.flatnonzero(chart.style == style)
        if not len(mine):
            continue
        critical = STYLES[style][1]
        # what is narrower than a line on paper would vanish
        shown = np.maximum(chart.width[mine], pixel * (0.8 if critical else 0.4))
        wide = shown > 4 * pixel
        boxes = _boxes(chart.start[mine], shown, chart.at[mine], chart.tall[mine])
        edges = ["white" if w else colour for w in wide]
        axes.add_collection(
            PolyCollection(
                list(boxes),
                facecolors=colour,
                edgecolors=edges,
                linewidths=np.where(wide, 0.5, 0.0),
                zorder=2 + critical,
            )
        )
    _labels(axes, chart, horizon, points)
    line, alpha = (0.9, 0.75) if len(chart.steps) <= MOST_STEPS else (0.6, 0.28)
    axes.add_collection(LineCollection(list(chart.steps), colors=INK, linewidths=line, alpha=alpha, zorder=3.5))
    axes.axvline(chart.end, color=INK, lw=1.3, zorder=4)
    if chart.bound is not None:
        axes.axvline(chart.bound, color=INK, lw=1.3, ls=(0, (5, 3)), zorder=4)
    axes.set_yticks(chart.y, chart.names)
    for text, link, high in zip(axes.get_yticklabels(), chart.link, chart.height, strict=True):
        text.set_fontsize(_size(points * min(high, 1.0) * (1.2 if link else 0.8)))
        text.set_color("#777777" if link else INK)
    axes.tick_params(axis="y", length=0, pad=4)
    axes.tick_params(axis="x", colors="#555555", labelsize=9, length=0)
    axes.grid(axis="x", color=GRID, lw=0.8, zorder=0.5)
    axes.set_axisbelow(True)
    for name in ("top", "right", "left"):
        axes.spines[name].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def _boxes(start: FloatArray, width: FloatArray, at: FloatArray, tall: FloatArray) -> FloatArray:
    """Return the corners of rectangles, float (., 4, 2)."""
    x = np.stack([start, start + width, start + width, start], axis=1)
    y = np.stack([at - tall / 2, at - tall / 2, at + tall / 2, at + tall / 2], axis=1)
    return np.stack([x, y], axis=2)


def _labels(axes: Any, chart: Chart, horizon: float, points: float) -> None:
    """Name the bars that their names fit into."""
    across = axes.get_window_extent().width * 72 / DPI
    for i, critical in enumerate(STYLES[style][1] for style in chart.style.tolist()):
        text = chart.name(i, horizon, across, points, (SMALLEST, LARGEST))
        if text:
            size = chart.size(i, text, horizon, across, points, LARGEST)
            place = {"ha": "center", "va": "center", "zorder": 5, "clip_on": True}
            colour = "white" if critical else INK
            axes.text(chart.start[i] + chart.width[i] / 2, chart.at[i], text, size=size, color=colour, **place)


def _side(axes: Any, chart: Chart, points: float) -> None:
    """Beside each row: how busy, and for devices how full."""
    axes.set_xlim(0, 1)
    axes.set_ylim(chart.bottom + 0.12, -0.12)
    axes.axis("off")
    if any(chart.memory):
        axes.text(0.36, -0.2, "memory", size=8.5, color="#555555", va="bottom")
    axes.text(0.26, -0.2, "busy", size=8.5, color="#555555", va="bottom", ha="right")
    for i, (y, high) in enumerate(zip(chart.y, chart.height, strict=True)):
        size = _size(points * min(high, 1.0) * (1.2 if chart.link[i] else 0.8))
        grey = "#777777" if chart.link[i] else INK
        if np.isfinite(chart.busy[i]):
            axes.text(0.26, y, f"{chart.busy[i]:.0%}", size=size, color=grey, va="center", ha="right")
        if not chart.memory[i]:
            continue
        full, low = chart.filled[i], y - min(high, 1.0) * 0.3
        tall = min(high, 1.0) * 0.6
        if np.isfinite(full):
            axes.add_patch(_rectangle(0.36, low, 0.64, tall, "#e9ecf0"))
            axes.add_patch(_rectangle(0.36, low, 0.64 * min(full, 1.0), tall, "#a3adb8"))
        share = f"  {full:.1%}" if np.isfinite(full) else ""
        axes.text(0.38, y, f"{chart.memory[i]}{share}", size=size, color=INK, va="center")


def _rectangle(x: float, y: float, width: float, height: float, colour: str) -> Any:
    return Rectangle((x, y), width, height, color=colour, lw=0)


def _size(points: float) -> float:
    return min(LARGEST + 0.5, max(4.0, points))


def _entries(picture: Gantt) -> tuple[list[Any], list[str]]:
    """Return the legend, of what there is to be seen: handles and labels."""
    seen = {int(s) for chart in picture.charts for s in np.unique(chart.style)}
    handles: list[Any] = []
    labels: list[str] = []
    for kind in KINDS:
        shades = [Patch(color=COLOURS[s]) for s, style in enumerate(STYLES) if style[0] == kind and s in seen]
        if shades:
            handles.append(tuple(shades))
            labels.append(kind)
    handles.append(Line2D([], [], color=INK, lw=0.9))
    labels.append("dark: the chain that decides the end")
    handles.append(Line2D([], [], color=INK, lw=1.3, marker="|", ms=9, ls=""))
    one = picture.charts[0] if len(picture.charts) == 1 else None
    labels.append(one.end_words if one else "the end")
    if any(chart.bound is not None for chart in picture.charts):
        handles.append(Line2D([], [], color=INK, lw=1.3, ls=(0, (5, 3))))
        labels.append(f"bound {one.bound_words}: no plan is better" if one else "bound: no plan is better")
    return handles, labels
