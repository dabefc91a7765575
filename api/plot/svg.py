"""Draw a scene as SVG, which needs no package; what a pointer is told is the title of an element of class ``item``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial, singledispatch
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

import numpy as np

from .colours import FAINT, GREY, GRID, INK, mixed
from .scene import CHARACTER, LINE, Axis, Boxes, Dots, FloatArray, Heat, Key, Lines, Mark, Panel, Scene, Words

PIXELS, POINT = 96.0, 96.0 / 72
"""Of an inch and of a point, as CSS has them."""
HATCH = 5.0
"""Pixels between two lines of hatching."""
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML has no way to write."""
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}
_CORNERS: dict[str, list[list[tuple[float, float]]]] = {
    "|": [[(0, -1), (0, 1)]],
    "x": [[(-1, -1), (1, 1)], [(1, -1), (-1, 1)]],
    "D": [[(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0), (0, -1.4)]],
}
"""Of dots that are no circles, from their middle."""
Place = Callable[[Any], FloatArray]
"""What makes pixels, from the upper left corner of the picture, of points, float (..., 2)."""


def draw(scene: Scene) -> str:
    """Return the document; nothing in it refers to an id, so that several can be in one page.

    What an entry of a legend names has its ``data-name``.
    """
    size, name = f"{scene.width * PIXELS:.0f} {scene.height * PIXELS:.0f}", safe(scene.title)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="group" aria-label="{name}" '
    title = _said(24, 0.30 * PIXELS, scene.title, 15, bold=True)
    subtitle = _said(24, 0.60 * PIXELS, scene.subtitle, 11.5, GREY)
    panels = (element for panel in scene.panels for element in _panel(panel))
    return "".join([head, 'font-family="system-ui, sans-serif">', _drawn([title, subtitle]), *panels, "</svg>\n"])


def safe(text: str) -> str:
    """Return text for XML: names come from files."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def each(value: Any, count: int) -> list[Any]:
    """Return a value of all, or of each, as one of each."""
    return [value] * count if isinstance(value, str | int | float) else list(value)


def ticks_of(axis: Axis, inches: float) -> list[tuple[float, str]]:
    """Return places and words of an axis: given ones, or round numbers, as many as have room."""
    if axis.ticks is not None:
        return list(axis.ticks)
    low, high = sorted((axis.low, axis.high))
    if axis.log:
        return [(10.0**k, f"{10.0**k:g}") for k in range(ceil(log10(low)), floor(log10(high)) + 1)]
    raw = (high - low) / (3 if inches < 1 else 6 if inches < 6 else 12) or 1.0
    size = 10.0 ** floor(log10(raw))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= raw * 0.999)
    return [(k * step, f"{k * step:.10g}") for k in range(ceil(low / step), floor(high / step + 1e-9) + 1)]


def _said(x: float, y: float, text: str, size: float, colour: str = INK, bold: bool = False) -> Words:
    return Words(np.array([[x, y]]), [text], size, colour, "left", bold=bold)


def _frame(panel: Panel) -> tuple[float, float, float, float]:
    return panel.left * PIXELS, panel.top * PIXELS, panel.width * PIXELS, panel.height * PIXELS


def _at(panel: Panel, points: Any) -> FloatArray:
    """Return pixels of points on the axes of a panel."""
    given, shares = np.asarray(points, dtype=np.float64), []
    for k, axis in enumerate((panel.x, panel.y)):
        turn = np.log10 if axis.log else np.asarray
        low, high, value = (turn(v) for v in (axis.low, axis.high, given[..., k]))
        shares.append((value - low) / (high - low or 1.0))
    left, top, width, height = _frame(panel)
    return np.stack([left + shares[0] * width, top + (1 - shares[1]) * height], axis=-1)


def _panel(panel: Panel) -> Iterator[str]:
    edge, top, place = panel.edge * PIXELS, panel.top * PIXELS, partial(_at, panel)
    if panel.heading:
        yield _drawn([_said(edge, top - (LINE * len(panel.legend) + 0.16) * PIXELS, panel.heading, 10.5, bold=True)])
    if not panel.bare:
        yield _drawn(_axes(panel))
    x, y, width, height = (f"{v:.1f}" for v in _frame(panel))
    box = f'x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}"'
    beside = [mark for mark in panel.marks if isinstance(mark, Words) and mark.outside]
    inside = [mark for mark in panel.marks if not isinstance(mark, Words) or not mark.outside]
    yield f"<svg {box}>{_drawn(inside, place)}</svg>"  # which cuts off what is outside
    yield _drawn(beside, place)
    for i, keys in enumerate(panel.legend):
        left, middle = edge, top - LINE * PIXELS * (len(panel.legend) - i - 0.5)
        for key in keys:
            name = f'<g class="key" data-name="{safe(key.label)}">' if key.label else ""
            yield f"{name}{_drawn(_key(key, left, middle))}{'</g>' if name else ''}"
            left += key.room * PIXELS


def _key(key: Key, x: float, y: float) -> Iterator[Mark]:
    colour, wide = key.colours[0], 80 if key.look == "ramp" else 22
    if key.look in ("line", "dash"):
        yield Lines([[(x, y), (x + 22, y)]], colour, 1.5, dash=key.look == "dash")
    elif key.look in ("box", "hatch", "ramp"):
        shades = key.colours[: {"box": 2, "hatch": 1}.get(key.look)]
        size = wide / len(shades)
        yield Boxes(np.array([[x + i * size, y - 5, size, 10] for i in range(len(shades))]), shades)
        if key.look == "hatch":
            yield _hatching(np.array([[x, y - 5, 22, 10]]), key.colours[-1], 0.6)
    elif key.look:
        yield Dots(np.array([[x + 11, y]]), colour, 7.5, key.look, INK)
    yield _said(x + (wide + 6 if key.look else 0), y, key.label, 9)


def _axes(panel: Panel) -> Iterator[Mark]:
    left, top, width, height = _frame(panel)
    right, bottom = left + width, top + height
    yield Lines([[(left, bottom), (right, bottom)]], FAINT, 0.75)
    for axis, across in ((panel.x, True), (panel.y, False)):
        ticks = ticks_of(axis, panel.width if across else panel.height)
        at = _at(panel, [(v, panel.y.low) if across else (panel.x.low, v) for v, _ in ticks] or np.zeros((0, 2)))
        if axis.grid:
            yield Lines([[(x, top), (x, bottom)] if across else [(left, y), (right, y)] for x, y in at], GRID, 0.75)
        if axis.quiet:
            continue
        lines = [text.split("\n") for _, text in ticks] or [[""]]
        places = [(x, bottom + 13) if across else (left - 7, y) for x, y in at.tolist()]
        said = zip(places, lines, strict=False)
        told = [(x, y + 13 * i, line, 8.5, GREY) for (x, y), part in said for i, line in enumerate(part)]
        if words := Words.of(told, "center" if across else "right"):
            yield words
        wide = 8.5 * POINT * CHARACTER * max(len(line) for part in lines for line in part)
        below, beside = bottom + 21 + 12 * max(map(len, lines)), left - 19 - wide
        at = np.array([[(left + right) / 2, below] if across else [beside, (top + bottom) / 2]])
        yield Words(at, [axis.label], 9.5, turned=not across)


def _hatching(at: FloatArray, colour: str, width: float) -> Lines:
    """Return boxes with an outline and lines that rise to the right."""
    paths = []
    for x, y, w, h in at.tolist():
        paths.append([(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)])
        for c in np.arange(HATCH, w + h, HATCH).tolist():
            a, b = max(0.0, c - h), min(w, c)
            paths.append([(x + a, y + c - a), (x + b, y + c - b)])
    return Lines(paths, colour, width)


def _drawn(marks: Iterable[Mark], place: Place = np.asarray) -> str:
    """Return marks at places on axes, or in pixels, as elements."""
    return "".join(element for mark in marks for element in _elements(mark, place))


@singledispatch
def _elements(mark: Mark, place: Place) -> Iterator[str]:
    raise TypeError(type(mark).__name__)


@_elements.register
def _(mark: Boxes, place: Place) -> Iterator[str]:
    given = np.asarray(mark.at, dtype=np.float64).reshape(-1, 4)
    a, b = place(given[:, :2]), place(given[:, :2] + given[:, 2:])
    if mark.crisp:
        a, b = np.round(a), np.round(b)
    at = np.concatenate([np.minimum(a, b), np.maximum(np.abs(a - b), 0.7)], axis=1)
    n, width = len(at), f'stroke-width="{mark.line * POINT:.2f}"'
    crisp = ' shape-rendering="crispEdges"' if mark.crisp else ""  # no seams
    columns = (each(mark.colour, n), each(mark.edge, n), mark.texts or [""] * n, each(mark.name, n))
    for (x, y, w, h), c, edge, text, name in zip(at.tolist(), *columns, strict=True):
        line = f' stroke="{safe(edge)}" {width}' if edge and w > 4 and not mark.hatch else crisp
        where = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
        yield _item(f'<rect {where} fill="{safe(c or "none")}"{line}', text, name)
    if mark.hatch:
        yield from _elements(_hatching(at, str(mark.edge), mark.line), np.asarray)


@_elements.register
def _(mark: Lines, place: Place) -> Iterator[str]:
    paths = [place(np.asarray(path, dtype=np.float64)) for path in mark.paths]
    alike: dict[tuple[str, float], list[FloatArray]] = defaultdict(list)
    for path, c, width in zip(paths, each(mark.colour, len(paths)), each(mark.width, len(paths)), strict=True):
        alike[c, float(width)].append(path)
    more = (' stroke-dasharray="6 4"' if mark.dash else "") + (f' opacity="{mark.opacity:g}"' * (mark.opacity < 1))
    for (c, width), mine in alike.items():
        line = f'fill="none" stroke="{safe(c)}" stroke-width="{width * POINT:.2f}"{more} pointer-events="none"'
        yield _item(f'<path d="{_way(mine)}" {line}', "", mark.name)


@_elements.register
def _(mark: Dots, place: Place) -> Iterator[str]:
    at = place(np.reshape(mark.at, (-1, 2)))
    n, edge, open_ = len(at), safe(mark.edge), mark.shape in ("|", "x")
    columns = (each(mark.colour, n), each(mark.size, n), mark.texts or [""] * n, each(mark.name, n))
    for (x, y), c, size, text, name in zip(at.tolist(), *columns, strict=True):
        r = size * POINT / 2 if mark.shape else 6.0
        paint = f'fill="none" stroke="{safe(c)}" stroke-width="2"' if open_ else f'fill="{safe(c)}" stroke="{edge}"'
        paint = paint if mark.shape else 'fill="none" pointer-events="all"'
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" {paint}'
        if corners := _CORNERS.get(mark.shape):
            shape = f'<path d="{_way((x, y) + r * np.array(part) for part in corners)}" {paint}'
        yield _item(shape, text, name, "item" if mark.shape else "spot")


@_elements.register
def _(mark: Words, place: Place) -> Iterator[str]:
    n, bold = len(mark.texts), ' font-weight="bold"' * mark.bold
    at = place(np.reshape(mark.at, (-1, 2))).tolist()
    columns = (at, mark.texts, each(mark.size, n), each(mark.colour, n), mark.halo or [""] * n)
    yield '<g pointer-events="none">'
    for (x, y), text, points, c, halo in zip(*columns, strict=True):
        size = points * POINT
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if mark.turned else ""
        look = f'{bold}{turn} stroke="{safe(halo)}" paint-order="stroke" stroke-width="3"' if halo else bold + turn
        # letters stand on a line a third of their size below their middle
        where = f'x="{x:.1f}" y="{y + size * 0.35:.1f}" font-size="{size:.1f}" text-anchor="{_ANCHORS[mark.align]}"'
        yield f'<text {where} fill="{safe(c)}"{look}>{safe(text)}</text>'
    yield "</g>"


@_elements.register
def _(mark: Heat, place: Place) -> Iterator[str]:
    (x, y, width, height), (rows, columns) = mark.box, mark.values.shape
    w, h = width / columns, height / rows
    for i, row in enumerate(mark.values):
        known = mixed(np.nan_to_num(row), mark.shades)
        shades = [mark.missing if np.isnan(v) else c for v, c in zip(row, known, strict=True)]
        starts = [j for j in range(columns) if not j or shades[j] != shades[j - 1]]
        at = np.array([(x + a * w, y + i * h, (b - a) * w, h) for a, b in pairwise([*starts, columns])])
        texts = list(mark.rows[i : i + 1]) * len(at)
        yield from _elements(Boxes(at, [shades[a] for a in starts], texts, crisp=True), place)


def _way(paths: Iterable[Any]) -> str:
    """Return polylines in pixels as the way of a path; steps too short to be seen are left out."""
    points = ([f"{x:.1f} {y:.1f}" for x, y in path.tolist()] for path in paths)
    kept = ([p for p, before in zip(path, ["", *path], strict=False) if p != before] for path in points)
    return "".join("M" + "L".join(path) for path in kept)


def _item(shape: str, text: str, name: str, kind: str = "item") -> str:
    """Return an element, given its beginning, with what is told of it, and the entry of a legend that it is of."""
    told, tag = safe(text.replace("<br>", "\n")), shape[1 : shape.index(" ")]
    shape += f' data-name="{safe(name)}"' if name else ""
    return f'{shape} class="{kind}"><title>{told}</title></{tag}>' if told else f"{shape}/>"
