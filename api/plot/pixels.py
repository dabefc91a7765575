"""A scene as marks in pixels of the whole picture, so that what draws it knows neither axes nor legends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
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
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Group:
    """Marks in pixels, from the upper left corner of the picture.

    Attributes:
        marks: without heat and hatching; outlines of boxes are of each.
        clip: x, y, width and height of the box that cuts them off, if one does.
        key: the label of the entry of a legend that they are, if they are one.
    """

    marks: Sequence[Mark]
    clip: Box | None = None
    key: str = ""


def groups(scene: Scene) -> Iterator[Group]:
    """Yield all that a picture shows, in the order in which it is drawn."""
    title = _said(24, 0.30 * PIXELS, scene.title, 15, bold=True)
    yield Group([title, _said(24, 0.60 * PIXELS, scene.subtitle, 11.5, GREY)])
    for panel in scene.panels:
        yield from _panel(panel)


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


def _frame(panel: Panel) -> Box:
    return panel.left * PIXELS, panel.top * PIXELS, panel.width * PIXELS, panel.height * PIXELS


def _at(panel: Panel, points: Any) -> FloatArray:
    """Return pixels of points on the axes of a panel, float (..., 2)."""
    given, shares = np.asarray(points, dtype=np.float64), []
    for k, axis in enumerate((panel.x, panel.y)):
        turn = np.log10 if axis.log else np.asarray
        low, high, value = (turn(v) for v in (axis.low, axis.high, given[..., k]))
        shares.append((value - low) / (high - low or 1.0))
    left, top, width, height = _frame(panel)
    return np.stack([left + shares[0] * width, top + (1 - shares[1]) * height], axis=-1)


def _panel(panel: Panel) -> Iterator[Group]:
    edge, (left, top, width, height) = panel.edge * PIXELS, _frame(panel)
    if panel.heading:
        yield Group([_said(edge, top - (LINE * len(panel.legend) + 0.16) * PIXELS, panel.heading, 10.5, bold=True)])
    if not panel.bare:
        yield Group([*_axes(panel)])
    beside = [mark for mark in panel.marks if isinstance(mark, Words) and mark.outside]
    inside = [mark for mark in panel.marks if not isinstance(mark, Words) or not mark.outside]
    yield Group([one for mark in inside for one in _placed(mark, panel)], (left, top, width, height))
    yield Group([one for mark in beside for one in _placed(mark, panel)])
    for i, keys in enumerate(panel.legend):
        x, y = edge, top - LINE * PIXELS * (len(panel.legend) - i - 0.5)
        for key in keys:
            yield Group([*_key(key, x, y)], key=key.label)
            x += key.room * PIXELS


def _key(key: Key, x: float, y: float) -> Iterator[Mark]:
    colour, box = key.colours[0], np.array([[x, y - 5, 22, 10]])
    if key.look in ("line", "dash"):
        yield Lines([[(x, y), (x + 22, y)]], colour, 1.5, dash=key.look == "dash")
    elif key.look in ("box", "hatch"):
        shades = key.colours[: 2 if key.look == "box" else 1]
        size = 22 / len(shades)
        yield Boxes(np.array([[x + i * size, y - 5, size, 10] for i in range(len(shades))]), shades)
        if key.look == "hatch":
            yield _hatching(box, key.colours[-1], 0.6)
    elif key.look:
        yield Dots(np.array([[x + 11, y]]), colour, 7.5, key.look, INK)
    yield _said(x + (28 if key.look else 0), y, key.label, 9)


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


@singledispatch
def _placed(mark: Mark, panel: Panel) -> Iterator[Mark]:
    """Yield a mark of a panel as marks in pixels."""
    raise TypeError(type(mark).__name__)


@_placed.register
def _(mark: Boxes, panel: Panel) -> Iterator[Mark]:
    given = np.asarray(mark.at, dtype=np.float64).reshape(-1, 4)
    a, b = _at(panel, given[:, :2]), _at(panel, given[:, :2] + given[:, 2:])
    if mark.crisp:
        a, b = np.round(a), np.round(b)
    at = np.concatenate([np.minimum(a, b), np.maximum(np.abs(a - b), 0.7)], axis=1)
    outlined = (at[:, 2] > 4) & (not mark.hatch)
    yield replace(mark, at=at, edge=np.where(outlined, mark.edge, "").tolist(), hatch=False)
    if mark.hatch:
        yield _hatching(at, str(mark.edge), mark.line)


@_placed.register
def _(mark: Lines, panel: Panel) -> Iterator[Mark]:
    yield replace(mark, paths=[_at(panel, path) for path in mark.paths])


@_placed.register(Dots | Words)
def _(mark: Dots | Words, panel: Panel) -> Iterator[Mark]:
    yield replace(mark, at=_at(panel, np.reshape(mark.at, (-1, 2))))


@_placed.register
def _(mark: Heat, panel: Panel) -> Iterator[Mark]:
    (x, y, width, height), (rows, columns) = mark.box, mark.values.shape
    w, h = width / columns, height / rows
    for i, row in enumerate(mark.values):
        known = mixed(np.nan_to_num(row), mark.shades)
        shades = [mark.missing if np.isnan(v) else c for v, c in zip(row, known, strict=True)]
        starts = [j for j in range(columns) if not j or shades[j] != shades[j - 1]]
        at = np.array([(x + a * w, y + i * h, (b - a) * w, h) for a, b in pairwise([*starts, columns])])
        texts = list(mark.rows[i : i + 1]) * len(at)
        yield from _placed(Boxes(at, [shades[a] for a in starts], texts, crisp=True), panel)


def _hatching(at: FloatArray, colour: str, width: float) -> Lines:
    """Return boxes with an outline and lines that rise to the right."""
    paths = []
    for x, y, w, h in at.tolist():
        paths.append([(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)])
        for c in np.arange(HATCH, w + h, HATCH).tolist():
            a, b = max(0.0, c - h), min(w, c)
            paths.append([(x + a, y + c - a), (x + b, y + c - b)])
    return Lines(paths, colour, width)
