"""What stands on and beside the bars of a page: the chain, the ends, how busy and how full devices are."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from .chart import Chart
from .html import INK, plain
from .layout import FloatArray

MOST_STEPS = 80
"""Lines from bar to bar of the chain that can be followed; more are drawn paler."""


def marks(figure: Any, chart: Chart, row: int, seen: set[str], several: bool) -> None:
    """Draw the steps of the chain, the last finish and the bound."""
    few = len(chart.steps) <= MOST_STEPS
    shown = [("critical: the chain to the end", chart.steps, "solid", 1.0 if few else 0.5, 0.7 if few else 0.3)]
    ends = (-0.12, chart.bottom + 0.12)
    end = "the end" if several else chart.end_words
    shown.append((end, _upright(chart.end, ends), "solid", 1.6, 1.0))
    if chart.bound is not None:
        bound = "bound: no plan is better" if several else f"bound {chart.bound_words}: no plan is better"
        shown.append((bound, _upright(chart.bound, ends), "dash", 1.6, 1.0))
    for name, lines, dash, width, opacity in shown:
        if not len(lines):
            continue
        # None between two lines lifts the pen
        x, y = (np.concatenate([lines[:, :, k], np.full((len(lines), 1), np.nan)], axis=1).ravel() for k in (0, 1))
        figure.add_trace(
            go.Scatter(
                x=plain(x),
                y=plain(y),
                mode="lines",
                line={"color": INK, "width": width, "dash": dash},
                opacity=opacity,
                name=name,
                legendgroup=name,
                showlegend=name not in seen,
                hoverinfo="skip",
            ),
            row=row,
            col=1,
        )
        seen.add(name)


def _upright(x: float, ends: tuple[float, float]) -> FloatArray:
    return np.array([[[x, ends[0]], [x, ends[1]]]])


def memory(figure: Any, chart: Chart, row: int) -> None:
    """Beside each device: how busy it is, and how full."""
    mine = [i for i, words in enumerate(chart.memory) if words]
    full = [float(chart.filled[i]) for i in mine]
    known = [0.0 if np.isnan(f) else min(f, 1.0) for f in full]
    y, width = [float(chart.y[i]) for i in mine], [0.6 * min(float(chart.height[i]), 1.0) for i in mine]
    words = [f"{chart.memory[i]}" + ("" if np.isnan(f) else f" · {f:.1%}") for i, f in zip(mine, full, strict=True)]
    look = {"orientation": "h", "y": y, "width": width, "showlegend": False, "hoverinfo": "skip"}
    room = [0.0 if np.isnan(f) else 1.0 for f in full]
    figure.add_trace(go.Bar(x=room, marker={"color": "#e9ecf0", "line": {"width": 0}}, **look), row=row, col=2)
    figure.add_trace(go.Bar(x=known, marker={"color": "#a3adb8", "line": {"width": 0}}, **look), row=row, col=2)
    busy = ["\u2002" if np.isnan(chart.busy[i]) else f"\u2002busy {chart.busy[i]:.0%} · " for i in mine]
    texts = {"text": [b + w for b, w in zip(busy, words, strict=True)], "textposition": "middle right"}
    figure.add_trace(
        go.Scatter(
            x=[0.0] * len(mine), y=y, mode="text", textfont={"size": 11}, showlegend=False, hoverinfo="skip", **texts
        ),
        row=row,
        col=2,
    )
    figure.update_xaxes(row=row, col=2, range=[0, 1.02], visible=False, fixedrange=True)
    figure.update_yaxes(row=row, col=2, range=[chart.bottom + 0.12, -0.12], visible=False, fixedrange=True)
    figure.add_annotation(
        text="busy, memory",
        xref=f"x{2 * row} domain",
        x=0,
        yref=f"y{2 * row} domain",
        y=1,
        yshift=18,
        showarrow=False,
        xanchor="left",
        font={"size": 11, "color": "#666666"},
    )
