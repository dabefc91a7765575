"""The panels of a schedule in HTML, by plotly: jobs, GPUs in use, the queue, how full nodes are."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from .html import plain, safe
from .simulation import Run, SimulationPicture
from .simulation_boxes import boxes, names
from .simulation_colours import DOWN, QUEUE, SHADES, node_ticks
from .simulation_heat import Heat
from .simulation_words import jobs

ACROSS = 830.0
"""Points of the axis of time on a usual screen."""


def timeline(figure: Any, picture: SimulationPicture, run: Run, row: int, seen: set[str], inches: float) -> None:
    """Draw jobs on nodes, or GPUs in use if there are too many; `seen` are the classes in the legend so far."""
    if run.lanes is None:
        _stack(figure, picture, run, row, seen)
        return
    texts = jobs(picture, run)
    low, high = run.lanes.node_low, run.lanes.node_high
    for part in boxes(picture, run):
        bars = {"base": part.left, "x": part.width, "y": (part.low + part.high) / 2, "width": part.high - part.low}
        figure.add_trace(
            go.Bar(
                orientation="h",
                **{key: values.round(6).tolist() for key, values in bars.items()},
                marker={"color": part.colour, "line": {"color": "rgba(255,255,255,0.65)", "width": 0.5}},
                hovertext=[safe(texts[i]) for i in part.at.tolist()] or part.name,
                hoverinfo="text",
                **_entry(part.name, seen),
            ),
            row=row,
            col=1,
        )
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        figure.add_hrect(a, b, fillcolor=QUEUE, opacity=0.12, line_width=0, layer="below", row=row, col=1)
    found = list(names(picture, run, ACROSS, inches * 72 / float(high[-1])))
    letters = {"size": [name.size * 96 / 72 for name in found], "color": "#222222"}
    points = {"x": [name.x for name in found], "y": [name.y for name in found]}
    told = {"text": [escape(name.words) for name in found], "hoverinfo": "skip", "showlegend": False}
    figure.add_trace(go.Scatter(mode="text", textfont=letters, **points, **told), row=row, col=1)
    if run.heat is None:
        figure.update_yaxes(row=row, col=1, title_text="GPUs", range=[float(high[-1]), 0], showticklabels=False)
        return
    places, shown = node_ticks(low, high, inches)
    axis = {"title_text": "node", "range": [float(high[-1]), 0], "tickvals": places, "ticktext": shown}
    figure.update_yaxes(row=row, col=1, **axis)


def _entry(name: str, seen: set[str]) -> dict[str, Any]:
    """Return what puts a class into the legend, once for all policies."""
    first = name not in seen
    seen.add(name)
    return {"name": escape(name), "legendgroup": name, "showlegend": first}


def _stack(figure: Any, picture: SimulationPicture, run: Run, row: int, seen: set[str]) -> None:
    x = picture.edges[:-1].round(6).tolist()
    for name, colour, values in zip(picture.classes.names, picture.classes.colours, run.stack, strict=True):
        line = {"width": 0, "color": colour, "shape": "hv"}
        told = {"hovertemplate": "%{y:.4g} GPUs", "stackgroup": f"run{row}", "fillcolor": colour}
        trace = go.Scatter(x=x, y=values.round(3).tolist(), line=line, mode="lines", **told, **_entry(name, seen))
        figure.add_trace(trace, row=row, col=1)
    line = {"color": QUEUE, "width": 1.2, "dash": "dash", "shape": "hv"}
    there = go.Scatter(x=x, y=run.there.round(3).tolist(), line=line, mode="lines", **_entry("GPUs there are", seen))
    figure.add_trace(there, row=row, col=1)
    figure.update_yaxes(row=row, col=1, title_text="GPUs in use", range=[0, float(run.there.max()) * 1.04])


def waiting(figure: Any, picture: SimulationPicture, run: Run, row: int) -> None:
    """Draw how many jobs wait."""
    line = {"color": QUEUE, "width": 1, "shape": "hv"}
    points = {"x": picture.edges[:-1].round(6).tolist(), "y": run.waiting.round(3).tolist()}
    told = {"hovertemplate": "%{y:.4g} jobs wait<extra></extra>", "showlegend": False, "fill": "tozeroy"}
    figure.add_trace(go.Scatter(mode="lines", line=line, **points, **told), row=row, col=1)
    figure.update_yaxes(row=row, col=1, title_text="waiting", rangemode="tozero", nticks=4)


def heat(figure: Any, picture: SimulationPicture, found: Heat, row: int, inches: float) -> None:
    """Draw how full each node is."""
    rows = len(found.names)
    middle = np.arange(rows) + 0.5
    share = found.share
    low, high = figure.layout[f"yaxis{row}"].domain
    bar = {"len": high - low, "y": (low + high) / 2, "thickness": 9, "tickformat": ".0%", "tickvals": [0, 0.5, 1]}
    bar |= {"ypad": 0, "title": {"text": "held", "side": "right"}}
    told = {"hovertemplate": "node %{customdata}: %{z:.1%} held<extra></extra>"}
    rows_of = [[name] * share.shape[1] for name in found.names]
    scale = [[i / (len(SHADES) - 1), colour] for i, colour in enumerate(SHADES)]
    x = ((picture.edges[:-1] + picture.edges[1:]) / 2).round(6).tolist()
    colours = {"colorscale": scale, "zmin": 0, "zmax": 1, "colorbar": bar}
    z = [plain(line) for line in share]
    figure.add_trace(go.Heatmap(x=x, y=middle.tolist(), z=z, customdata=rows_of, **told, **colours), row=row, col=1)
    places, _ = node_ticks(middle - 0.5, middle + 0.5, inches)
    shown = [found.names[int(at)] for at in places]
    title = "node" if "-" not in found.names[0] else "nodes"
    axis = {"range": [rows, 0], "tickvals": places, "ticktext": shown, "showgrid": False, "title_text": title}
    figure.update_yaxes(row=row, col=1, **axis)
    gone = np.argwhere(np.isnan(share))
    if len(gone):
        z = [[0 if np.isnan(v) else None for v in line] for line in share.tolist()]
        red = {"colorscale": [[0, DOWN], [1, DOWN]], "showscale": False, "hovertemplate": "down<extra></extra>"}
        figure.add_trace(go.Heatmap(x=x, y=middle.tolist(), z=z, **red), row=row, col=1)
