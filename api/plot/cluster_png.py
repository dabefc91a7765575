"""The cluster under a placement as PNG, by matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from .cluster import ClusterPicture
from .cluster_colours import DOWN_PAPER, LOADS, PALE, UNUSED, load_colours
from .cluster_labels import labels
from .cluster_tiles import DOWN, IDLE
from .layout import FloatArray
from .png import DPI, INK, WIDTH

HEADER, EDGE, ABOVE, LINE, BOTTOM = 1.2, 0.2, 0.28, 0.2, 0.15
"""Inches: text on top, left of the map, above the list of jobs, of a line of it, below it."""
COLUMNS, LISTED = 6, 66
"""Of the list of jobs, and the most jobs in it."""
BOX, FRAME, BUS = "#f7f8fa", "#9aa3ad", "#6b7480"
"""Under the GPUs of a node, round groups, and of switches."""
DETAIL = 5.0
"""Pixels of a GPU from which white lines part it from the next."""


def draw_cluster(picture: ClusterPicture) -> bytes:
    """Return the PNG's bytes."""
    layout, scale = picture.layout, picture.scale
    listed = picture.slowest(LISTED)
    rows = -(-len(listed) // COLUMNS)
    tall = layout.height * scale
    height = HEADER + tall + ABOVE + LINE * (rows + 1) + BOTTOM
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.25 / WIDTH, 1 - 0.30 / height, picture.title, size=15, weight="bold", color=INK, va="center")
    figure.text(0.25 / WIDTH, 1 - 0.60 / height, picture.subtitle, size=11.5, color="#555555", va="center")
    _legend(figure, picture, height)
    below = ABOVE + LINE * (rows + 1) + BOTTOM
    axes: Any = figure.add_axes((EDGE / WIDTH, below / height, layout.width * scale / WIDTH, tall / height))
    axes.set_xlim(-0.05, layout.width + 0.05)
    axes.set_ylim(layout.height + 0.05, -0.05)
    axes.axis("off")
    _boxes(axes, picture)
    _tiles(axes, picture)
    _links(axes, picture)
    _texts(axes, picture)
    listing: Any = figure.add_axes((0, 0, 1, below / height))
    listing.set_xlim(0, WIDTH)
    listing.set_ylim(below, 0)
    listing.axis("off")
    _jobs(listing, picture, listed, rows)
    content = BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def _boxes(axes: Any, picture: ClusterPicture) -> None:
    fine = picture.scale * DPI > DETAIL
    for group in picture.layout.groups[:-1] if len(picture.layout.groups) > 1 else picture.layout.groups:
        faces = PolyCollection(corners(group), facecolors="none", edgecolors=FRAME, linewidths=0.8 if fine else 0.4)
        axes.add_collection(faces)
    axes.add_collection(PolyCollection(corners(picture.layout.units), facecolors=BOX, edgecolors=PALE, linewidths=0.5))


def _tiles(axes: Any, picture: ClusterPicture) -> None:
    tiles = picture.tiles
    pixels = picture.scale * DPI
    line = {"edgecolors": "white", "linewidths": 0.9 if pixels > 14 else 0.4} if pixels > DETAIL else {"linewidths": 0}
    kinds = [(tiles.job >= 0, None), (tiles.job == IDLE, PALE), (tiles.job == DOWN, DOWN_PAPER)]
    for mine, colour in kinds:
        face = [picture.colours[j] for j in tiles.job[mine].tolist()] if colour is None else colour
        axes.add_collection(PolyCollection(corners(tiles.box[mine]), facecolors=face, zorder=2, **line))
    nodes = picture.layout.units[~np.array(picture.usable)]
    hatched = corners(nodes if picture.single else tiles.box[tiles.job == DOWN])
    width = 0.6 if pixels > DETAIL else 0.3
    axes.add_collection(
        PolyCollection(
            hatched, facecolors="none", edgecolors="#8a929c", hatch="////", hatch_linewidth=width, lw=width, zorder=2.5
        )
    )
    if len(picture.marks):
        half = picture.marks[:, 2:] * 0.42
        diamond = np.array([[0, -1], [1, 0], [0, 1], [-1, 0]])
        points = picture.marks[:, None, :2] + half[:, None] * diamond
        face = [picture.colours[j] for j in picture.mark_job.tolist()]
        edge = 0.6 if pixels > 14 else 0.0
        axes.add_collection(PolyCollection(list(points), facecolors=face, edgecolors=INK, linewidths=edge, zorder=3))


def _links(axes: Any, picture: ClusterPicture) -> None:
    pixels = picture.scale * DPI
    thin = min(1.6, max(0.5, pixels / 12))
    axes.add_collection(LineCollection(list(picture.layout.switches), colors=BUS, linewidths=thin * 1.3, zorder=3))
    used = picture.gangs > 0
    colour = np.array(load_colours(picture.busy, picture.gangs))
    width = np.where(used, thin * (1.4 + 1.6 * picture.busy), thin * 0.8)
    upper = slice(len(picture.units) * picture.single, None)
    width[upper] = np.maximum(width[upper], np.where(used[upper], 1.8, 0.8))
    for mine, order in ((~used, 3.1), (used, 3.2)):
        lines = LineCollection(list(picture.lines[mine]), colors=list(colour[mine]), linewidths=width[mine])
        lines.set_zorder(order)
        axes.add_collection(lines)


def _texts(axes: Any, picture: ClusterPicture) -> None:
    for label in labels(picture):
        place: dict[str, Any] = {"ha": "center" if label.paper else "left", "va": "center", "zorder": 4}
        if label.paper:  # GPUs are parted by white lines
            place["path_effects"] = [withStroke(linewidth=2, foreground=label.paper)]
        axes.text(label.x, label.y, label.text, size=label.size, color=label.colour, **place)


def _legend(figure: Any, picture: ClusterPicture, height: float) -> None:
    """Explain what is no job, and the colours of the links."""
    handles: list[Any] = [Patch(color=PALE, label="idle")]
    if not all(picture.usable) or (picture.tiles.job == DOWN).any():
        handles.append(Patch(facecolor=DOWN_PAPER, edgecolor="#8a929c", hatch="////", lw=0.6, label="not usable"))
    if len(picture.marks):
        marker: dict[str, Any] = {"marker": "D", "markeredgecolor": INK, "markeredgewidth": 0.6, "ms": 6, "ls": ""}
        handles.append(Line2D([], [], color="#999999", label="parameter servers and other tasks without GPU", **marker))
    if not picture.single:
        handles.append(Patch(color="#999999", label="jobs fill a box in proportion to their GPUs"))
        if len(picture.lines) > sum(map(len, picture.layout.links)):
            handles.append(Line2D([], [], color=LOADS[2], lw=1.8, label="left side: busiest link of its nodes"))
    else:
        handles.append(Line2D([], [], color=BUS, lw=1.6, label="switch"))
    handles.append(Line2D([], [], color=UNUSED, lw=1.6, label="unused link"))
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.17 / WIDTH, 1 - 0.78 / height),
        ncol=len(handles),
        frameon=False,
        fontsize=9,
        columnspacing=1.4,
        borderaxespad=0.0,
        borderpad=0.1,
    )
    ramp: Any = figure.add_axes(((WIDTH - 2.3) / WIDTH, 1 - 0.94 / height, 1.6 / WIDTH, 0.12 / height))
    ramp.imshow(np.linspace(0, 1, 256)[None], aspect="auto", cmap=LinearSegmentedColormap.from_list("load", LOADS))
    ramp.axis("off")
    words = "links: share of the time they are busy with synchronisation"
    figure.text((WIDTH - 0.3) / WIDTH, 1 - 1.06 / height, words, size=9, color=INK, va="center", ha="right")
    figure.text((WIDTH - 2.36) / WIDTH, 1 - 0.88 / height, "0%", size=9, color=INK, va="center", ha="right")
    figure.text((WIDTH - 0.64) / WIDTH, 1 - 0.88 / height, "100%", size=9, color=INK, va="center")


def _jobs(axes: Any, picture: ClusterPicture, listed: list[int], rows: int) -> None:
    """List jobs with their slowdowns, column by column."""
    placed = int(np.isfinite(picture.slowdown).sum())
    more = f": the {len(listed)} of {placed:,} that are slowed down most" if placed > len(listed) else ""
    axes.text(0.25, ABOVE + LINE * 0.2, f"jobs and their slowdowns{more}", size=9.5, color=INK, va="center")
    step = (WIDTH - 0.5) / COLUMNS
    for i, job in enumerate(listed):
        x, y = 0.25 + i // rows * step, ABOVE + LINE * (1.2 + i % rows)
        axes.add_collection(
            PolyCollection(corners(np.array([[x, y - 0.06, 0.12, 0.12]])), facecolors=picture.colours[job])
        )
        name, slowdown = picture.jobs[job], f"{picture.slowdown[job]:.3f}"
        most = int((step - 0.9) * 72 / 9 / 0.6)
        axes.text(x + 0.2, y, name if len(name) <= most else name[: most - 1] + "…", size=9, color=INK, va="center")
        axes.text(x + step - 0.25, y, slowdown, size=9, color="#555555", va="center", ha="right")


def corners(box: FloatArray) -> list[FloatArray]:
    """Return the corners of boxes, float (4, 2) each."""
    x, y, width, height = box.T
    return list(
        np.stack([np.stack([x, x + width, x + width, x], 1), np.stack([y, y, y + height, y + height], 1)], axis=2)
    )
