"""A Gantt chart as one HTML file that needs nothing else, by plotly."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .chart import COLOURS, STYLES, Chart
from .gantt import Gantt
from .gantt_marks import marks
from .gantt_marks import memory as memory_beside
from .html import GRID, INK, safe

PITCH, CAPTION, HEAD, FOOT = 46, 70, 160, 70
"""Pixels: of a device's row, between charts, above the first, below the last."""
MOST_TALL = 1400
"""Pixels of one chart before rows get flatter."""
SMALLEST, LARGEST = 8.0, 11.0
"""Pixels of names in bars; a pointer tells those that do not fit."""
ACROSS = 1100
"""Pixels of the axis on a usual screen."""


def draw_gantt(picture: Gantt) -> bytes:
    """Return the bytes of the page."""
    charts = picture.charts
    memory = any(any(chart.memory) for chart in charts)
    tall = [min(max(PITCH * chart.bottom, 60.0), MOST_TALL) for chart in charts]
    height = sum(tall) + CAPTION * (len(charts) - 1) + HEAD + FOOT
    figure = make_subplots(
        rows=len(charts),
        cols=2 if memory else 1,
        row_heights=tall,
        column_widths=[0.84, 0.16] if memory else [1.0],
        vertical_spacing=CAPTION / (height - HEAD - FOOT) if len(charts) > 1 else 0.0,
        horizontal_spacing=0.012,
    )
    seen: set[str] = set()
    for i, chart in enumerate(charts, 1):
        _bars(figure, chart, i, seen, picture.horizon, tall[i - 1] / chart.bottom)
        marks(figure, chart, i, seen, len(charts) > 1)
        _bands(figure, chart, i)
        if memory:
            memory_beside(figure, chart, i)
        figure.update_xaxes(
            row=i,
            col=1,
            range=[0, picture.horizon * 1.012],
            matches="x",
            gridcolor=GRID,
            zeroline=False,
            title_text=picture.axis if i == len(charts) else None,
            showticklabels=True,
        )
        figure.update_yaxes(
            row=i,
            col=1,
            range=[chart.bottom + 0.12, -0.12],
            tickvals=chart.y.tolist(),
            fixedrange=True,
            ticktext=[_name(n, link) for n, link in zip(chart.names, chart.link, strict=True)],
            showgrid=False,
            zeroline=False,
        )
        if chart.heading:
            figure.add_annotation(
                text=f"<b>{escape(chart.heading)}</b>",
                xref="x domain",
                x=0,
                yref=f"y{_axis(i, memory)} domain",
                y=1,
                yshift=22,
                showarrow=False,
                xanchor="left",
                font={"size": 13},
            )
    figure.update_layout(
        title={
            "text": f"<b>{escape(picture.title)}</b><br><span style='font-size:14px'>{escape(picture.subtitle)}</span>",
            "x": 0.02,
            "y": 1 - 18 / height,
            "yanchor": "top",
        },
        template="plotly_white",
        font={"family": "system-ui, sans-serif", "color": INK},
        barmode="overlay",
        height=height,
        margin={"l": 90, "r": 30, "t": HEAD, "b": FOOT},
        hoverlabel={"align": "left"},
        hovermode="closest",
        dragmode="zoom",
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1 + (HEAD - 58) / (height - HEAD - FOOT),
            "yanchor": "top",
            "traceorder": "normal",
        },
    )
    page: str = figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False, "responsive": True})
    page = page.replace("<head>", f"<head><title>{escape(picture.title)}</title>", 1)
    return page.encode()


def _axis(row: int, memory: bool) -> str:
    number = 2 * row - 1 if memory else row
    return "" if number == 1 else str(number)


def _name(name: str, link: bool) -> str:
    return f"<span style='color:#888;font-size:10px'>{escape(name)}</span>" if link else escape(name)


def _bars(figure: Any, chart: Chart, row: int, seen: set[str], horizon: float, pitch: float) -> None:
    for style, (kind, critical) in enumerate(STYLES):
        mine = np.flatnonzero(chart.style == style)
        if not len(mine):
            continue
        name = f"{kind}, critical" if critical else kind
        # what is narrower than a pixel would vanish without a line of its colour
        wide = chart.width[mine] * ACROSS > 4 * horizon
        names = [chart.name(int(i), horizon, ACROSS, pitch, (SMALLEST, LARGEST)) for i in mine]
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=chart.start[mine].tolist(),
                x=chart.width[mine].tolist(),
                y=chart.at[mine].tolist(),
                width=chart.tall[mine].tolist(),
                marker={
                    "color": COLOURS[style],
                    "line": {"color": ["white" if w else COLOURS[style] for w in wide], "width": 0.5},
                },
                text=[escape(name) for name in names],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                insidetextfont={"color": "white" if critical else INK, "size": LARGEST},
                hovertext=[safe(chart.texts[i]) for i in mine],
                hoverinfo="text",
                name=name,
                legendgroup=name,
                legendrank=style,
                showlegend=name not in seen,
            ),
            row=row,
            col=1,
        )
        seen.add(name)


def _bands(figure: Any, chart: Chart, row: int) -> None:
    """Shade each row."""
    for y, high, link in zip(chart.y.tolist(), chart.height.tolist(), chart.link, strict=True):
        colour = "#fbfbfc" if link else "#f4f5f8"
        figure.add_hrect(y - high / 2, y + high / 2, fillcolor=colour, line_width=0, layer="below", row=row, col=1)
