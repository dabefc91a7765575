"""A scene as SVG that needs no package; what a pointer is told is the title of its element, of class ``item``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import singledispatch
from html import escape

import numpy as np

from .pixels import PIXELS, POINT, Group, each, groups
from .scene import Boxes, Dots, FloatArray, Lines, Mark, Scene, Words

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML has no way to write."""
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}
_STEPS = {"|": "m0 -1v2", "x": "m-1 -1l2 2m0 -2l-2 2", "D": "m0 -1.4l1.4 1.4l-1.4 1.4l-1.4 -1.4z"}
"""The way round dots that are no circles, from their middle."""


def safe(text: str) -> str:
    """Return text for XML: names come from files."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def draw(scene: Scene) -> str:
    """Return the document; nothing in it refers to an id, so that several can be in one page.

    What an entry of a legend names has its ``data-name``.
    """
    size, name = f"{scene.width * PIXELS:.0f} {scene.height * PIXELS:.0f}", safe(scene.title)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="group" aria-label="{name}" '
    return "".join([head, 'font-family="system-ui, sans-serif">', *map(_group, groups(scene)), "</svg>\n"])


def _group(group: Group) -> str:
    content = "".join(element for mark in group.marks for element in _elements(mark))
    if group.clip is not None:
        x, y, width, height = (f"{v:.1f}" for v in group.clip)
        box = f'x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}"'
        return f"<svg {box}>{content}</svg>"  # which cuts off what is outside
    return f'<g class="key" data-name="{safe(group.key)}">{content}</g>' if group.key else content


@singledispatch
def _elements(mark: Mark) -> Iterator[str]:
    """Yield the elements of a mark in pixels."""
    raise TypeError(type(mark).__name__)


@_elements.register
def _(mark: Boxes) -> Iterator[str]:
    n, width = len(mark.at), f'stroke-width="{mark.line * POINT:.2f}"'
    crisp = ' shape-rendering="crispEdges"' if mark.crisp else ""  # no seams
    columns = (each(mark.colour, n), each(mark.edge, n), mark.texts or [""] * n, each(mark.name, n))
    for (x, y, w, h), c, edge, text, name in zip(mark.at.tolist(), *columns, strict=True):
        line = f' stroke="{safe(edge)}" {width}' if edge else crisp
        where = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
        yield _item(f'<rect {where} fill="{safe(c or "none")}"{line}', text, name)


@_elements.register
def _(mark: Lines) -> Iterator[str]:
    paths = [np.asarray(path, dtype=np.float64) for path in mark.paths]
    alike: dict[tuple[str, float], list[FloatArray]] = defaultdict(list)
    for path, c, width in zip(paths, each(mark.colour, len(paths)), each(mark.width, len(paths)), strict=True):
        alike[c, float(width)].append(path)
    more = (' stroke-dasharray="6 4"' if mark.dash else "") + (f' opacity="{mark.opacity:g}"' * (mark.opacity < 1))
    for (c, width), mine in alike.items():
        points = ([f"{x:.1f} {y:.1f}" for x, y in path.tolist()] for path in mine)
        kept = ([p for p, before in zip(path, ["", *path], strict=False) if p != before] for path in points)
        line = f'fill="none" stroke="{safe(c)}" stroke-width="{width * POINT:.2f}"{more} pointer-events="none"'
        yield _item(f'<path d="{"".join("M" + "L".join(path) for path in kept)}" {line}', "", mark.name)


@_elements.register
def _(mark: Dots) -> Iterator[str]:
    n, edge, open_ = len(mark.at), safe(mark.edge), mark.shape in ("|", "x")
    columns = (each(mark.colour, n), each(mark.size, n), mark.texts or [""] * n, each(mark.name, n))
    for (x, y), c, size, text, name in zip(mark.at.tolist(), *columns, strict=True):
        r = size * POINT / 2 if mark.shape else 6.0
        paint = f'fill="none" stroke="{safe(c)}"' if open_ else f'fill="{safe(c)}" stroke="{edge}"'
        paint = paint if mark.shape else 'fill="none" pointer-events="all"'
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" {paint}'
        if steps := _STEPS.get(mark.shape):
            place = f'd="M0 0{steps}" transform="translate({x:.1f} {y:.1f}) scale({r:.1f})"'
            shape = f'<path {place} {paint} stroke-width="{(2 if open_ else 1) / r:.2f}"'
        yield _item(shape, text, name, "item" if mark.shape else "spot")


@_elements.register
def _(mark: Words) -> Iterator[str]:
    n, bold = len(mark.texts), ' font-weight="bold"' * mark.bold
    columns = (mark.at.tolist(), mark.texts, each(mark.size, n), each(mark.colour, n), mark.halo or [""] * n)
    yield '<g pointer-events="none">'
    for (x, y), text, points, c, halo in zip(*columns, strict=True):
        size = points * POINT
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if mark.turned else ""
        look = f'{bold}{turn} stroke="{safe(halo)}" paint-order="stroke" stroke-width="3"' if halo else bold + turn
        # letters stand on a line a third of their size below their middle
        where = f'x="{x:.1f}" y="{y + size * 0.35:.1f}" font-size="{size:.1f}" text-anchor="{_ANCHORS[mark.align]}"'
        yield f'<text {where} fill="{safe(c)}"{look}>{safe(text)}</text>'
    yield "</g>"


def _item(shape: str, text: str, name: str, kind: str = "item") -> str:
    """Return an element, given its beginning, with what is told of it, and the entry of a legend that it is of."""
    told, tag = safe(text.replace("<br>", "\n")), shape[1 : shape.index(" ")]
    shape += f' data-name="{safe(name)}"' if name else ""
    return f'{shape} class="{kind}"><title>{told}</title></{tag}>' if told else f"{shape}/>"
