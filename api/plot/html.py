"""The picture as one HTML file that needs nothing else, by plotly."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .colours import paler
from .layout import FloatArray
from .picture import Bars, Picture

DEPTH = "depth in the graph: ops on the longest path before"
INK, FAINT, GRID = "#222222", "#b8bec6", "#e3e6ea"


def draw(picture: Picture) -> bytes:
    """Return the bytes of the page."""
    second: list[Any] = [{"colspan": 2}, None] if picture.memory is None else [{}, {}]
    figure = make_subplots(
        rows=2, cols=2, specs=[[{"colspan": 2}, None], second], row_heights=[0.6, 0.4], vertical_spacing=0.13
    )
    _graph(figure, picture)
    _bars(figure, picture, picture.load, 1, "load")
    if picture.memory is not None:
        _bars(figure, picture, picture.memory, 2, "memory")
    figure.update_layout(
        title={
            "text": f"<b>{escape(picture.title)}</b><br><span style='font-size:14px'>{escape(picture.subtitle)}</span>",
            "x": 0.02,
            "y": 0.975,
            "yanchor": "top",
        },
        template="plotly_white",
        font={"family": "system-ui, sans-serif", "color": INK},
        barmode="stack",
        bargap=0.24,
        height=860,
        margin={"l": 70, "r": 30, "t": 90, "b": 50},
        hoverlabel={"align": "left"},
        legend={"orientation": "v", "x": 1.01, "y": 1.0, "traceorder": "normal"},
    )
    page: str = figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False, "responsive": True})
    page = page.replace("<head>", f"<head><title>{escape(picture.title)}</title>", 1)
    return page.encode()


def _graph(figure: Any, picture: Picture) -> None:
    drawing = picture.drawing
    _lines(figure, drawing.inner, FAINT, 1.0, "edges inside a device")
    if not drawing.dots:
        _blocks(figure, picture)
    _lines(figure, drawing.cut, INK, 2.0, "edges between devices")
    if drawing.dots:
        _dots(figure, picture)
    _anchors(figure, picture)
    depth = DEPTH if drawing.dots else f"{DEPTH}; height: ops at that depth"
    figure.update_xaxes(
        title_text=depth,
        row=1,
        col=1,
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(row=1, col=1, showgrid=False, zeroline=False, showticklabels=False)
    if drawing.halves:
        for half, word in ((drawing.y > 0, "forward"), (drawing.y < 0, "backward")):
            y = float(drawing.y[half].mean()) if half.any() else 0.0
            figure.add_annotation(
                text=word, x=0, y=y, xref="x domain", yref="y", xanchor="right", textangle=-90, showarrow=False
            )


def _lines(figure: Any, lines: FloatArray, colour: str, width: float, name: str) -> None:
    if not len(lines):
        return
    # None between two polylines lifts the pen
    x, y = (np.concatenate([lines[:, :, k], np.full((len(lines), 1), np.nan)], axis=1).ravel() for k in (0, 1))
    figure.add_trace(
        go.Scatter(
            x=plain(x), y=plain(y), mode="lines", line={"color": colour, "width": width}, name=name, hoverinfo="skip"
        ),
        row=1,
        col=1,
    )


def _dots(figure: Any, picture: Picture) -> None:
    drawing = picture.drawing
    size = min(26.0, max(4.5, 0.75 * min(1150 / (np.ptp(drawing.x) + 2), 420 / (np.ptp(drawing.y) + 2))))
    for device, name in enumerate(picture.devices):
        mine = np.flatnonzero(drawing.device == device)
        labels = [drawing.labels[i] for i in mine] if drawing.labels and size >= 16 else None
        figure.add_trace(
            go.Scatter(
                x=drawing.x[mine].tolist(),
                y=drawing.y[mine].tolist(),
                mode="markers+text" if labels else "markers",
                text=labels,
                textfont={"color": "white", "size": 10},
                hovertext=[f"{safe(drawing.texts[i])}<br>device {escape(name)}" for i in mine],
                hoverinfo="text",
                marker={"color": picture.colours[device], "size": size, "line": {"color": "white", "width": 0.6}},
                name=f"device {escape(name)}",
            ),
            row=1,
            col=1,
        )


def _blocks(figure: Any, picture: Picture) -> None:
    drawing = picture.drawing
    x = np.unique(drawing.x)
    width = float(np.diff(x).min()) if len(x) > 1 else 1.0
    for device, name in enumerate(picture.devices):
        mine = np.flatnonzero(drawing.device == device)
        figure.add_trace(
            go.Bar(
                x=drawing.x[mine].tolist(),
                y=drawing.height[mine].tolist(),
                base=(drawing.y - drawing.height / 2)[mine].tolist(),
                width=width,
                hovertext=[f"{safe(drawing.texts[i])}<br>device {escape(name)}" for i in mine],
                hoverinfo="text",
                marker={"color": picture.colours[device], "line": {"width": 0}},
                name=f"device {escape(name)}",
            ),
            row=1,
            col=1,
        )


def _anchors(figure: Any, picture: Picture) -> None:
    drawing = picture.drawing
    if not len(drawing.anchors):
        return
    names = [picture.devices[d] for d in drawing.anchor_device.tolist()]
    figure.add_trace(
        go.Scatter(
            x=drawing.anchors[:, 0].tolist(),
            y=drawing.anchors[:, 1].tolist(),
            mode="markers+text",
            text=[name.split()[0] for name in names],
            textfont={"size": 9, "color": INK},
            hovertext=[f"device {escape(name)}" for name in names],
            hoverinfo="text",
            marker={"color": "white", "size": 17, "line": {"color": INK, "width": 1}},
            showlegend=False,
        ),
        row=1,
        col=1,
    )


def _bars(figure: Any, picture: Picture, bars: Bars, col: int, kind: str) -> None:
    names = [name.split()[0] for name in picture.devices]
    unit = bars.unit
    parts = [("compute" if kind == "load" else "used", bars.solid, list(picture.colours), "")]
    if kind == "load":
        parts.append(("transfer", bars.pale, [paler(c) for c in picture.colours], "/"))
    for word, height, colour, hatch in parts:
        figure.add_trace(
            go.Bar(
                x=names,
                y=height.tolist(),
                marker={"color": colour, "pattern": {"shape": hatch, "fgcolor": "white", "size": 6}},
                hovertext=[
                    f"device {escape(n)}<br>{word} {y:.5g} {unit}" for n, y in zip(picture.devices, height, strict=True)
                ],
                hoverinfo="text",
                showlegend=False,
            ),
            row=2,
            col=col,
        )
    finite = np.isfinite(bars.limit)
    shown = kind == "load" or not bars.off_scale
    if finite.any() and shown:
        word = "bound" if kind == "load" else "capacity"
        figure.add_trace(
            go.Scatter(
                x=[n for n, f in zip(names, finite, strict=True) if f],
                y=bars.limit[finite].tolist(),
                mode="lines" if kind == "load" else "markers",
                line={"color": INK, "width": 1.4, "dash": "dash"},
                marker={"symbol": "line-ew-open", "size": 18, "color": INK, "line": {"width": 2}},
                name=f"bound {bars.least}" if kind == "load" else word,
            ),
            row=2,
            col=col,
        )
    idle = f"; {picture.idle} more idle" if picture.idle else ""
    what = "solid: compute, hatched: transfer" if kind == "load" else ""
    if not shown:
        what = f"capacity {bars.least}, off the scale"
    title = f"device, in the order of the stages{idle}" + (f" ({what})" if what else "")
    figure.update_xaxes(title_text=title, type="category", row=2, col=col, showgrid=False)
    figure.update_yaxes(title_text=bars.label, rangemode="tozero", gridcolor=GRID, row=2, col=col)


def safe(text: str) -> str:
    """Return `text` with all but our own line breaks escaped: names come from files."""
    return "<br>".join(escape(part) for part in text.split("<br>"))


def plain(values: FloatArray) -> list[float | None]:
    """Return `values` with None in place of NaN."""
    return [None if np.isnan(x) else x for x in values.tolist()]
