"""Pictures of pipelines: the passes of each device over time, what it holds, and memory against bubble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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


class TimedPasses(NamedTuple):
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
        found.append(TimedPasses(entry.problem, v.start, v.finish, v.objective, v.memory, told, entry.bound))
    return timed_scene(found)


def timed_scene(entries: Sequence[TimedPasses]) -> Scene:
    """Return when passes run, plans or runs of them below each other, panels ``passes``."""
    last = max(max(float(x.finish.max()), x.bound or 0.0) for x in entries)
    factor, unit = scale(last, "s")
    axis = Axis(0.0, 1.012 * last / factor or 1.0, f"time, {unit}", grid=True, link="time")
    rows = [_row(x, axis, factor, several=len(entries) > 1) for x in entries]
    problem = entries[0].problem
    told = entries[0].told if len(entries) == 1 else f"{len(entries)} on one axis of time"
    return Scene(f"{problem.micro_batches} micro-batches through {problem.stages} stages", told, rows)


def _row(timed: TimedPasses, axis: Axis, factor: float, *, several: bool) -> list[Panel]:
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
    head = "holds" if problem.unit == "B" else "batches"
    told = [(0.5, -0.15, "idle", 8.5, GREY)] + [(1.1, -0.15, head, 8.5, GREY)] * bool(held)
    for d in rows:
        rest, most = max(float(idle[d]), 0.0), quantity(float(timed.memory[d]), problem.unit, 3)
        told.append((0.5, d + 0.5, quantity(rest, "s", 3), 8.5, INK))
        told += [(1.1, d + 0.5, most.removesuffix(" micro-batches"), 8.5, INK)] * bool(held)
    return [replace(panel, keys=keys), replace(side, x=Axis(0, SIDE - 0.1)).add(Words.of(told, "right", outside=True))]


def frontier_scene(rows: Sequence[Mapping[str, Any]], title: str, published: Sequence[Mapping[str, Any]] = ()) -> Scene:
    """Return memory against bubble: what is best, what is proved, and published schedules.

    Args:
        rows: of `gangplan pipeline --frontier`, as machines are told.
        published: of its table.
    """
    most = max([x["capacity"] for x in rows] + [x["memory"] for x in published])
    high = 100 * max(x["bubble"] for x in [*rows, *published])
    factor, unit = scale(most, rows[0]["unit"])
    panel = Panel("frontier", Axis(0, 1.05 * most / factor, f"memory of a device, {unit}", grid=True),
                  Axis(0, 1.08 * high or 1.0, "bubble, % of the step", grid=True), (), height=3.6)  # fmt: skip
    keys = [Key("best plan: filled if proved", (FEW[0],), "line"), Key("bound", look="dash")]
    keys.append(Key("published", (FEW[1],), "D"))
    at = [np.array([[x["capacity"] / factor, 100 * x["bubble"]]]) for x in rows]
    proved = [x["proved"] and "claimed" not in x["standing"] for x in rows]
    texts = [
        f"{quantity(x['capacity'], x['unit'])}: {quantity(x['seconds'], 's', 6)} by {x['by']}"
        f"<br>bound {quantity(x['bound'], 's', 6)}"
        for x in rows
    ]
    panel = panel.add(
        Lines([[(x["capacity"] / factor, 100 * x["least_bubble"]) for x in rows]], INK, 1.2, dash=True, name="bound"),
        Lines([[tuple(xy[0]) for xy in at]], FEW[0], 1.6, name=keys[0].label),
        *(Dots(xy, FEW[0] if x else "#ffffff", 7.0, "o", FEW[0], [text], keys[0].label)
          for xy, x, text in zip(at, proved, texts, strict=True)),
    )  # fmt: skip
    if published:
        known = [(x["memory"] / factor, 100 * x["bubble"], x["name"]) for x in published]
        shift = 0.01 * most / factor
        panel = panel.add(
            Dots(np.array([x[:2] for x in known]), FEW[1], 8.0, "D", "#ffffff", [x[2] for x in known], "published"),
            Words.of([(x + shift, y + 0.03 * high, name, 9.0, INK) for x, y, name in known], "left"),
        )
    return Scene(title, f"{sum(proved)} of {len(rows)} amounts of memory proved", [[replace(panel, keys=keys)]])
