"""Pictures of pipelines: the passes of each device over time, what it holds, and memory against bubble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray, sums
from gangplan.instances.pipeline import PipelineProblem
from gangplan.instances.quantities import quantity, scale

from ..units import percent
from .colours import BAND, FEW, GREY, INK
from .partition import Drawn
from .scene import LEFT, RIGHT, Axis, Boxes, Dots, Key, Lines, Panel, Scene, Words, names_in

COLOURS = (("#a6cfea", "#56a5d8"), ("#f6cf9b", "#e69f00"), ("#aaddcb", "#4bb894"))
"""Of F, B and W, after Okabe and Ito (2008); darker in every other stage of a device."""
NAMES = ("forward", "backward", "gradients of weights")
PITCH, MOST_TALL = 0.42, 6.0
"""Inches of a device's row, and of all rows together before they get flatter."""
MOST_NAMES = 32
"""Devices that can be numbered."""
SIDE = 1.35
"""Inches to the right of the passes, for what devices are busy and hold."""


class Timed(NamedTuple):
    """When passes of a problem run: seconds, float64 (n,), in all `seconds`; what devices hold at most, and a bound."""

    problem: PipelineProblem
    start: FloatArray
    finish: FloatArray
    seconds: float
    memory: FloatArray
    told: str
    bound: float | None = None


def pipeline_scene(entries: Sequence[Drawn]) -> Scene:
    """Return the passes of plans on one axis of time, panels ``passes``."""
    found = []
    for entry in entries:
        v = entry.verdict()
        told = " · ".join(filter(None, [entry.name, entry.worth(v.objective, f"bubble {percent(v.bubble)}")]))
        found.append(Timed(entry.problem, v.start, v.finish, v.objective, v.memory, told, entry.bound))
    return timed_scene(found)


def timed_scene(entries: Sequence[Timed]) -> Scene:
    """Return when passes run, plans or runs of them below each other, panels ``passes``."""
    factor, unit = scale(max(max(float(x.finish.max()), x.bound or 0.0) for x in entries), "s")
    last = max(max(float(x.finish.max()), x.bound or 0.0) for x in entries) / factor
    axis = Axis(0.0, 1.012 * last or 1.0, f"time, {unit}", grid=True, link="time")
    rows = [_row(x, axis, factor, several=len(entries) > 1) for x in entries]
    problem = entries[0].problem
    told = entries[0].told if len(entries) == 1 else f"{len(entries)} on one axis of time"
    return Scene(f"{problem.micro_batches} micro-batches through {problem.stages} stages", told, rows)


def _row(timed: Timed, axis: Axis, factor: float, *, several: bool) -> list[Panel]:
    problem, passes, p = timed.problem, timed.problem.passes(), timed.problem.devices
    every = np.arange(problem.n_passes)
    kind, stage = np.divmod(every // problem.micro_batches, problem.stages)
    height = max(min(PITCH * p, MOST_TALL), 0.6)
    rows = range(0, p, -(-p // MOST_NAMES))
    y = Axis(p, 0, "device", ticks=[(d + 0.5, f"{d}") for d in rows])
    panel = Panel("passes", axis, y, (), height=height, width=RIGHT - LEFT - SIDE, heading=timed.told * several)
    start, takes = timed.start / factor, (timed.finish - timed.start) / factor
    at = np.stack([start, passes.device + 0.08, takes, np.full(len(every), 0.84)], 1)
    turn = np.array([int((problem.device[:s] == d).sum()) for s, d in enumerate(problem.device)])
    shades = [COLOURS[k][t % 2] for k, t in zip(kind, turn[stage], strict=True)]
    ends = zip(every.tolist(), timed.start, timed.finish, strict=True)
    texts = [f"{problem.told(x)}<br>{quantity(a, 's', 6)} to {quantity(b, 's', 6)}" for x, a, b in ends]
    names = NAMES if problem.split else (NAMES[0], f"{NAMES[1]} with {NAMES[2]}")
    keys = [Key(name, COLOURS[k]) for k, name in enumerate(names)]
    panel = panel.add(
        Boxes(np.array([[0.0, d + 0.04, axis.high, 0.92] for d in range(p)]), BAND),
        Boxes(at, shades, texts, [names[k] for k in kind], edge="#ffffff"),
        names_in(at, [[f"{x % problem.micro_batches}"] for x in every], panel.scale, paper=shades),
    )
    if timed.bound is not None and problem.barrier:
        keys.append(Key("bound: no plan is better", look="dash"))
        panel = panel.add(Lines([[(timed.bound / factor, 0), (timed.bound / factor, p)]], width=1.4, dash=True))
    side = replace(panel, marks=(), bare=True, left=panel.left + panel.width + 0.1, width=SIDE - 0.1, heading="")
    idle = timed.seconds - sums(passes.device, timed.finish - timed.start, p)
    held = timed.memory.any()
    told = [(0.5, -0.15, "idle", 8.5, GREY)] + [(1.1, -0.15, "holds", 8.5, GREY)] * bool(held)
    for d in rows:
        told.append((0.5, d + 0.5, quantity(max(float(idle[d]), 0.0), "s", 3), 8.5, INK))
        told += [(1.1, d + 0.5, quantity(float(timed.memory[d]), "B", 3), 8.5, INK)] * bool(held)
    return [replace(panel, keys=keys), replace(side, x=Axis(0, SIDE - 0.1)).add(Words.of(told, "right", outside=True))]


class Point(NamedTuple):
    """The best step for an amount of memory: bytes, seconds, bound, its bubble, the least one, and who found it."""

    memory: float
    seconds: float
    bound: float
    bubble: float
    least: float
    by: str


def frontier_scene(points: Sequence[Point], title: str, published: Sequence[tuple[str, float, float]] = ()) -> Scene:
    """Return memory against bubble: what is best, what is proved, and published schedules, (name, memory, bubble)."""
    most = max([p.memory for p in points] + [x for _, x, _ in published])
    high = 100 * max([p.bubble for p in points] + [y for *_, y in published])
    panel = Panel("frontier", Axis(0, 1.05 * most, "memory of a device, B", grid=True),
                  Axis(0, 1.08 * high or 1.0, "bubble, % of the step", grid=True), (), height=3.6)  # fmt: skip
    best = [(p.memory, 100 * p.bubble) for p in points]
    texts = [
        f"{p.memory:g} B: {quantity(p.seconds, 's', 6)} by {p.by}<br>bound {quantity(p.bound, 's', 6)}" for p in points
    ]
    proved = [p.seconds <= p.bound * (1 + 1e-6) for p in points]
    keys = [
        Key("best plan: filled if proved", (FEW[0],), "line"),
        Key("bound", look="dash"),
        Key("published", (FEW[1],), "D"),
    ]
    fill = [FEW[0] if x else "#ffffff" for x in proved]
    panel = panel.add(
        Lines([[(p.memory, 100 * p.least) for p in points]], INK, 1.2, dash=True, name="bound"),
        Lines([best], FEW[0], 1.6, name=keys[0].label),
        *(Dots(np.array([xy]), colour, 7.0, "o", FEW[0], [text], keys[0].label)
          for xy, colour, text in zip(best, fill, texts, strict=True)),
    )  # fmt: skip
    if published:
        at = np.array([[x, 100 * y] for _, x, y in published])
        panel = panel.add(
            Dots(at, FEW[1], 8.0, "D", "#ffffff", [f"{x[0]}" for x in published], "published"),
            Words.of([(x + 0.01 * most, 100 * y + 0.03 * high, name, 9.0, INK) for name, x, y in published], "left"),
        )
    count = sum(proved)
    told = f"{count} of {len(points)} amounts of memory proved"
    return Scene(title, told, [[replace(panel, keys=keys)]])
