"""Schedules as one HTML file that needs nothing else, by plotly; dark where the reader's system is."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .simulation import SimulationPicture
from .simulation_colours import policy_colours, tall
from .simulation_html_panels import heat, timeline, waiting
from .simulation_page import GRID, page
from .simulation_time import ticks

PIXELS, WAITING, CURVES = 84.0, 70.0, 240.0
"""Pixels of an inch of timelines and heat maps, of the queue, of the curves."""
HEAD, BELOW, HEADING, BETWEEN = 84.0, 84.0, 34.0, 14.0
"""Above all, below an axis with words, above a policy, between its panels."""


def draw_simulation(picture: SimulationPicture) -> bytes:
    """Return the bytes of the page."""
    sizes = [CURVES]
    gaps = [BELOW + HEADING]
    for run in picture.runs:
        above, below = tall(run)
        sizes += [above * PIXELS, WAITING, *([below * PIXELS] if below else [])]
        gaps += [BETWEEN] * (2 if below else 1) + [BELOW]
    inner = sum(sizes) + sum(gaps[:-1])  # what plotly's fractions are of
    figure = make_subplots(rows=len(sizes), cols=1)
    top = inner
    for row, (size, gap) in enumerate(zip(sizes, gaps, strict=True), 1):
        domain = [max((top - size) / inner, 0.0), top / inner]
        figure.update_yaxes(row=row, col=1, domain=domain, gridcolor=GRID, zeroline=False)
        figure.update_xaxes(row=row, col=1, gridcolor=GRID, zeroline=False)
        top -= size + gap
    _curves(figure, picture)
    row, seen = 2, set[str]()
    for run in picture.runs:
        above, below = tall(run)
        last = row + 1 + (run.heat is not None)
        timeline(figure, picture, run, row, seen, above)
        waiting(figure, picture, run, row + 1)
        if run.heat is not None:
            heat(figure, picture, run.heat, last, below)
        figure.update_xaxes(row=last, col=1, title_text=picture.axis)
        for r in range(row, last + 1):
            span = [0, float(picture.edges[-1])]
            figure.update_xaxes(row=r, col=1, range=span, matches="x2", showticklabels=r == last)
        _say(figure, run.heading, row)
        row = last + 1
    figure.update_layout(
        height=inner + HEAD + BELOW,
        margin={"l": 80, "r": 90, "t": HEAD, "b": BELOW},
        barmode="overlay",
        legend={"orientation": "h", "x": 0, "y": 1 - (CURVES + BELOW - 24) / inner, "yanchor": "middle"},
        legend2={"x": 0.995, "xanchor": "right", "y": 1 - (CURVES - 8) / inner, "yanchor": "bottom"},
    )
    return page(figure, picture.title, picture.subtitle)


def _say(figure: Any, words: str, row: int) -> None:
    place = {"xref": "x domain", "yref": f"y{row} domain", "x": 0, "y": 1, "yshift": 20, "xanchor": "left"}
    figure.add_annotation(text=f"<b>{escape(words)}</b>", showarrow=False, font={"size": 13}, **place)


def _curves(figure: Any, picture: SimulationPicture) -> None:
    low, high = picture.reach
    for run, colour in zip(picture.runs, policy_colours(len(picture.runs)), strict=True):
        x, y = picture.line(run)
        line = {"color": colour, "width": 2, "shape": "hv"}
        told = {"name": escape(run.name), "legend": "legend2", "hovertemplate": "%{y:.1%} within %{x:,.4g} s"}
        curve = go.Scatter(x=x.tolist(), y=y.round(5).tolist(), mode="lines", line=line, showlegend=True, **told)
        figure.add_trace(curve, row=1, col=1)
    places, words = ticks(low, high)
    title = "job completion time (JCT): from submission to finish"
    log = {"type": "log", "range": [np.log10(low), np.log10(high)], "tickvals": places, "ticktext": words}
    figure.update_xaxes(row=1, col=1, title_text=title, **log)
    figure.update_yaxes(row=1, col=1, title_text="jobs done within it", range=[0, 1.02], tickformat=".0%")
