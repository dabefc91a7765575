"""One plan of a Gantt chart, as plain numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gangplan.instances import GraphProblem
from gangplan.instances.timeline import KINDS, Bar, Row, Timeline

from ..units import quantity
from .layout import FloatArray, IntArray

STYLES = tuple((kind, critical) for kind in KINDS for critical in (False, True))
"""What the colour of a bar says."""
COLOURS = ("#a6cfea", "#0072b2", "#f6cf9b", "#d55e00", "#aaddcb", "#00835f", "#dcbfd2", "#9c4a80")
"""Of each style, after Okabe and Ito (2008): a hue for what it is, dark on the chain that leads to the end."""
LINK, LINK_LANE, MOST_LINK = 0.36, 0.13, 1.1
HOST_LANE, MOST_HOST = 0.4, 3.0
GAP, BETWEEN = 0.06, 0.3
"""Heights, a device's row being 1: of links, of what is stacked, between the rows of a device, between devices."""
PLAIN = {"transfer": "transfers", "in": "transfers in", "out": "transfers out"}
"""What transfers of several outputs are called."""
CHARACTER = 0.62
"""Width of a character in its size."""
GOALS = {"step": "makespan", "latency": "latency", "throughput": "busiest device", "stages": "slowest stage or move"}
"""What the last finish is, by objective."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One plan; R rows from the top down, B bars.

    Attributes:
        heading: which plan it is and how good.
        names: of the rows.
        link: whether a row shows transfers, (R,).
        y, height: the middle of each row and its height, float (R,).
        start, width: of each bar, in the unit of the axis, float (B,).
        at, tall: the middle of each bar and its height, float (B,).
        style: index into `STYLES`, int (B,).
        labels, texts: the name of each bar, and all there is to say of it.
        steps: from the end of each bar of the chain to the start of the next, float (., 2, 2).
        end: the last finish, in the unit of the axis.
        bound: no plan is better, in the unit of the axis; `None` if nothing is proved.
        end_words, bound_words: these two in words.
        busy: what share of the time each row is at work; NaN where things lie on top of one another, float (R,).
        memory: of each row in words, empty for links.
        filled: what share of its memory that is, NaN if unlimited or a link, float (R,).
    """

    heading: str
    names: tuple[str, ...]
    link: tuple[bool, ...]
    y: FloatArray
    height: FloatArray
    start: FloatArray
    width: FloatArray
    at: FloatArray
    tall: FloatArray
    style: IntArray
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    steps: FloatArray
    end: float
    bound: float | None
    end_words: str
    bound_words: str
    busy: FloatArray
    memory: tuple[str, ...]
    filled: FloatArray

    def name(self, bar: int, horizon: float, across: float, pitch: float, sizes: tuple[float, float]) -> str:
        """Return what of the name of a bar fits into it: all, its last parts, or nothing.

        Args:
            bar: which one.
            horizon: where the axis ends.
            across, pitch: length of the axis, and height of a device's row, in one unit.
            sizes: the smallest and the largest letters, in that unit.
        """
        return next(
            (
                text
                for text in _shorter(self.labels[bar])
                if self.size(bar, text, horizon, across, pitch, sizes[1]) >= sizes[0]
            ),
            "",
        )

    def size(self, bar: int, text: str, horizon: float, across: float, pitch: float, largest: float) -> float:
        """Return the size in which `text` fits into a bar, at most `largest`; see `name`."""
        width = float(self.width[bar]) / horizon * across - 0.5 * largest
        return min(largest, 0.62 * float(self.tall[bar]) * pitch, width / (CHARACTER * len(text)))

    @property
    def bottom(self) -> float:
        """The lower end of the last row."""
        return float(self.y[-1] + self.height[-1] / 2)


def lay_out(
    problem: GraphProblem, drawn: Timeline, *, heading: str, bound: float | None, factor: float, unit: str
) -> Chart:
    """Give every row and every bar its place.

    Args:
        problem: what the plan answers.
        drawn: its timeline.
        heading: see `Chart`.
        bound: no plan is better than this, seconds.
        factor: seconds in the unit of the axis.
        unit: of times in words; empty if the file names none.
    """
    rows, bars = drawn.rows, drawn.bars
    height = np.array([_height(row) for row in rows])
    gap = [0.0] + [
        GAP if b.link and (b.device is not None or (a.link and a.device is None)) else BETWEEN
        for a, b in pairwise(rows)
    ]
    top = np.cumsum(np.array(gap) + np.concatenate([[0.0], height[:-1]]))
    row = np.array([bar.row for bar in bars])
    start, finish = (np.array([getattr(bar, end) for bar in bars]) for end in ("start", "finish"))
    tall = height[row] / np.array([r.lanes for r in rows])[row]
    at = top[row] + tall * (np.array([bar.lane for bar in bars]) + 0.5)
    chain = np.array(drawn.chain, dtype=np.int64)
    before = np.stack([finish[chain] / factor, at[chain]], axis=1)[:-1]
    after = np.stack([start[chain] / factor, at[chain]], axis=1)[1:]
    steps = np.stack([before, after], axis=1)
    busy = np.bincount(row, weights=finish - start, minlength=len(rows)) / (drawn.makespan or 1.0)
    stacked = np.array([r.lanes > 1 for r in rows])
    used = [None if r.link or r.device is None else float(drawn.verdict.memory[r.device]) for r in rows]
    if not any(used):
        used = [None] * len(rows)
    limit = [np.inf if r.device is None else float(problem.capacity()[r.device]) for r in rows]
    filled = [np.nan if u is None or np.isinf(m) else u / m for u, m in zip(used, limit, strict=True)]
    return Chart(
        heading=heading,
        names=tuple(r.name for r in rows),
        link=tuple(r.link for r in rows),
        y=top + height / 2,
        height=height,
        start=start / factor,
        width=(finish - start) / factor,
        at=at,
        tall=tall * np.where(stacked[row], 0.92, 1.0),
        style=np.array([STYLES.index((bar.kind, bar.critical)) for bar in bars], dtype=np.int64),
        labels=tuple(bar.label for bar in bars),
        texts=tuple(_text(problem, rows[bar.row], bar, unit) for bar in bars),
        steps=steps[(steps[:, 0] != steps[:, 1]).any(axis=1)],
        end=drawn.makespan / factor,
        bound=None if bound is None else bound / factor,
        end_words=f"{GOALS.get(problem.objective, problem.objective)} {quantity(drawn.makespan, unit, 6)}",
        bound_words=quantity(bound, unit, 6),
        busy=np.where(stacked, np.nan, busy),
        memory=tuple("" if u is None else quantity(u, "B", 3) for u in used),
        filled=np.array(filled),
    )


def _height(row: Row) -> float:
    if row.link:
        return min(LINK + LINK_LANE * (row.lanes - 1), MOST_LINK)
    return min(1.0 + HOST_LANE * (row.lanes - 1), MOST_HOST)


def _shorter(name: str) -> Iterator[str]:
    """Yield a name and its last parts; that an op is a backward one is told by its colour."""
    yield name
    name = name.removesuffix("/backward")
    for cut in [-1, *(i for i, letter in enumerate(name[:-1]) if letter in "/.")]:
        yield name[cut + 1 :]


def _device(row: Row) -> str:
    return row.name if row.name.startswith("stage") else f"device {row.name}"


def _text(problem: GraphProblem, row: Row, bar: Bar, unit: str) -> str:
    """Return lines on a bar, with ``<br>`` between them."""
    first = bar.label
    if bar.kind == "transfer":
        if bar.sender is not None:
            first = f"output of {bar.label}, device {bar.sender} to {bar.receiver}"
        elif bar.label in PLAIN:
            first = f"{PLAIN[bar.label]}: {bar.count} {'output' if bar.count == 1 else 'outputs'}"
        where = f"{row.name} of device {row.device}" if row.link and row.device is not None else row.name
        second = f"on {where}" if row.link else _device(row)
    else:
        second = f"{bar.kind}, {_device(row)}" + (f", {bar.count} ops" if bar.count > 1 else "")
    span = (
        f"{quantity(bar.start, unit, 6)} to {quantity(bar.finish, unit, 6)}: {quantity(bar.finish - bar.start, unit)}"
    )
    lines = [first, second, span]
    if bar.size and (unit or bar.kind != "transfer"):  # files without a unit have times in place of bytes
        lines.append(f"{quantity(bar.size, 'B')} {'moved' if bar.kind == 'transfer' else 'of memory'}")
    if bar.critical:
        lines.append("on the chain that leads to the end")
    return "<br>".join(lines)
