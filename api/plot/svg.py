"""A scene as SVG that needs no package; what a pointer is told is the title of its element, of class ``item``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import singledispatch
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

import numpy as np

from .colours import FAINT, GREY, GRID, INK, mixed
from .scene import LINE, WIDTH, Axis, Boxes, Dots, FloatArray, Heat, Key, Lines, Mark, Panel, Scene, Words

PIXELS, POINT = 96.0, 96.0 / 72
"""Of an inch and of a point, as CSS has them."""
HATCH = 5.0
"""Pixels between two lines of hatching."""
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML has no way to write."""
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}


def safe(text: str) -> str:
    """Return text for XML: names come from files."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def draw(scene: Scene) -> str:
    """Return the document; nothing in it refers to an id, so that several can be in one page."""
    size, name = f"{WIDTH * PIXELS:.0f} {scene.height * PIXELS:.0f}", safe(scene.title)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="group" aria-label="{name}" '
    title = _said(24, 0.30 * PIXELS, scene.title, 15, weight="bold")
    parts = [part for panel in scene.panels for part in _panel(panel)]
    subtitle = _said(24, 0.60 * PIXELS, scene.subtitle, 11.5, GREY)
    return "".join([head, 'font-family="system-ui, sans-serif">', title, subtitle, *parts, "</svg>\n"])


def ticks_of(axis: Axis) -> list[tuple[float, str]]:
    """Return places and words of an axis: given ones, or round numbers."""
    if axis.ticks is not None:
        return list(axis.ticks)
    low, high = sorted((axis.low, axis.high))
    if axis.log:
        return [(10.0**k, f"{10.0**k:g}") for k in range(ceil(log10(low)), floor(log10(high)) + 1)]
    raw = (high - low) / 6 or 1.0
    size = 10.0 ** floor(log10(raw))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= raw * 0.999)
    return [(k * step, f"{k * step:.10g}") for k in range(ceil(low / step), floor(high / step + 1e-9) + 1)]


def _said(x: float, y: float, text: str, size: float, colour: str = INK, align: str = "left", **more: str) -> str:
    size *= POINT
    look = "".join(f' {"font-weight" if name == "weight" else name}="{safe(v)}"' for name, v in more.items() if v)
    look += ' paint-order="stroke" stroke-width="3"' if more.get("stroke") else ""
    # letters stand on a line a third of their size below their middle
    where = f'x="{x:.1f}" y="{y + size * 0.35:.1f}" font-size="{size:.1f}" text-anchor="{_ANCHORS[align]}"'
    return f'<text {where} fill="{safe(colour)}"{look}>{safe(text)}</text>'


def _panel(panel: Panel) -> Iterator[str]:
    left, top, width, height = (v * PIXELS for v in (panel.left, panel.top, panel.width, panel.height))
    inside = panel.edge * PIXELS
    yield f'<g transform="translate({left:.1f} {top:.1f})">'
    if panel.heading:
        yield _said(inside - left, -(LINE * len(panel.legend) + 0.16) * PIXELS, panel.heading, 10.5, weight="bold")
    if not panel.bare:
        yield from _axes(panel, width, height)
    yield f'<svg width="{width:.1f}" height="{height:.1f}">'  # which cuts off what is outside
    for mark in sorted(panel.marks, key=lambda mark: getattr(mark, "outside", False)):
        if getattr(mark, "outside", False):
            yield '</svg><svg overflow="visible">'
        yield from _draw(mark, panel)
    yield "</svg>"
    for i, keys in enumerate(panel.lines):
        x, y = inside - left, -LINE * PIXELS * (len(panel.lines) - i - 0.5)
        if panel.inside:
            x, y = width - sum(map(_room, keys)), height - 12
        for key in keys:
            yield from _key(key, x, y)
            x += _room(key)
    yield "</g>"


def _room(key: Key) -> float:
    """Return the pixels that an entry of a legend takes: no more than in `Panel.legend`."""
    return (0.46 + len(key.label) * 0.072) * PIXELS


def _key(key: Key, x: float, y: float) -> Iterator[str]:
    colour, box = key.colours[0], np.array([[x, y - 5, 22, 10]])
    if key.look in ("line", "dash"):
        yield _path([np.array([[x, y], [x + 22, y]])], colour, 2, dash=key.look == "dash")
    elif key.look in ("box", "hatch"):
        shades = key.colours[: 2 if key.look == "box" else 1]
        for i, shade in enumerate(shades):
            size = 22 / len(shades)
            yield f'<rect x="{x + i * size:.1f}" y="{y - 5:.1f}" width="{size:.1f}" height="10" fill="{safe(shade)}"/>'
        yield _hatching(box, key.colours[-1], 0.8) if key.look == "hatch" else ""
    elif key.look:
        yield f"{_dot(key.look, x + 11, y, 5, colour, INK)}/>"
    yield _said(x + (28 if key.look else 0), y, key.label, 9)


def _axes(panel: Panel, width: float, height: float) -> Iterator[str]:
    yield _path([np.array([[0, height], [width, height]])], FAINT, 1)
    for axis, across in ((panel.x, True), (panel.y, False)):
        found = ticks_of(axis)
        if axis.ticks is None and not across and height < PIXELS:
            found = found[:: max(1, len(found) // 2)]
        at = _at(panel, [(v, panel.y.low) if across else (panel.x.low, v) for v, _ in found] or np.zeros((0, 2)))
        rows = 0
        for (x, y), (_, words) in zip(at.tolist(), found, strict=True):
            if axis.grid:
                yield _path([np.array([[x, 0], [x, height]] if across else [[0, y], [width, y]])], GRID, 1)
            for i, line in enumerate([] if axis.quiet else words.split("\n") if across else [words]):
                if across:
                    yield _said(x, height + 13 + 13 * i, line, 8.5, GREY, "center")
                else:
                    yield _said(-7, y, line, 8.5, GREY, "right")
                rows = max(rows, i)
        if axis.label and not axis.quiet:
            place = f"{width / 2:.1f} {height + 33 + 12 * rows:.1f}" if across else f"-64 {height / 2:.1f}"
            turn = "" if across else " rotate(-90)"
            yield f'<g transform="translate({place}){turn}">{_said(0, 0, axis.label, 9.5, align="center")}</g>'


def _at(panel: Panel, points: Any) -> FloatArray:
    """Return pixels inside a panel of points on its axes, float (..., 2)."""
    given, shares = np.asarray(points, dtype=np.float64), []
    for k, axis in enumerate((panel.x, panel.y)):
        turn = np.log10 if axis.log else np.asarray
        low, high, value = (turn(v) for v in (axis.low, axis.high, given[..., k]))
        shares.append((value - low) / (high - low or 1.0))
    return np.stack([shares[0] * panel.width * PIXELS, (1 - shares[1]) * panel.height * PIXELS], axis=-1)


def _each(value: Any, count: int) -> list[Any]:
    """Return a value of all, or of each, as one of each."""
    return [value] * count if isinstance(value, str | int | float) else list(value)


def _item(shape: str, text: str, kind: str = "item") -> str:
    told, name = safe(text.replace("<br>", "\n")), shape[1 : shape.index(" ")]
    return f'{shape} class="{kind}"><title>{told}</title></{name}>' if told else f"{shape}/>"


@singledispatch
def _draw(mark: Mark, panel: Panel) -> Iterator[str]:
    raise TypeError(type(mark).__name__)


@_draw.register
def _(mark: Boxes, panel: Panel) -> Iterator[str]:
    given = np.asarray(mark.at, dtype=np.float64).reshape(-1, 4)
    a, b = _at(panel, given[:, :2]), _at(panel, given[:, :2] + given[:, 2:])
    at = np.concatenate([np.minimum(a, b), np.maximum(np.abs(a - b), 0.7)], axis=1)
    line = f' stroke="{safe(mark.edge)}" stroke-width="{mark.line * POINT:.2f}"' if mark.edge and not mark.hatch else ""
    texts = mark.texts or [""] * len(at)
    for (x, y, w, h), c, text in zip(at.tolist(), _each(mark.colour, len(at)), texts, strict=True):
        where = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
        yield _item(f'<rect {where} fill="{safe(c or "none")}"{line if w > 4 else ""}', text)
    if mark.hatch:
        yield _hatching(at, mark.edge, mark.line)


@_draw.register
def _(mark: Lines, panel: Panel) -> Iterator[str]:
    paths = [_at(panel, path) for path in mark.paths]
    groups: dict[tuple[str, float], list[FloatArray]] = defaultdict(list)
    for path, c, width in zip(paths, _each(mark.colour, len(paths)), _each(mark.width, len(paths)), strict=True):
        groups[c, float(width)].append(path)
    for (c, width), mine in groups.items():
        yield _path(mine, c, width * POINT, dash=mark.dash, opacity=mark.opacity, fill=mark.fill)


@_draw.register
def _(mark: Dots, panel: Panel) -> Iterator[str]:
    at = _at(panel, np.reshape(mark.at, (-1, 2)))
    sizes, texts = _each(mark.size, len(at)), mark.texts or [""] * len(at)
    for (x, y), c, size, text in zip(at.tolist(), _each(mark.colour, len(at)), sizes, texts, strict=True):
        radius = size * POINT / 2 if mark.shape else 6.0
        yield _item(_dot(mark.shape, x, y, radius, c, mark.edge), text, "item" if mark.shape else "spot")


@_draw.register
def _(mark: Words, panel: Panel) -> Iterator[str]:
    at, n = _at(panel, np.reshape(mark.at, (-1, 2))), len(mark.texts)
    looks = (_each(mark.size, n), _each(mark.colour, n), mark.halo or [""] * n)
    yield '<g pointer-events="none">'
    for (x, y), text, size, c, halo in zip(at.tolist(), mark.texts, *looks, strict=True):
        yield _said(x, y, text, size, c, mark.align, stroke=halo)
    yield "</g>"


@_draw.register
def _(mark: Heat, panel: Panel) -> Iterator[str]:
    (x, y, width, height), (rows, columns) = mark.box, mark.values.shape
    w, h = width / columns, height / rows
    yield '<g shape-rendering="crispEdges">'  # no seams
    for i, row in enumerate(mark.values):
        known = mixed(np.nan_to_num(row), mark.shades)
        shades = [mark.missing if np.isnan(v) else c for v, c in zip(row, known, strict=True)]
        starts = [j for j in range(columns) if not j or shades[j] != shades[j - 1]]
        at = np.array([(x + a * w, y + i * h, (b - a) * w, h) for a, b in pairwise([*starts, columns])])
        yield from _draw(Boxes(at, [shades[a] for a in starts], list(mark.rows[i : i + 1]) * len(at)), panel)
    yield "</g>"


def _dot(look: str, x: float, y: float, r: float, colour: str, edge: str) -> str:
    """Return the beginning of the element of a dot; one without a look is only pointed at."""
    if look in ("o", ""):
        paint = f'fill="{safe(colour)}" stroke="{safe(edge)}"' if look else 'fill="none" pointer-events="all"'
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" {paint}'
    steps = {"|": "m0 -1v2", "x": "m-1 -1l2 2m0 -2l-2 2"}.get(look, "m0 -1l1 1l-1 1l-1 -1z")
    size = f'd="M0 0{steps}" transform="translate({x:.1f} {y:.1f}) scale({r:.1f})"'
    paint = f'fill="none" stroke="{safe(colour)}"' if look in "|x" else f'fill="{safe(colour)}" stroke="{safe(edge)}"'
    return f'<path {size} {paint} stroke-width="{2 / r if look in "|x" else 1 / r:.2f}"'


def _path(
    paths: Sequence[FloatArray], colour: str, width: float, dash: bool = False, opacity: float = 1, fill: bool = False
) -> str:
    points = ([f"{x:.1f} {y:.1f}" for x, y in path.tolist()] for path in paths)
    kept = ([p for p, before in zip(path, ["", *path], strict=False) if p != before] for path in points)
    look = f'fill="{safe(colour)}"' if fill else f'fill="none" stroke="{safe(colour)}" stroke-width="{width:.2f}"'
    look += (' stroke-dasharray="6 4"' if dash else "") + (f' opacity="{opacity:g}"' if opacity < 1 else "")
    return f'<path d="{"".join("M" + "L".join(path) for path in kept)}" {look} pointer-events="none"/>'


def _hatching(at: FloatArray, colour: str, width: float) -> str:
    """Return boxes with an outline and lines that rise to the right."""
    paths = []
    for x, y, w, h in at.tolist():
        paths.append(np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]))
        for c in np.arange(HATCH, w + h, HATCH).tolist():
            a, b = max(0.0, c - h), min(w, c)
            paths.append(np.array([[x + a, y + c - a], [x + b, y + c - b]]))
    return _path(paths, colour, width * POINT)
