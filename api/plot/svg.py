"""A scene as SVG that needs no package: each thing has a title, a reader's page may find it by the class ``item``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from math import ceil, floor, log10
from typing import Any

import numpy as np

from .colours import FAINT, GREY, GRID, INK, mixed
from .scene import LINE, WIDTH, Axis, Boxes, Dots, FloatArray, Heat, Key, Lines, Mark, Panel, Scene, Words

PIXELS = 96.0
"""Of an inch, as CSS has it."""
POINT = PIXELS / 72
HATCH = 5.0
"""Pixels between two lines of hatching."""
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML has no way to write."""


def safe(text: str) -> str:
    """Return text for XML: names come from files."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def draw(scene: Scene) -> str:
    """Return the SVG document; nothing in it refers to an id, so that several can be in one page."""
    width, height = WIDTH * PIXELS, scene.height * PIXELS
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="group" '
        f'aria-label="{safe(scene.title)}" font-family="system-ui, sans-serif">',
        _said(24, 0.30 * PIXELS, scene.title, 15, INK, weight="bold"),
        _said(24, 0.60 * PIXELS, scene.subtitle, 11.5, GREY),
    ]
    for panel in scene.panels:
        parts += _panel(panel)
    return "".join([*parts, "</svg>\n"])


@dataclass(frozen=True, slots=True)
class _Frame:
    """Turn values on the axes of a panel into pixels inside it."""

    x: Axis
    y: Axis
    width: float
    height: float

    def at(self, points: Any) -> FloatArray:
        """Return pixels of points, float (..., 2)."""
        given = np.asarray(points, dtype=np.float64)
        shares = [_share(axis, given[..., k]) for k, axis in enumerate((self.x, self.y))]
        return np.stack([shares[0] * self.width, (1 - shares[1]) * self.height], axis=-1)

    def boxes(self, at: Any) -> FloatArray:
        """Return boxes with their upper left corners, wide enough to be seen."""
        given = np.asarray(at, dtype=np.float64).reshape(-1, 4)
        a, b = self.at(given[:, :2]), self.at(given[:, :2] + given[:, 2:])
        size = np.maximum(np.abs(a - b), 0.7)
        return np.concatenate([np.minimum(a, b), size], axis=1)


def _share(axis: Axis, values: FloatArray) -> FloatArray:
    """Return where values are on an axis, from 0 to 1."""
    low, high = (log10(axis.low), log10(axis.high)) if axis.log else (axis.low, axis.high)
    found: FloatArray = ((np.log10(values) if axis.log else values) - low) / ((high - low) or 1.0)
    return found


def _said(
    x: float, y: float, text: str, points: float, colour: str, align: str = "left", weight: str = "", halo: str = ""
) -> str:
    anchor = {"left": "", "center": ' text-anchor="middle"', "right": ' text-anchor="end"'}[align]
    more = f' font-weight="{weight}"' if weight else ""
    more += f' paint-order="stroke" stroke="{safe(halo)}" stroke-width="3"' if halo else ""
    size = points * POINT
    # the middle of letters is a third of their size above the line
    where = f'x="{x:.1f}" y="{y + size * 0.35:.1f}" font-size="{size:.1f}" fill="{safe(colour)}"'
    return f"<text {where}{anchor}{more}>{safe(text)}</text>"


def _panel(panel: Panel) -> Iterator[str]:
    left, top, width, height = (v * PIXELS for v in (panel.left, panel.top, panel.width, panel.height))
    frame = _Frame(panel.x, panel.y, width, height)
    inside = left if panel.left >= WIDTH / 4 else min(left, 24.0)
    if panel.heading:
        yield _said(inside, top - (LINE * len(panel.legend) + 0.16) * PIXELS, panel.heading, 10.5, INK, weight="bold")
    yield f'<g transform="translate({left:.1f} {top:.1f})">'
    if not panel.bare:
        yield from _across(panel.x, frame)
        yield from _up(panel.y, frame)
    yield f'<svg width="{width:.1f}" height="{height:.1f}">'  # which cuts off what is outside
    for mark in panel.marks:
        if not (isinstance(mark, Words) and mark.outside):
            yield from _draw(mark, frame)
    yield "</svg>"
    for mark in panel.marks:
        if isinstance(mark, Words) and mark.outside:
            yield from _draw(mark, frame)
    lines = [list(panel.keys)] if panel.inside else panel.legend
    for i, keys in enumerate(lines):
        x = width - sum(map(_room, keys)) if panel.inside else inside - left
        y = height - 12 if panel.inside else -LINE * PIXELS * (len(lines) - i - 0.5)
        for key in keys:
            yield from _key(key, x, y)
            x += _room(key)
    yield "</g>"


def _room(key: Key) -> float:
    """Return the pixels that an entry of a legend takes: no more than in `Panel.legend`."""
    return (0.46 + len(key.label) * 0.072) * PIXELS


def _key(key: Key, x: float, y: float) -> Iterator[str]:
    colour = key.colours[0]
    if key.look in ("line", "dash"):
        yield _path([np.array([[x, y], [x + 22, y]])], colour, 2, dash=key.look == "dash")
    elif key.look in ("box", "hatch"):
        size = 22 / len(key.colours[:2])
        for i, each in enumerate(key.colours[:1] if key.look == "hatch" else key.colours[:2]):
            yield f'<rect x="{x + i * size:.1f}" y="{y - 5:.1f}" width="{size:.1f}" height="10" fill="{safe(each)}"/>'
        if key.look == "hatch":
            yield _hatching(np.array([[x, y - 5, 22, 10]]), key.colours[-1], 0.8)
    elif key.look:
        yield f"{_shape(key.look, x + 11, y, 5)} {_paint(key.look, colour, INK)}/>"
    yield _said(x + (28 if key.look else 0), y, key.label, 9, INK)


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


def _across(axis: Axis, frame: _Frame) -> Iterator[str]:
    yield _path([np.array([[0, frame.height], [frame.width, frame.height]])], FAINT, 1)
    found = ticks_of(axis)
    for value, words in found:
        x = float(_share(axis, np.array(value))) * frame.width
        if axis.grid:
            yield _path([np.array([[x, 0], [x, frame.height]])], GRID, 1)
        for i, line in enumerate([] if axis.quiet else words.split("\n")):
            yield _said(x, frame.height + 13 + 13 * i, line, 8.5, GREY, "center")
    if axis.label and not axis.quiet:
        lines = max((words.count("\n") for _, words in found), default=0)
        yield _said(frame.width / 2, frame.height + 33 + 12 * lines, axis.label, 9.5, INK, "center")


def _up(axis: Axis, frame: _Frame) -> Iterator[str]:
    found = ticks_of(axis)
    if axis.ticks is None and frame.height < PIXELS:
        found = found[:: max(1, len(found) // 2)]
    for value, words in found:
        y = (1 - float(_share(axis, np.array(value)))) * frame.height
        if axis.grid:
            yield _path([np.array([[0, y], [frame.width, y]])], GRID, 1)
        if not axis.quiet:
            yield _said(-7, y, words.replace("\n", " "), 8.5, GREY, "right")
    if axis.label and not axis.quiet:
        yield f'<g transform="translate(-64 {frame.height / 2:.1f}) rotate(-90)">'
        yield f"{_said(0, 0, axis.label, 9.5, INK, 'center')}</g>"


def _each(value: Any, count: int) -> list[Any]:
    """Return a value of all, or of each, as one of each."""
    return [value] * count if isinstance(value, str | int | float) else list(value)


def _item(shape: str, text: str) -> str:
    told = safe(text.replace("<br>", "\n"))
    return f'{shape} class="item"><title>{told}</title></{shape[1 : shape.index(" ")]}>' if told else f"{shape}/>"


@singledispatch
def _draw(mark: Mark, frame: _Frame) -> Iterator[str]:
    raise TypeError(type(mark).__name__)


@_draw.register
def _(mark: Boxes, frame: _Frame) -> Iterator[str]:
    at = frame.boxes(mark.at)
    colour, texts = _each(mark.colour, len(at)), mark.texts or [""] * len(at)
    line = f' stroke="{safe(mark.edge)}" stroke-width="{mark.line * POINT:.2f}"' if mark.edge and not mark.hatch else ""
    for (x, y, w, h), c, text in zip(at.tolist(), colour, texts, strict=True):
        edge = line if w > 4 else ""
        where = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
        # what is not filled is no target
        yield _item(f'<rect {where} fill="{safe(c or "none")}"{edge}', text)
    if mark.hatch:
        yield _hatching(at, mark.edge, mark.line)


@_draw.register
def _(mark: Lines, frame: _Frame) -> Iterator[str]:
    paths = [frame.at(path) for path in mark.paths]
    groups: dict[tuple[str, float], list[FloatArray]] = defaultdict(list)
    for path, c, width in zip(paths, _each(mark.colour, len(paths)), _each(mark.width, len(paths)), strict=True):
        groups[c, float(width)].append(path)
    for (c, width), mine in groups.items():
        yield _path(mine, c, width * POINT, dash=mark.dash, opacity=mark.opacity, fill=mark.fill)


@_draw.register
def _(mark: Dots, frame: _Frame) -> Iterator[str]:
    at, texts = frame.at(np.reshape(mark.at, (-1, 2))), mark.texts or [""] * len(mark.at)
    dots = zip(at.tolist(), _each(mark.colour, len(at)), _each(mark.size, len(at)), texts, strict=True)
    for (x, y), c, size, text in dots:
        radius = size * POINT / 2 if mark.shape else 6.0
        yield _item(f"{_shape(mark.shape, x, y, radius)} {_paint(mark.shape, c, mark.edge)}", text)


@_draw.register
def _(mark: Words, frame: _Frame) -> Iterator[str]:
    at, count = frame.at(np.reshape(mark.at, (-1, 2))), len(mark.texts)
    halo = mark.halo or [""] * count
    sizes, colour = _each(mark.size, count), _each(mark.colour, count)
    yield '<g pointer-events="none">'
    for (x, y), text, size, c, h in zip(at.tolist(), mark.texts, sizes, colour, halo, strict=True):
        yield _said(x, y, text, size, c, mark.align, halo=h)
    yield "</g>"


@_draw.register
def _(mark: Heat, frame: _Frame) -> Iterator[str]:
    x, y, width, height = mark.box
    rows, columns = mark.values.shape
    yield '<g shape-rendering="crispEdges">'  # no seams
    for i, row in enumerate(mark.values):
        shades = [mark.missing if np.isnan(v) else c for v, c in zip(row, mixed(row, mark.shades), strict=True)]
        starts = [j for j in range(columns) if not j or shades[j] != shades[j - 1]]
        ends = [*starts[1:], columns]
        at = [(x + a * width / columns, y + i * height / rows, (b - a) * width / columns, height / rows)
              for a, b in zip(starts, ends, strict=True)]  # fmt: skip
        texts = [mark.rows[i]] * len(at) if mark.rows else ()
        yield from _draw(Boxes(np.array(at), [shades[a] for a in starts], texts), frame)
    yield "</g>"


def _shape(look: str, x: float, y: float, r: float) -> str:
    """Return the beginning of the element of a dot."""
    if look in ("o", ""):
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"'
    lines = {
        "|": f"M{x:.1f} {y - r:.1f}v{2 * r:.1f}",
        "x": f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}",
    }
    diamond = f"M{x:.1f} {y - r:.1f}l{r:.1f} {r:.1f}l{-r:.1f} {r:.1f}l{-r:.1f} {-r:.1f}z"
    return f'<path d="{lines.get(look, diamond)}"'


def _paint(look: str, colour: str, edge: str) -> str:
    if not look:
        return 'fill="none" pointer-events="all"'
    colour, edge = safe(colour), safe(edge)
    return f'stroke="{colour}" stroke-width="2"' if look in "|x" else f'fill="{colour}" stroke="{edge}"'


def _path(
    paths: Sequence[FloatArray],
    colour: str,
    width: float,
    *,
    dash: bool = False,
    opacity: float = 1.0,
    fill: bool = False,
) -> str:
    points = ([f"{x:.1f} {y:.1f}" for x, y in path.tolist()] for path in paths)
    steps = "".join(
        "M" + "L".join(p for p, before in zip(path, ["", *path], strict=False) if p != before) for path in points
    )
    look = f'fill="{safe(colour)}"' if fill else f'fill="none" stroke="{safe(colour)}" stroke-width="{width:.2f}"'
    look += (' stroke-dasharray="6 4"' if dash else "") + (f' opacity="{opacity:g}"' if opacity < 1 else "")
    return f'<path d="{steps}" {look} pointer-events="none"/>'


def _hatching(at: FloatArray, colour: str, width: float) -> str:
    """Return boxes with an outline and lines that rise to the right."""
    paths = []
    for x, y, w, h in at.tolist():
        paths.append(np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]))
        for c in np.arange(HATCH, w + h, HATCH).tolist():
            a, b = max(0.0, c - h), min(w, c)
            paths.append(np.array([[x + a, y + c - a], [x + b, y + c - b]]))
    return _path(paths, colour, width * POINT)
