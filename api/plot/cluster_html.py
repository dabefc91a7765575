"""The cluster under a placement as one HTML file that needs nothing else, by plotly."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from .cluster import ClusterPicture
from .cluster_colours import LOADS, PALE, UNUSED, load_colours
from .cluster_labels import labels
from .cluster_png import corners
from .cluster_tiles import DOWN, IDLE, PAD
from .html import INK, safe
from .layout import FloatArray

PIXELS = 84.0
"""Of an inch of the map on a usual screen."""
HEAD_ROOM, LEAST_TALL, LISTED = 130, 460, 66
"""Pixels above the map and of all at least, and the most jobs in the legend."""
STEPS = 10
"""Shades of links."""
FRAME, BOX, BUS = "#9aa3ad", "rgba(128, 140, 160, 0.08)", "#6b7480"


def draw_cluster(picture: ClusterPicture) -> bytes:
    """Return the bytes of the page."""
    figure = go.Figure()
    _boxes(figure, picture)
    _tiles(figure, picture)
    _links(figure, picture)
    _names(figure, picture)
    _hover(figure, picture)
    _legend(figure, picture)
    layout = picture.layout
    height = layout.height * picture.scale * PIXELS + HEAD_ROOM + 40
    hidden: dict[str, Any] = {"visible": False, "constrain": "domain"}
    figure.update_xaxes(range=[-0.2, layout.width + 0.2], constraintoward="left", **hidden)
    figure.update_yaxes(range=[layout.height + 0.2, -0.2], scaleanchor="x", constraintoward="top", **hidden)
    for text, size, rise in ((f"<b>{escape(picture.title)}</b>", 17, 112), (escape(picture.subtitle), 14, 90)):
        place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "middle"}
        figure.add_annotation(text=text, font={"size": size}, yshift=rise, showarrow=False, **place)
    figure.update_layout(
        template="plotly_white",
        font={"family": "system-ui, sans-serif", "color": INK},
        height=max(height, LEAST_TALL),
        margin={"l": 20, "r": 20, "t": HEAD_ROOM, "b": 20},
        hoverlabel={"align": "left"},
        hovermode="closest",
        hoverdistance=20 if picture.single else 60,
        dragmode="pan",
        legend={"x": 1.01, "y": 1.0, "traceorder": "normal", "itemclick": False, "itemdoubleclick": False},
    )
    config = {"displaylogo": False, "responsive": True, "scrollZoom": True}
    page: str = figure.to_html(include_plotlyjs=True, full_html=True, config=config)
    page = page.replace("<head>", f"<head><title>{escape(picture.title)}</title>", 1)
    return page.encode()


def _polygons(
    figure: Any, boxes: FloatArray, colour: str, line: str = "white", width: float = 0.0, **more: Any
) -> None:
    """Add many boxes of one colour as one trace."""
    if not len(boxes):
        return
    # None between two of them lifts the pen
    path = [[*corner[:, k].round(4).tolist(), None] for k in (0, 1) for corner in corners(boxes)]
    n = len(boxes)
    figure.add_trace(
        go.Scatter(
            x=[v for part in path[:n] for v in part],
            y=[v for part in path[n:] for v in part],
            mode="lines",
            fill="toself",
            fillcolor=colour,
            line={"color": line, "width": width},
            hoverinfo="skip",
            showlegend=False,
            **more,
        )
    )


def _boxes(figure: Any, picture: ClusterPicture) -> None:
    groups = picture.layout.groups
    for group in groups[:-1] if len(groups) > 1 else groups:
        lines = [np.concatenate([c, c[:1]]) for c in corners(group)]
        _lines(figure, lines, FRAME, 0.8)
    _polygons(figure, picture.layout.units, BOX)


def _tiles(figure: Any, picture: ClusterPicture) -> None:
    tiles, fine = picture.tiles, picture.scale * PIXELS > 5
    width = 0.8 if fine else 0.0
    _polygons(figure, tiles.box[tiles.job == IDLE], PALE, width=width)
    hatch = {"shape": "/", "fgcolor": "#8a929c", "bgcolor": "white", "size": 5, "solidity": 0.2}
    _polygons(figure, tiles.box[tiles.job == DOWN], PALE, width=width, fillpattern=hatch)
    if picture.single:
        down = ~np.array(picture.usable)
        _polygons(figure, picture.layout.units[down], PALE, FRAME, 0.8, fillpattern=hatch)
    of = np.array([*picture.colours, PALE, PALE])[tiles.job]
    for colour in dict.fromkeys(picture.colours):
        _polygons(figure, tiles.box[(tiles.job >= 0) & (of == colour)], colour, width=width)


def _lines(figure: Any, lines: list[FloatArray], colour: str, width: float) -> None:
    x, y = ([v for line in lines for v in [*line[:, k].round(4).tolist(), None]] for k in (0, 1))
    figure.add_trace(
        go.Scatter(x=x, y=y, mode="lines", line={"color": colour, "width": width}, hoverinfo="skip", showlegend=False)
    )


def _links(figure: Any, picture: ClusterPicture) -> None:
    thin = min(1.8, max(0.7, picture.scale * PIXELS / 11))
    _lines(figure, list(picture.layout.switches), BUS, thin * 1.3)
    used = picture.gangs > 0
    if not used.all():
        _lines(figure, list(picture.lines[~used]), UNUSED, thin)
    step = np.minimum((picture.busy * STEPS).astype(int), STEPS - 1)
    for i in np.unique(step[used]).tolist():
        mine = used & (step == i)
        middle = np.full(1, (i + 0.5) / STEPS)
        (colour,) = load_colours(middle, np.ones(1, dtype=np.int64))
        _lines(figure, list(picture.lines[mine]), colour, thin * 1.4 + 1.6 * float(middle[0]))


def _names(figure: Any, picture: ClusterPicture) -> None:
    found = list(labels(picture))
    for mine, where in (
        ([label for label in found if label.paper], "middle center"),
        ([label for label in found if not label.paper], "middle right"),
    ):
        figure.add_trace(
            go.Scatter(
                x=[label.x for label in mine],
                y=[label.y for label in mine],
                text=[escape(label.text) for label in mine],
                mode="text",
                textposition=where,
                textfont={
                    "color": [label.colour for label in mine],
                    "size": [label.size * PIXELS / 72 for label in mine],
                },
                hoverinfo="skip",
                showlegend=False,
            )
        )


def _hover(figure: Any, picture: ClusterPicture) -> None:
    """Put what there is to say where a pointer finds it: on tiles, names of units, marks and links."""
    units, box = picture.layout.units, picture.tiles.box
    top = units[:, :2] + np.stack([units[:, 2] / 2, np.full(len(units), PAD)], axis=1)
    marked = [picture.colours[j] for j in picture.mark_job.tolist()]
    size = (picture.marks[:, 2] * 0.6 * picture.scale * PIXELS).tolist()
    shown = {"symbol": "diamond", "color": marked, "size": size, "opacity": 1, "line": {"color": INK, "width": 0.6}}
    clear = {"color": "rgba(0, 0, 0, 0)", "size": 6}
    for at, texts, marker in (
        (box[:, :2] + box[:, 2:] / 2, picture.tile_texts, clear),
        (top, picture.unit_texts, clear),
        (picture.lines.mean(axis=1), picture.line_texts, clear),
        (picture.marks[:, :2], picture.mark_texts, shown),
    ):
        figure.add_trace(
            go.Scatter(
                x=at[:, 0].round(4).tolist(),
                y=at[:, 1].round(4).tolist(),
                mode="markers",
                marker=marker,
                hovertext=[safe(text) for text in texts],
                hoverinfo="text",
                hoverlabel={"bgcolor": "white", "font": {"color": INK}},
                showlegend=False,
            )
        )


def _legend(figure: Any, picture: ClusterPicture) -> None:
    """List jobs with their slowdowns, and show the colours of the links."""
    listed = picture.slowest(LISTED)
    placed = int(np.isfinite(picture.slowdown).sum())
    entries = [(f"{picture.jobs[j]} · {picture.slowdown[j]:.3f}", picture.colours[j], "square") for j in listed]
    entries.append(("idle", PALE, "square"))
    if len(picture.marks):
        entries.append(("tasks without GPU", "#999999", "diamond"))
    for name, colour, symbol in entries:
        marker = {"color": colour, "symbol": symbol, "size": 12}
        figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", marker=marker, name=escape(name)))
    most = f",<br>the {len(listed)} slowed down most of {placed:,}" if placed > len(listed) else ""
    figure.update_layout(legend_title_text=f"jobs and their slowdowns{most}")
    scale = [[i / (len(LOADS) - 1), colour] for i, colour in enumerate(LOADS)]
    words = "links: share of the time they are busy with synchronisation"
    bar: dict[str, Any] = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom", "len": 0.3}
    bar |= {"thickness": 9, "tickformat": ".0%", "title": {"text": words, "side": "top", "font": {"size": 12}}}
    marker = {"color": [0], "cmin": 0, "cmax": 1, "colorscale": scale, "showscale": True, "colorbar": bar}
    figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", marker=marker, showlegend=False))
