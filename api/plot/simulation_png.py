"""Schedules as PNG, by matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .layout import FloatArray
from .png import DPI, FAINT, GRID, INK, WIDTH
from .simulation import Run, SimulationPicture
from .simulation_boxes import Boxes, boxes, names
from .simulation_colours import DOWN, QUEUE, RESTORING, SHADES, node_ticks, policy_colours, tall
from .simulation_time import ticks

LEFT, RIGHT = 0.95, 12.1
"""Inches: where axes begin and end."""
HEADER, CURVES, BELOW, LEGEND = 0.85, 2.5, 0.6, 0.36
"""Inches: text on top, the curves, below an axis with words, the legend of classes."""
HEADING, WAITING, BETWEEN = 0.36, 0.75, 0.16
"""Inches: which policy, the panel of the queue, between panels of one policy."""


def draw_simulation(picture: SimulationPicture) -> bytes:
    """Return the PNG's bytes."""
    sizes = [tall(run) for run in picture.runs]
    each = [HEADING + a + BETWEEN + WAITING + (BETWEEN + b if b else 0) + BELOW for a, b in sizes]
    height = HEADER + CURVES + BELOW + LEGEND + sum(each)
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)

    def axes(top: float, size: float) -> Any:
        bottom = (height - top - size) / height
        found = figure.add_axes((LEFT / WIDTH, bottom, (RIGHT - LEFT) / WIDTH, size / height))
        _tidy(found)
        return found

    def say(top: float, text: str, size: float, colour: str = INK, **more: Any) -> None:
        figure.text(0.25 / WIDTH, 1 - top / height, text, size=size, color=colour, va="center", **more)

    say(0.30, picture.title, 15, weight="bold")
    say(0.60, picture.subtitle, 11.5, "#555555")
    _curves(axes(HEADER, CURVES), picture)
    top = HEADER + CURVES + BELOW
    _legend(figure, picture, 1 - top / height)
    top += LEGEND
    for run, (above, below) in zip(picture.runs, sizes, strict=True):
        say(top + 0.13, run.heading, 10.5, weight="bold")
        top += HEADING
        _timeline(axes(top, above), picture, run, above)
        top += above + BETWEEN
        queue = axes(top, WAITING)
        _waiting(queue, picture, run)
        top += WAITING
        last = queue
        if run.heat is not None:
            top += BETWEEN
            last = axes(top, below)
            _heat(figure, last, picture, run, (top, below, height))
            queue.tick_params(labelbottom=False)
            top += below
        last.set_xlabel(picture.axis, color=INK, size=9.5)
        top += BELOW
    content = BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def _tidy(axes: Any) -> None:
    axes.tick_params(colors="#555555", labelsize=8.5, length=0)
    axes.set_axisbelow(True)
    for name in ("top", "right", "left"):
        axes.spines[name].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def _curves(axes: Any, picture: SimulationPicture) -> None:
    """Draw the share of the jobs that are done within each time, of every policy."""
    low, high = picture.reach
    for run, colour in zip(picture.runs, policy_colours(len(picture.runs)), strict=True):
        axes.step(*picture.line(run), where="post", color=colour, lw=1.7, label=run.name)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.01)
    axes.set_xticks(*ticks(low, high))
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(color=GRID, lw=0.8)
    axes.set_xlabel("job completion time (JCT): from submission to finish", color=INK, size=9.5)
    axes.set_ylabel("jobs done within it", color=INK, size=9.5)
    axes.legend(loc="lower right", fontsize=9, frameon=True, framealpha=0.9, edgecolor="none")


def _legend(figure: Any, picture: SimulationPicture, y: float) -> None:
    shown = zip(picture.classes.names, picture.classes.colours, strict=True)
    handles = [Patch(color=colour, label=name) for name, colour in shown]
    if any(run.lanes is not None and run.lanes.restoring.any() for run in picture.runs):
        handles.append(Patch(color=RESTORING, label="restored"))
    if any(len(run.outcome.down_node) for run in picture.runs):
        handles.append(Patch(color=DOWN, label="node down"))
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.17 / WIDTH, y),
        ncol=len(handles),
        frameon=False,
        fontsize=9,
        columnspacing=1.4,
        handlelength=1.2,
        borderpad=0.1,
    )


def _timeline(axes: Any, picture: SimulationPicture, run: Run, inches: float) -> None:
    axes.set_xlim(0, picture.edges[-1])
    axes.tick_params(labelbottom=False)
    if run.lanes is None:
        middle = np.repeat(picture.edges, 2)[1:-1]
        axes.stackplot(middle, np.repeat(run.stack, 2, axis=1), colors=picture.classes.colours, lw=0)
        axes.plot(middle, np.repeat(run.there, 2), color=INK, lw=0.9, ls=(0, (4, 3)))
        axes.set_ylim(0, run.there.max() * 1.04)
        axes.set_ylabel("GPUs in use", color=INK, size=9.5)
        axes.grid(axis="y", color=GRID, lw=0.8)
        return
    low, high = run.lanes.node_low, run.lanes.node_high
    axes.set_ylim(high[-1], 0)
    for a, b in zip(low, high, strict=True):
        axes.axhspan(a, b, color="#f1f3f6", lw=0, zorder=0)
    lane = inches / high[-1] * 72
    pixel = picture.edges[-1] / ((RIGHT - LEFT) * DPI)
    for part in boxes(picture, run):
        # what is narrower than a pixel would vanish without a line of its colour
        edges = ["white" if w > 4 * pixel and lane > 3 else part.colour for w in part.width.tolist()]
        corners = list(_corners(part))
        axes.add_collection(PolyCollection(corners, facecolors=part.colour, edgecolors=edges, linewidths=0.4))
    for text in names(picture, run, (RIGHT - LEFT) * 72, lane):
        axes.text(text.x, text.y, text.words, size=text.size, color="#222222", ha="center", va="center", clip_on=True)
    counted = run.heat is None
    axes.set_yticks(*(([], []) if counted else node_ticks(low, high, inches)))
    axes.set_ylabel("GPUs" if counted else "node", color=INK, size=9.5)


def _corners(part: Boxes) -> FloatArray:
    """Return the corners of boxes, float (b, 4, 2)."""
    right = part.left + part.width
    x = np.stack([part.left, right, right, part.left], axis=1)
    return np.stack([x, np.stack([part.low, part.low, part.high, part.high], axis=1)], axis=2)


def _waiting(axes: Any, picture: SimulationPicture, run: Run) -> None:
    axes.set_xlim(0, picture.edges[-1])
    axes.fill_between(np.repeat(picture.edges, 2)[1:-1], np.repeat(run.waiting, 2), color=QUEUE, lw=0)
    axes.set_ylim(0, max(1.0, run.waiting.max() * 1.05))
    axes.locator_params(axis="y", nbins=3, integer=True)
    axes.set_ylabel("waiting", color=INK, size=9.5)
    axes.grid(axis="y", color=GRID, lw=0.8)


def _heat(figure: Any, axes: Any, picture: SimulationPicture, run: Run, place: tuple[float, float, float]) -> None:
    assert run.heat is not None
    top, size, height = place
    shades = LinearSegmentedColormap.from_list("full", SHADES).with_extremes(bad=DOWN)
    rows = len(run.heat.names)
    drawn = axes.imshow(
        np.ma.masked_invalid(run.heat.share),
        aspect="auto",
        interpolation="nearest",
        cmap=shades,
        vmin=0,
        vmax=1,
        extent=(0, picture.edges[-1], rows, 0),
    )
    places, _ = node_ticks(np.arange(rows), np.arange(rows) + 1, size)
    axes.set_yticks(places, [run.heat.names[int(at)] for at in places])
    axes.set_ylabel("node" if "-" not in run.heat.names[0] else "nodes", color=INK, size=9.5)
    bar = figure.add_axes(((RIGHT + 0.12) / WIDTH, (height - top - size) / height, 0.1 / WIDTH, size / height))
    scale = figure.colorbar(drawn, cax=bar, ticks=[0, 0.5, 1], format=lambda value, _: f"{value:.0%}")
    scale.outline.set_visible(False)
    bar.tick_params(colors="#555555", labelsize=8, length=0)
    bar.set_title("held", size=8, color="#555555", loc="left", pad=7)
