"""A scene as one HTML file that needs nothing else, by plotly: zoom, hover texts, legends that hide what is clicked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import singledispatch
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from .colours import FAINT, GREY, GRID, INK
from .scene import LINE, WIDTH, Axis, Boxes, Dots, FloatArray, Heat, Key, Lines, Mark, Panel, Scene, Words

PIXELS = 84.0
"""Of an inch on a usual screen."""
MOST_BARS = 3000
"""Boxes that can be pointed at anywhere; of more the middle is told."""
SYMBOLS = {"o": "circle", "D": "diamond", "v": "triangle-down", "|": "line-ns-open", "x": "x-thin-open", "": "circle"}
CLEAR = "rgba(0, 0, 0, 0)"
STYLE = (
    f"<style>:root{{color-scheme:light dark}}body{{margin:0;min-width:{WIDTH * PIXELS:.0f}px}}"
    "@media (prefers-color-scheme:dark){body{background:#14171b}"
    ".plotly-graph-div{filter:invert(0.91) hue-rotate(180deg)}}</style>"
)
"""A page that is dark where the reader's system is."""


def draw(scene: Scene) -> bytes:
    """Return the bytes of the page."""
    page = _written(scene, whole=True)
    return page.replace("<head>", f"<head><title>{escape(scene.title)}</title>{STYLE}", 1).encode()


def embed(scene: Scene) -> str:
    """Return the picture as a part of a page, with all that it needs."""
    return STYLE.replace("body{margin:0;", ".plotly-graph-div{", 1) + _written(scene, whole=False)


def _written(scene: Scene, whole: bool) -> str:
    figure = go.Figure()
    for at, size, text in ((0.30, 17, f"<b>{safe(scene.title)}</b>"), (0.60, 14, safe(scene.subtitle))):
        _say(figure, scene, 0.25, at, text, size)
    links: dict[str, str] = {}
    for number, panel in enumerate(scene.panels, 1):
        _panel(figure, scene, panel, "" if number == 1 else str(number), links)
    figure.update_layout(
        height=scene.height * PIXELS, margin={"l": 0, "r": 0, "t": 0, "b": 0, "pad": 4}, template="plotly_white",
        font={"family": "system-ui, sans-serif", "color": INK}, paper_bgcolor=CLEAR, plot_bgcolor=CLEAR,
        barmode="overlay", hovermode="closest", dragmode="zoom",
        hoverlabel={"align": "left", "bgcolor": "white", "font": {"color": INK}},
    )  # fmt: skip
    config = {"displaylogo": False, "responsive": True, "scrollZoom": any(panel.square for panel in scene.panels)}
    page: str = figure.to_html(include_plotlyjs=True, full_html=whole, config=config)
    return page


def _say(figure: Any, scene: Scene, left: float, top: float, text: str, size: float, align: str = "left") -> None:
    place = {"xref": "paper", "yref": "paper", "x": left / WIDTH, "y": 1 - top / scene.height}
    figure.add_annotation(text=text, font={"size": size}, xanchor=align, yanchor="middle", showarrow=False, **place)


def _panel(figure: Any, scene: Scene, panel: Panel, number: str, links: dict[str, str]) -> None:
    low = 1 - (panel.top + panel.height) / scene.height
    domains = ([panel.left / WIDTH, (panel.left + panel.width) / WIDTH], [max(low, 0.0), 1 - panel.top / scene.height])
    for which, axis, domain, other in zip("xy", (panel.x, panel.y), domains, "yx", strict=True):
        layout = _axis(axis) | {"domain": domain, "anchor": f"{other}{number}", "visible": not panel.bare}
        if axis.link in links:
            layout["matches"] = links[axis.link]
        elif axis.link:
            links[axis.link] = f"{which}{number}"
        if panel.square:
            layout |= {"constrain": "domain", "constraintoward": "left" if which == "x" else "top"}
            layout |= {"scaleanchor": f"x{number}"} if which == "y" else {}
        figure.update_layout({f"{which}axis{number}": layout})
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    named = {key.label for other in scene.panels for key in other.keys}
    for mark in panel.marks:
        if isinstance(mark, Words) and mark.outside:
            _beside(figure, scene, panel, mark)
            continue
        for trace in _traces(mark, panel):
            name = getattr(mark, "name", "")
            group = {"legendgroup": name} if name in named else {}
            figure.add_trace(trace.update(showlegend=False, **group, **axes))
    left = panel.edge
    if panel.heading:
        top = panel.top - LINE * len(panel.legend) - 0.16
        _say(figure, scene, left, top, f"<b>{safe(panel.heading)}</b>", 13)
    place: dict[str, Any] = {"x": (left - 0.08) / WIDTH, "xanchor": "left", "yanchor": "top", "orientation": "h"}
    place["y"] = 1 - (panel.top - LINE * len(panel.legend) - 0.04) / scene.height
    if panel.inside:
        right, bottom = panel.left + panel.width - 0.1, panel.top + panel.height - 0.1
        place = {"x": right / WIDTH, "xanchor": "right", "y": 1 - bottom / scene.height, "yanchor": "bottom"}
    for key in panel.keys:
        legend = f"legend{number}"
        figure.add_trace(_entry(key).update(legend=legend, legendgroup=key.label, **axes))
        figure.update_layout({legend: place | {"bgcolor": CLEAR, "font": {"size": 12}}})


def _beside(figure: Any, scene: Scene, panel: Panel, mark: Words) -> None:
    """Say what stands beside the axes: there plotly draws no marks."""
    size = np.broadcast_to(np.array(mark.size), len(mark.texts))
    for (x, y), text, points in zip(np.asarray(mark.at).tolist(), mark.texts, size.tolist(), strict=True):
        left = panel.left + (x - panel.x.low) / (panel.x.high - panel.x.low) * panel.width
        top = panel.top + panel.height - (y - panel.y.low) / (panel.y.high - panel.y.low) * panel.height
        _say(figure, scene, left, top, safe(text), points * PIXELS / 72, mark.align)


def _axis(axis: Axis) -> dict[str, Any]:
    layout: dict[str, Any] = {"range": [axis.low, axis.high], "title": {"text": safe(axis.label), "font": {"size": 13}}}
    layout |= {"showgrid": axis.grid, "gridcolor": GRID, "zeroline": False, "tickfont": {"color": GREY, "size": 11.5}}
    layout |= {"linecolor": FAINT, "showline": False}
    layout |= {"showticklabels": False, "title": {"text": ""}} if axis.quiet else {}
    if axis.log:
        layout |= {"type": "log", "range": [np.log10(axis.low), np.log10(axis.high)]}
    if axis.ticks is not None:
        words = [safe(text.replace("\n", "<br>")) for _, text in axis.ticks]
        layout |= {"tickvals": [at for at, _ in axis.ticks], "ticktext": words}
    return layout


def _entry(key: Key) -> Any:
    colour = key.colours[-1] if key.look == "box" else key.colours[0]
    entry = go.Scatter(x=[None], y=[None], name=safe(key.label), showlegend=True)
    if key.look in {"line", "dash"}:
        dash = "solid" if key.look == "line" else "dash"
        return entry.update(mode="lines", line={"color": colour, "width": 2, "dash": dash})
    symbol = {"box": "square", "hatch": "square"}.get(key.look) or SYMBOLS[key.look]
    marker = {"color": colour, "symbol": symbol, "size": 12, "line": {"color": key.colours[-1], "width": 1}}
    marker |= {} if key.look else {"color": CLEAR, "line": {"width": 0}}
    return entry.update(mode="markers", marker=marker)


@singledispatch
def _traces(mark: Mark, panel: Panel) -> Iterator[Any]:
    raise TypeError(type(mark).__name__)


@_traces.register
def _(mark: Boxes, panel: Panel) -> Iterator[Any]:
    at = np.asarray(mark.at, dtype=np.float64)
    if not len(at):
        return
    hover = _hover(mark.texts)
    pattern = {"shape": "/", "fgcolor": mark.edge, "size": 6} if mark.hatch else {}
    if len(at) <= MOST_BARS:
        colour = np.broadcast_to(np.array(mark.colour, dtype=object), len(at)).tolist()
        # what is narrower than a pixel would vanish without a line of its colour
        wide = at[:, 2] * panel.scale[0] * PIXELS > 4
        edges = [(mark.edge or c) if w else c for w, c in zip(wide, colour, strict=True)]
        line = {"color": edges, "width": np.where(wide & bool(mark.edge), mark.line, 0.7).tolist()}
        bars = {"base": at[:, 0], "x": at[:, 2], "y": at[:, 1] + at[:, 3] / 2, "width": np.abs(at[:, 3])}
        yield go.Bar(
            orientation="h",
            marker={"color": [c or CLEAR for c in colour], "line": line, "pattern": pattern},
            **{name: values.round(6).tolist() for name, values in bars.items()},
            **hover,
        )
        return
    for colour, mine in _by_colour(mark.colour, len(at)):
        x, y = (np.stack([at[mine, k], at[mine, k] + at[mine, k + 2]], axis=1) for k in (0, 1))
        paths = [np.stack([a[[0, 1, 1, 0, 0]], b[[0, 0, 1, 1, 0]]], axis=1) for a, b in zip(x, y, strict=True)]
        line = {"color": mark.edge or colour, "width": mark.line if mark.edge else 0}
        yield _path(paths).update(fill="toself", fillcolor=colour, line=line)
    if mark.texts:
        yield from _traces(Dots(at[:, :2] + at[:, 2:] / 2, shape="", texts=mark.texts), panel)


@_traces.register
def _(mark: Lines, panel: Panel) -> Iterator[Any]:
    paths = [np.asarray(path, dtype=np.float64) for path in mark.paths]
    widths = np.round(np.broadcast_to(np.array(mark.width), len(paths)) * 1.2, 1)
    for colour, of_colour in _by_colour(mark.colour, len(paths)):
        for width in np.unique(widths[of_colour]).tolist():
            mine = [paths[i] for i in of_colour if widths[i] == width]
            line = {"color": colour, "width": 0 if mark.fill else width, "dash": "dash" if mark.dash else "solid"}
            fill = {"fill": "toself", "fillcolor": colour} if mark.fill else {}
            yield _path(mine).update(line=line, opacity=mark.opacity, **fill)


@_traces.register
def _(mark: Dots, panel: Panel) -> Iterator[Any]:
    if not len(mark.at):
        return
    size = (np.broadcast_to(np.array(mark.size), len(mark.at)) * PIXELS / 72).round(2).tolist()
    colour = mark.colour if isinstance(mark.colour, str) else list(mark.colour)
    marker: dict[str, Any] = {"color": colour, "size": size, "symbol": SYMBOLS[mark.shape], "opacity": 1}
    marker |= {"line": {"color": mark.edge, "width": 0.6}} if mark.shape else {"color": CLEAR, "size": 6}
    x, y = np.asarray(mark.at, dtype=np.float64).round(6).T.tolist()
    yield go.Scatter(x=x, y=y, mode="markers", marker=marker, **_hover(mark.texts))


@_traces.register
def _(mark: Words, panel: Panel) -> Iterator[Any]:
    if not len(mark.at):
        return
    x, y = np.asarray(mark.at, dtype=np.float64).round(6).T.tolist()
    size = (np.broadcast_to(np.array(mark.size), len(x)) * PIXELS / 72).round(2).tolist()
    colour = mark.colour if isinstance(mark.colour, str) else list(mark.colour)
    where = {"left": "middle right", "center": "middle center", "right": "middle left"}[mark.align]
    look = {"textposition": where, "textfont": {"size": size, "color": colour}, "hoverinfo": "skip"}
    yield go.Scatter(x=x, y=y, mode="text", text=[safe(text) for text in mark.texts], **look)


@_traces.register
def _(mark: Heat, panel: Panel) -> Iterator[Any]:
    x, y, width, height = mark.box
    rows, columns = mark.values.shape
    places = {"x": (x + (np.arange(columns) + 0.5) * width / columns).round(6).tolist()}
    places["y"] = (y + (np.arange(rows) + 0.5) * height / rows).round(6).tolist()
    scale = [[i / (len(mark.shades) - 1), colour] for i, colour in enumerate(mark.shades)]
    told: dict[str, Any] = {"hoverinfo": "skip"}
    if mark.rows:
        told = {"customdata": [[name] * columns for name in mark.rows]}
        told["hovertemplate"] = "%{customdata}: %{z:.1%}<extra></extra>"
    missing = np.isnan(mark.values)
    values = np.where(missing, None, mark.values.round(4)).tolist()  # type: ignore[call-overload]
    yield go.Heatmap(z=values, colorscale=scale, zmin=0, zmax=1, showscale=False, **places, **told)
    if missing.any():
        look = {"colorscale": [[0, mark.missing], [1, mark.missing]], "showscale": False, "hoverinfo": "skip"}
        yield go.Heatmap(z=np.where(missing, 0.0, None).tolist(), **places, **look)  # type: ignore[call-overload]


def _hover(texts: Sequence[str]) -> dict[str, Any]:
    return {"hovertext": [safe(text) for text in texts], "hoverinfo": "text"} if texts else {"hoverinfo": "skip"}


def _by_colour(colour: str | Sequence[str], count: int) -> list[tuple[str, list[int]]]:
    """Return the indices of each colour."""
    if isinstance(colour, str):
        return [(colour, list(range(count)))] if count else []
    found: dict[str, list[int]] = defaultdict(list)
    for i, one in enumerate(colour):
        found[one].append(i)
    return list(found.items())


def _path(paths: Sequence[FloatArray]) -> Any:
    """Return one trace of several polylines: None between two of them lifts the pen."""
    x, y = ([v for path in paths for v in [*path[:, k].round(6).tolist(), None]] for k in (0, 1))
    return go.Scatter(x=x, y=y, mode="lines", hoverinfo="skip")


def safe(text: str) -> str:
    """Return `text` with all but our own line breaks escaped: names come from files."""
    return "<br>".join(escape(part) for part in text.split("<br>"))
