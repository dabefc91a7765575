"""Gantt charts of plans of graphs, one below the other on one axis of time: when what runs on devices and links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gangplan.instances import GraphProblem
from gangplan.instances.quantities import counted, quantity, scale
from gangplan.instances.timeline import KINDS, Bar, Timeline, TimelineRow, timeline

from ..units import time_unit
from .colours import BAND, GREY, INK
from .partition import Drawn, title
from .scene import CHARACTER, WIDTH, Axis, Boxes, FloatArray, Key, Lines, Panel, Scene, Words, names_in

GOALS = {"step": "makespan", "latency": "latency", "throughput": "busiest device", "stages": "slowest stage or move"}
"""What the last finish is, by objective."""
MOST_ROWS, MOST_STEPS = 72, 80
"""Rows of all plans beyond which links of single devices are left out; lines of a chain that can be followed."""
COLOURS = {
    "forward": ("#a6cfea", "#0072b2"),
    "backward": ("#f6cf9b", "#d55e00"),
    "transfer": ("#aaddcb", "#00835f"),
    "call": ("#dcbfd2", "#9c4a80"),
}
"""After Okabe and Ito (2008): a hue for what a bar is, dark on the chain that leads to the end."""
LINK, LINK_LANE, MOST_LINK = 0.36, 0.13, 1.1
HOST_LANE, MOST_HOST = 0.4, 3.0
GAP, BETWEEN = 0.06, 0.3
"""Heights, a device's row being 1: of links, of what is stacked, between the rows of a device, between devices."""
PITCH, MOST_TALL = 0.44, 10.0
"""Inches of a device's row, and of all charts together before rows get flatter."""
SIDE, BUSY = 2.35, 0.75
"""Inches to the right of the bars, for how busy each device is and how full; for the first alone."""
PLAIN = {"transfer": "transfers", "in": "transfers in", "out": "transfers out"}
"""What transfers of several outputs are called."""


def gantt_scene(entries: Sequence[Drawn]) -> Scene:
    """Return the Gantt charts of feasible plans of one graph, panels ``gantt``."""
    drawn = [timeline(entry.problem, entry.plan) for entry in entries]
    unit, several = time_unit(entries[0].problem), len(entries) > 1
    latest = max(max(t.makespan, e.bound or 0.0) for t, e in zip(drawn, entries, strict=True))
    factor, seconds = scale(latest, unit)
    crowded = sum(len(t.rows) for t in drawn) > MOST_ROWS
    if crowded:
        drawn = [_thinned(t) for t in drawn]
    axis = Axis(0, (latest / factor or 1.0) * 1.012, f"time, {seconds}" if unit else "time, in the unit of the file")
    axis = replace(axis, grid=True, link="time")
    height = sum(sum(_spread(t.rows)[1]) + BETWEEN * len(t.rows) for t in drawn)
    pitch = min(PITCH, MOST_TALL * len(drawn) ** 0.5 / height)
    memory = any(t.verdict.memory.any() for t in drawn)
    longest = max(len(row.name) for t in drawn for row in t.rows)
    left = max(0.9, 0.35 + longest * CHARACTER * 8.5 / 72)
    rows = []
    for entry, t in zip(entries, drawn, strict=True):
        panel = Panel("gantt", axis, axis, (), left=left, width=WIDTH - left - (SIDE if memory else BUSY))
        panel = _chart(panel, entry, t, factor, unit, pitch, several)
        rows.append([panel, _side(panel, entry, t)])
    what = f"{len(entries)} plans on one axis of time" if several else describe(entries[0], drawn[0])
    more = " · links of devices not shown" if crowded else ""
    return Scene(title(entries[0].problem), what + more, rows)


def describe(entry: Drawn, drawn: Timeline) -> str:
    """Return what a plan is worth, in words."""
    return entry.worth(drawn.makespan, f"{counted(drawn.idle, 'device')} idle" if drawn.idle else "")


def _thinned(drawn: Timeline) -> Timeline:
    """Leave out the links of single devices."""
    kept = [i for i, row in enumerate(drawn.rows) if not row.link or row.device is None]
    bars = [i for i, bar in enumerate(drawn.bars) if bar.row in set(kept)]
    place, row = {bar: i for i, bar in enumerate(bars)}, {r: i for i, r in enumerate(kept)}
    held = tuple(replace(drawn.bars[i], row=row[drawn.bars[i].row]) for i in bars)
    chain = tuple(place[i] for i in drawn.chain if i in place)
    return replace(drawn, rows=tuple(drawn.rows[i] for i in kept), bars=held, chain=chain)


def _spread(rows: Sequence[TimelineRow]) -> tuple[FloatArray, FloatArray]:
    """Return the upper end of each row and its height, float (rows,)."""
    looks = [(LINK, LINK_LANE, MOST_LINK) if row.link else (1, HOST_LANE, MOST_HOST) for row in rows]
    height = np.array([min(one + lane * (x.lanes - 1), most) for x, (one, lane, most) in zip(rows, looks, strict=True)])
    close = (b.link and (b.device is not None or (a.link and a.device is None)) for a, b in pairwise(rows))
    gap = [0.0, *(GAP if x else BETWEEN for x in close)]
    return np.cumsum(np.array(gap) + np.concatenate([[0.0], height[:-1]])), height


def _chart(panel: Panel, entry: Drawn, drawn: Timeline, factor: float, unit: str, pitch: float, several: bool) -> Panel:
    top, height = _spread(drawn.rows)
    bottom = float(top[-1] + height[-1])
    ticks = list(zip((top + height / 2).tolist(), (row.name for row in drawn.rows), strict=True))
    heading = f"{entry.name} · {describe(entry, drawn)}" if several else ""
    panel = replace(panel, y=Axis(bottom + 0.12, -0.12, ticks=ticks), height=max(pitch * bottom, 0.5), heading=heading)
    row = np.array([bar.row for bar in drawn.bars])
    start, finish = (np.array([getattr(bar, end) for bar in drawn.bars]) / factor for end in ("start", "finish"))
    lanes = np.array([r.lanes for r in drawn.rows])[row]
    tall = height[row] / lanes
    middle = top[row] + tall * (np.array([bar.lane for bar in drawn.bars]) + 0.5)
    tall = tall * np.where(lanes > 1, 0.92, 1.0)
    at = np.stack([start, middle - tall / 2, finish - start, tall], axis=1)
    texts = [_text(entry.problem, drawn.rows[bar.row], bar, unit) for bar in drawn.bars]
    across = np.stack([np.zeros(len(top)), top, np.full(len(top), panel.x.high), height], axis=1)
    kinds, shades = [bar.kind for bar in drawn.bars], [COLOURS[bar.kind][bar.critical] for bar in drawn.bars]
    panel = panel.add(Boxes(across, BAND), Boxes(at, shades, texts, kinds, edge="#ffffff"))
    keys = [Key(kind, COLOURS[kind]) for kind in KINDS if kind in kinds]
    steps = [((finish[i], middle[i]), (start[j], middle[j])) for i, j in pairwise(drawn.chain)]
    steps = [(p, q) for p, q in steps if p != q]
    few = len(steps) <= MOST_STEPS
    goal = f"{GOALS.get(entry.problem.objective, entry.problem.objective)} {quantity(drawn.makespan, unit, 6)}"
    keys += [Key("dark: the chain that decides the end", look="line"), Key("the end" if several else goal, look="|")]
    marks = [Lines(steps, width=0.9 if few else 0.6, opacity=0.75 if few else 0.3, name=keys[-2].label)]
    marks.append(_upright(drawn.makespan / factor, panel, keys[-1]))
    if entry.bound is not None:
        bound = "bound" if several else f"bound {quantity(entry.bound, unit, 6)}"
        keys.append(Key(f"{bound}: no plan is better", look="dash"))
        marks.append(_upright(entry.bound / factor, panel, keys[-1]))
    names = names_in(at, [list(_shorter(bar.label)) for bar in drawn.bars], panel.scale, paper=shades)
    return replace(panel.add(names, *marks), keys=keys)


def _upright(x: float, panel: Panel, key: Key) -> Lines:
    """Return the line across a chart that an entry of the legend is of."""
    return Lines([[(x, panel.y.high), (x, panel.y.low)]], width=1.4, dash=key.look == "dash", name=key.label)


def _side(panel: Panel, entry: Drawn, drawn: Timeline) -> Panel:
    """Return the panel beside a chart: how busy each row is, and how full each device."""
    rows, side = drawn.rows, Axis(0, SIDE - 0.3)
    left = panel.left + panel.width + 0.12
    found = replace(panel, x=side, marks=(), keys=(), heading="", left=left, width=SIDE - 0.3, bare=True)
    busy = np.zeros(len(rows))
    np.add.at(busy, [bar.row for bar in drawn.bars], [bar.finish - bar.start for bar in drawn.bars])
    size = float(np.clip(panel.scale[1] * 72 * 0.8, 4.0, 9.0))
    small = float(np.clip(panel.scale[1] * 72 * 0.4, 4.0, 9.0))
    capacity, held = entry.problem.capacity(), drawn.verdict.memory
    shares, memory, boxes = [], [], []
    for (y, _), row, share in zip(panel.y.ticks or (), rows, (busy / (drawn.makespan or 1.0)).tolist(), strict=True):
        if row.lanes == 1:  # things do not lie on top of one another
            shares.append((0.55, y, f"{share:.0%}", small if row.link else size, GREY if row.link else INK))
        if row.link or row.device is None or not held.any():
            continue
        limit, used = float(capacity[row.device]), float(held[row.device])
        full = f"  {used / limit:.1%}" if np.isfinite(limit) else ""
        memory.append((0.81, y, quantity(used, "B", 3) + full, size, INK))
        if np.isfinite(limit):
            wide = ((1.3, "#e9ecf0"), (1.3 * min(used / limit, 1), "#a3adb8"))
            boxes += [([0.75, y - 0.3, x, 0.6], colour) for x, colour in wide]
    caption = [(0.55, -0.34, "busy", 8.5, GREY), (0.75, -0.34, "memory", 8.5, GREY)][: 1 + bool(memory)]
    if boxes:
        found = found.add(Boxes(np.array([box for box, _ in boxes]), [colour for _, colour in boxes]))
    for align, told in (("right", shares), ("left", memory), ("right", caption[:1]), ("left", caption[1:])):
        found = found.add(Words.of(told, align, outside=told is not shares and told is not memory))
    return found


def _shorter(name: str) -> Iterator[str]:
    """Yield a name and its last parts; that an op is a backward one is told by its colour."""
    yield name
    name = name.removesuffix("/backward")
    for cut in [-1, *(i for i, letter in enumerate(name[:-1]) if letter in "/.")]:
        yield name[cut + 1 :]


def _text(problem: GraphProblem, row: TimelineRow, bar: Bar, unit: str) -> str:
    first, device = bar.label, row.name if row.name.startswith("stage") else f"device {row.name}"
    if bar.kind == "transfer":
        if bar.sender is not None:
            first = f"output of {bar.label}, device {bar.sender} to {bar.receiver}"
        elif bar.label in PLAIN:
            first = f"{PLAIN[bar.label]}: {bar.count} {'output' if bar.count == 1 else 'outputs'}"
        where = f"{row.name} of device {row.device}" if row.link and row.device is not None else row.name
        second = f"on {where}" if row.link else device
    else:
        second = f"{bar.kind}, {device}" + (f", {bar.count} ops" if bar.count > 1 else "")
    begin, end, lasts = (quantity(x, unit, 6) for x in (bar.start, bar.finish, bar.finish - bar.start))
    lines = [first, second, f"{begin} to {end}: {lasts}"]
    if bar.size and (unit or bar.kind != "transfer"):  # files without a unit have times in place of bytes
        lines.append(f"{quantity(bar.size, 'B')} {'moved' if bar.kind == 'transfer' else 'of memory'}")
    if bar.critical:
        lines.append("on the chain that leads to the end")
    return "<br>".join(lines)
