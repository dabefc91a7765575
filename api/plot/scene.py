"""A picture as primitives: boxes, lines, dots, words and heat in panels with axes and legends; the ends draw these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import util
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.outlet import write_whole

from .colours import INK, ink_on

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WIDTH, LEFT, RIGHT = 13.0, 0.95, 12.8
"""Inches: of a picture, and where its panels begin and end."""
HEADER, LINE, FOOT = 0.82, 0.24, 0.12
"""Inches: title and subtitle, a line of a legend or a heading, below all."""
DPI = 110
"""Pixels of an inch of a PNG."""
CHARACTER = 0.62
"""Width of a character in its size."""
ENDS = (".png", ".svg", ".html")
"""Kinds of files."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Rectangles x, y, width, height, float (n, 4), of one colour or of one each.

    Attributes:
        at: see above; boxes narrower than a line are drawn as wide as one.
        colour: of all or of each.
        texts: what a pointer is told, of each; lines have ``<br>`` between them.
        name: of the entry of the legend that they belong to, of all or of each.
        edge, line: colour, of all or of each, and width of their outline, points.
        hatch: whether they are hatched, in the colour of the outline.
        crisp: whether their edges are drawn as whole pixels, so that there are no seams.
    """

    at: FloatArray
    colour: str | Sequence[str]
    texts: Sequence[str] = ()
    name: str | Sequence[str] = ""
    edge: str | Sequence[str] = ""
    line: float = 0.5
    hatch: bool = False
    crisp: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Polylines, each float (points, 2)."""

    paths: Iterable[ArrayLike]
    colour: str | Sequence[str] = INK
    width: float | Sequence[float] = 1.0
    dash: bool = False
    opacity: float = 1.0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Dots:
    """Marks at float (n, 2), `size` points wide: ``o``, ``D`` (a diamond), ``|``, ``x``; ``""`` for pointers only."""

    at: FloatArray
    colour: str | Sequence[str] = INK
    size: float | Sequence[float] = 5.0
    shape: str = "o"
    edge: str = "white"
    texts: Sequence[str] = ()
    name: str | Sequence[str] = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Texts at float (n, 2).

    Attributes:
        at, texts: where and what.
        size: points.
        colour: of all or of each.
        align: whether `at` is their ``left`` end, ``center`` or ``right`` end.
        halo: colours that lines below them are hidden with.
        outside: whether they stand beside the axes, and not on them.
        bold, turned: their look, and whether they are read from below.
    """

    at: FloatArray
    texts: Sequence[str]
    size: float | Sequence[float] = 9.0
    colour: str | Sequence[str] = INK
    align: str = "center"
    halo: Sequence[str] = ()
    outside: bool = False
    bold: bool = False
    turned: bool = False

    @classmethod
    def of(
        cls,
        told: Sequence[tuple[float, float, str, float, str]],
        align: str = "center",
        outside: bool = False,
        halo: Sequence[str] = (),
    ) -> Words | None:
        """Return x, y, text, size and colour of each as one; `None` if there is nothing to say."""
        if not told:
            return None
        x, y, texts, size, colour = zip(*told, strict=True)
        return cls(np.stack([x, y], axis=1), texts, size, colour, align, halo, outside)


@dataclass(frozen=True, slots=True)
class Heat:
    """Shares from 0 to 1 as shades, float (rows, columns), NaN drawn as `missing`, over the box x, y, width, height."""

    values: FloatArray
    box: tuple[float, float, float, float]
    shades: Sequence[str]
    missing: str = "#ffffff"
    rows: Sequence[str] = ()


Mark = Boxes | Lines | Dots | Words | Heat


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend: ``box``, ``hatch``, ``ramp`` (a scale), ``line``, ``dash``, ``D``, ``x``, ``|``, words."""

    label: str
    colours: tuple[str, ...] = (INK,)
    look: str = "box"

    @property
    def room(self) -> float:
        """Inches that it takes."""
        return 0.46 + len(self.label) * 0.078 + 0.6 * (self.look == "ramp")


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`, in which order they may be.

    Attributes:
        low, high: its ends.
        label: with the unit.
        ticks: places and words; automatic if `None`.
        log: whether it is logarithmic.
        grid: whether lines lead through the panel.
        link: axes of one name are one, and said below the last of the panels below each other.
        quiet: whether it is said elsewhere.
    """

    low: float
    high: float
    label: str = ""
    ticks: Sequence[tuple[float, str]] | None = None
    log: bool = False
    grid: bool = False
    link: str = ""
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Marks between two axes, drawn in their order.

    Attributes:
        name: of its kind; several may have the same.
        x, y: the axes.
        marks: what is drawn.
        keys: of the legend above it, which has no key that stands above a panel before it.
        left, width, height: inches.
        heading: words above it.
        below: inches for what the axis below says; the same for all of a row.
        bare: whether axes are left out.
        top: inches from the top of the picture, see `Scene`.
    """

    name: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    keys: Sequence[Key] = ()
    left: float = LEFT
    width: float = RIGHT - LEFT
    height: float = 2.5
    heading: str = ""
    below: float = 0.62
    bare: bool = False
    top: float = 0.0

    @property
    def legend(self) -> list[list[Key]]:
        """The entries of the legend above it, line by line."""
        lines: list[list[Key]] = []
        room, wide = 0.0, WIDTH - 0.5 if self.bare else self.left + self.width - self.edge
        for key in self.keys:
            if key.room > room:
                lines.append([])
                room = wide
            lines[-1].append(key)
            room -= key.room
        return lines

    @property
    def edge(self) -> float:
        """Inches to where its heading and its legend begin."""
        return min(self.left, 0.25) if self.left < WIDTH / 4 else self.left

    @property
    def above(self) -> float:
        """Inches that its heading and its legend need."""
        return LINE * (len(self.legend) + bool(self.heading)) + 0.18

    @property
    def scale(self) -> tuple[float, float]:
        """Inches of a unit of each axis, if it is not logarithmic."""
        across, up = abs(self.x.high - self.x.low), abs(self.y.high - self.y.low)
        return self.width / (across or 1.0), self.height / (up or 1.0)

    def add(self, *marks: Mark | None) -> Panel:
        """Return the panel with more marks on top; those that are `None` are left out."""
        return replace(self, marks=(*self.marks, *(mark for mark in marks if mark is not None)))


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture, ready to be drawn by any end.

    Attributes:
        title, subtitle: what it is, and how good.
        rows: panels beside each other, from the top down.
        width: inches.
    """

    title: str
    subtitle: str
    rows: Sequence[Sequence[Panel]]
    width: float = WIDTH
    panels: tuple[Panel, ...] = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        top, placed, known = HEADER, list[Panel](), set[Key]()
        for row, after in zip_longest(self.rows, self.rows[1:]):
            close = after and after[0].x.link and after[0].x.link == row[0].x.link and not after[0].heading
            panels = []
            for panel in row:
                new = [key for key in panel.keys if key not in known]
                known |= {*new}
                quiet = replace(panel, x=replace(panel.x, quiet=True), below=0.02) if close else panel
                panels.append(replace(quiet, keys=new))
            top += max(panel.above for panel in panels)
            placed += [replace(panel, top=top) for panel in panels]
            top += max(panel.height + panel.below for panel in panels)
        object.__setattr__(self, "panels", tuple(placed))
        object.__setattr__(self, "height", top + FOOT)

    def only(self, panel: str | None) -> Scene:
        """Return the picture with the panels of one name, all if it is `None`."""
        if panel is None:
            return self
        names = list(dict.fromkeys(p.name for p in self.panels))
        if panel not in names:
            raise InstanceError("panel", f"{panel!r} is not one of {', '.join(names)}")
        rows, heading = list[list[Panel]](), ""
        for row in self.rows:
            heading = row[0].heading or heading
            kept = [p for p in row if p.name == panel]
            if len(kept) == 1 < len(row) and not kept[0].bare:  # it has the room of its row
                kept = [replace(kept[0], left=row[0].left, width=max(p.left + p.width for p in row) - row[0].left)]
            if kept:
                rows.append([replace(kept[0], heading=kept[0].heading or heading), *kept[1:]])
        return replace(self, rows=rows)

    def render(self, path: str) -> bytes:
        """Return the content of a file: PNG, SVG or self-contained HTML, as the ending of `path` says."""
        ending = check(path)
        if ending == ".png":
            from .image import draw as draw_image

            return draw_image(self)
        from .svg import draw

        if ending == ".svg":
            return draw(self).encode()
        from .html import page

        return page(self.title, [("", draw(self))])

    def save(self, path: str | Path) -> None:
        """Write the picture; see `render`."""
        write_whole({str(path): self.render(str(path))})

    def _repr_html_(self) -> str:
        """Return it for a notebook, light or dark: SVG, which tells a pointer more and needs no package."""
        from .svg import draw

        return f'<style>{_DARK}</style><div class="gangplan-picture">{draw(self)}</div>'

    def _repr_png_(self) -> bytes:
        return self.render("x.png")


_DARK = """
.gangplan-picture { background: white; --dark: invert(0.91) hue-rotate(180deg); }
[data-jp-theme-light="false"] .gangplan-picture, .vscode-dark .gangplan-picture { filter: var(--dark); }
@media (prefers-color-scheme: dark) {
  body:not([data-jp-theme-light], .vscode-light, .vscode-dark) .gangplan-picture { filter: var(--dark); }
}"""
"""Jupyter and VS Code say which theme they have; elsewhere, as in a page, it is that of the system."""


def check(path: str) -> str:
    """Return the ending of a file name; refuse one that says no known kind of picture, and PNG without its package."""
    ending = Path(path).suffix.lower()
    if ending not in ENDS:
        raise InstanceError("plot", f"{ending!r} is not one of {', '.join(ENDS)}", path)
    if ending == ".png" and util.find_spec("matplotlib") is None:
        raise InstanceError("plot", f"needs matplotlib; {extra('plot')}", path)
    return ending


def fit(text: str, width: float, height: float, sizes: tuple[float, float]) -> float:
    """Return the points in which `text` fits into so many inches, 0 if that is less than the least of `sizes`."""
    size = min(sizes[1], 72 * min(height * 0.62, width * 0.94 / (CHARACTER * max(1, len(text)))))
    return size if size >= sizes[0] else 0.0


def names_in(
    boxes: FloatArray,
    names: Iterable[Sequence[str]],
    scale: tuple[float, float],
    sizes: tuple[float, float] = (6.0, 8.5),
    paper: str | Sequence[str] = "#ffffff",
    halo: bool = False,
) -> Words | None:
    """Return the names that can be read in their boxes.

    Args:
        boxes: see `Boxes`.
        names: of each, the longest that may be shown first.
        scale: inches of a unit of each axis.
        sizes: the least and the greatest, points.
        paper: colour below the names, of all or of each.
        halo: whether lines below are hidden with it.
    """
    told, papers = [], []
    colours = [paper] * len(boxes) if isinstance(paper, str) else paper
    for (x, y, width, height), options, colour in zip(boxes.tolist(), names, colours, strict=True):
        fitting = ((text, fit(text, width * scale[0], height * scale[1], sizes)) for text in options)
        text, size = next((each for each in fitting if each[1]), ("", 0.0))
        if text:
            told.append((x + width / 2, y + height / 2, text, size, ink_on(colour)))
            papers.append(colour)
    return Words.of(told, halo=papers if halo else ())
