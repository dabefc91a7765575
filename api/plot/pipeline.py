"""Pictures of pipelines: the passes of each device over time, what it holds, and memory against bubble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

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
SIDE = 1.35
"""Inches to the right of the passes, for what devices are busy and hold."""


def pipeline_scene(entries: Sequence[Drawn]) -> Scene:
    """Return the passes of plans on one axis of time, panels ``passes``."""
    verdicts = [entry.verdict() for entry in entries]
    last = max(max(float(v.finish.max()), e.bound or 0.0) for v, e in zip(verdicts, entries, strict=True))
    factor, unit = scale(last, "s")
    axis = Axis(0.0, 1.012 * last / factor or 1.0, f"time, {unit}", grid=True, link="time")
    rows = []
    for entry, verdict in zip(entries, verdicts, strict=True):
        problem, p = entry.problem, entry.problem.devices
        passes, kinds = problem.passes(), 2 + problem.split
        kind, stage, j = np.unravel_index(np.arange(problem.n_passes), (kinds, problem.stages, problem.micro_batches))
        ticks = [(d + 0.5, f"{d}") for d in range(p)]
        height = max(min(PITCH * p, MOST_TALL), 0.6)
        panel = Panel("passes", axis, Axis(p, 0, "device", ticks=ticks), (), height=height, width=RIGHT - LEFT - SIDE)
        at = np.stack([verdict.start / factor, passes.device + 0.08, passes.seconds / factor, np.full(len(j), 0.84)], 1)
        turn = np.array([int((problem.device[:s] == d).sum()) for s, d in enumerate(problem.device)])
        shades = [COLOURS[k][t % 2] for k, t in zip(kind, turn[stage], strict=True)]
        texts = [
            f"{problem.told(x)}<br>{quantity(a, 's', 6)} to {quantity(b, 's', 6)}"
            for x, (a, b) in enumerate(zip(verdict.start, verdict.finish, strict=True))
        ]
        keys = [Key(NAMES[k] + (" with weights" if k and not problem.split else ""), COLOURS[k]) for k in range(kinds)]
        keys.append(Key("darker: a later stage of the device", look="")) if problem.stages > p else None
        across = np.array([[0.0, d + 0.04, axis.high, 0.92] for d in range(p)])
        panel = panel.add(
            Boxes(across, BAND),
            Boxes(at, shades, texts, [keys[k].label for k in kind], edge="#ffffff"),
            names_in(at, [[f"{x}"] for x in j], panel.scale, paper=shades),
        )
        if entry.bound is not None and problem.barrier:
            keys.append(Key(f"bound {quantity(entry.bound, 's', 6)}: no plan is better", look="dash"))
            panel = panel.add(Lines([[(entry.bound / factor, 0), (entry.bound / factor, p)]], width=1.4, dash=True))
        told = entry.worth(verdict.objective, f"bubble {percent(verdict.bubble)}")
        heading = f"{entry.name} · {told}" if len(entries) > 1 else ""
        side = replace(panel, marks=(), bare=True, left=panel.left + panel.width + 0.1, width=SIDE - 0.1, keys=())
        rows.append([replace(panel, keys=keys, heading=heading), _side(side, verdict)])
    subtitle = told if len(entries) == 1 else f"{len(entries)} plans on one axis of time"
    problem = entries[0].problem
    return Scene(f"{problem.micro_batches} micro-batches through {problem.stages} stages", subtitle, rows)


def _side(panel: Panel, verdict: object) -> Panel:
    """Return the panel that says how busy each device is, and what it holds at most."""
    seconds, held = verdict.objective or 1.0, verdict.memory  # type: ignore[attr-defined]
    told = [(0.42, -0.15, "busy", 8.5, GREY)] + [(1.0, -0.15, "holds", 8.5, GREY)] * bool(held.any())
    for d, (busy, most) in enumerate(zip(verdict.load / seconds, held, strict=True)):  # type: ignore[attr-defined]
        told.append((0.42, d + 0.5, f"{busy:.0%}", 8.5, INK))
        told += [(1.0, d + 0.5, quantity(most, "B", 3), 8.5, INK)] * bool(held.any())
    return replace(panel, x=Axis(0, SIDE - 0.1)).add(Words.of(told, "right", outside=True))


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
