"""The picture of a layout: what each stage computes when, how full its GPUs are, and what a step consists of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangplan.instances.layout.problem import LayoutProblem
from gangplan.instances.layout.stage import Memory
from gangplan.instances.quantities import quantity, scale
from gangplan.instances.timeline.layout import Passes, passes
from gangplan.instances.verify.layout import SECONDS
from gangplan.solvers.layout.frontier import Point

from .colours import BAND, INK, colours, paler
from .gantt import COLOURS
from .partition import MIDDLE, Drawn
from .scene import LEFT, RIGHT, Axis, Boxes, Dots, FloatArray, Key, Lines, Panel, Scene, Words, names_in

ROW = 0.26
"""Inches of a stage in the pipeline."""
MOST_NAMES, MOST_TOLD = 32, 3000
"""Stages that can be numbered, and passes of which a pointer is told."""
LEAST_EDGED = 0.06
"""Inches of a pass from which on it has an outline."""


def layout_scene(entry: Drawn) -> Scene:
    """Return the picture of a layout: panels ``pipeline``, ``memory`` and ``seconds``."""
    verdict, problem, plan = entry.verdict(), entry.problem, entry.plan
    limits = np.array([problem.pools[k].memory for k in plan.pool.tolist()])
    halves = (LEFT, MIDDLE - 0.2 - LEFT), (MIDDLE + 0.6, RIGHT - MIDDLE - 0.6)
    full = _stacked("memory", Memory._fields, verdict.memory, "B", halves[0], limits)
    parts = _stacked("seconds", SECONDS, verdict.seconds, "s", halves[1])
    pipeline = _pipeline(passes(problem, plan, verdict), len(plan.pool), ", drawn as 1F1B" * plan.zero_bubble)
    return Scene(
        f"{problem!r}".partition("(")[2][:-1],
        entry.worth(verdict.objective, plan.summary()),
        [[pipeline], [full, parts]],
    )


def _pipeline(drawn: Passes, stages: int, more: str) -> Panel:
    """Return what each stage computes when, the first stage on top; chunks after the first are paler."""
    end = float(drawn.finish.max())
    factor, unit = scale(end, "s")
    step = -(-stages // MOST_NAMES)
    rows = [(s + 0.5, f"{s}") for s in range(0, stages, step)]
    some = "" if drawn.shown == drawn.all else f", the first {drawn.shown} of {drawn.all} micro-batches"
    axis = Axis(0.0, end / factor, f"{unit}{some}{more}")
    panel = Panel("pipeline", axis, Axis(stages, 0, "stage", rows), [], height=max(ROW * stages, 1.0))
    start, finish = drawn.start / factor, drawn.finish / factor
    at = np.stack([start, drawn.stage + 0.06, finish - start, np.full(len(start), 0.88)], axis=1)
    hues = [[paler(COLOURS[x][1], 0.35 * (c > 0)) for c in range(2)] for x in ("forward", "backward")]
    faces = [hues[b][min(c, 1)] for b, c in zip(drawn.backward.tolist(), drawn.chunk.tolist(), strict=True)]
    kinds = ["backward" if b else "forward" for b in drawn.backward.tolist()]
    spans = [f"{quantity(x * factor, 's')} to {quantity(y * factor, 's')}" for x, y in zip(start, finish, strict=True)]
    each = zip(drawn.micro_batch, kinds, drawn.stage, drawn.chunk, spans, strict=True)
    told = [f"micro-batch {b}, {kind}<br>stage {s}, chunk {c}<br>{span}" for b, kind, s, c, span in each]
    told = told * (len(told) <= MOST_TOLD)
    edge = "#ffffff" * bool(np.median(finish - start) * panel.scale[0] > LEAST_EDGED)
    across = np.array([[0.0, s, end / factor, 1.0] for s in range(stages)])
    panel = panel.add(Boxes(across, BAND), Boxes(at, faces, told, kinds, edge=edge, line=0.3))
    names = names_in(at, [[f"{b}"] for b in drawn.micro_batch], panel.scale, paper=faces)
    keys = [Key(kind, tuple(hues[i])) for i, kind in enumerate(("forward", "backward"))]
    return Panel("pipeline", axis, panel.y, panel.add(names).marks, keys, height=panel.height)


def _stacked(
    name: str,
    parts: Sequence[str],
    amounts: FloatArray,
    unit: str,
    room: tuple[float, float],
    limits: FloatArray | None = None,
) -> Panel:
    """Return a panel with a bar a stage of the parts that there are, (parts, stages), one on the other."""
    total = amounts.sum(axis=0)
    most = float(max(total.max(), 0.0 if limits is None else limits.max()))
    factor, word = scale(most, unit)
    some = [i for i in range(len(parts)) if amounts[i].max() > 1e-3 * most]
    stages, below = len(total), np.zeros(len(total))
    marks, keys = [], []
    for i, colour in zip(some, colours(len(some)), strict=True):
        high = amounts[i] / factor
        told = [f"stage {s}<br>{parts[i]} {quantity(x * factor, unit)}" for s, x in enumerate(high.tolist())]
        at = np.stack([np.arange(stages) - 0.4, below, np.full(stages, 0.8), high], axis=1)
        marks.append(Boxes(at, colour, told, parts[i]))
        keys.append(Key(parts[i], (colour,)))
        below = below + high
    lines: list[Lines] = []
    if limits is not None:
        lines = [Lines([[(s - 0.46, y), (s + 0.46, y)] for s, y in enumerate((limits / factor).tolist())], width=1.4)]
        keys.append(Key("capacity", look="line"))
    ticks = [(float(s), f"{s}") for s in range(0, stages, -(-stages // MOST_NAMES))]
    x = Axis(-0.6, max(stages, 4) - 0.4, "stage", ticks)
    y = Axis(0.0, 1.06 * most / factor, f"{name} of a {'GPU' if unit == 'B' else 'step'}, {word}", grid=True)
    return Panel(name, x, y, [*marks, *lines], keys, left=room[0], width=room[1], height=2.6)


def frontier_scene(problem: LayoutProblem, points: Sequence[Point]) -> Scene:
    """Return the picture of the fastest layouts by memory, and of the bounds for as much, where these are known."""
    kept = [x for x in points if x.seconds <= min(y.seconds for y in points if y.need <= x.need)]
    kept = sorted(kept, key=lambda x: x.need)
    (by, size), (per, unit) = scale(kept[-1].need, "B"), scale(kept[0].seconds, "s")
    x, y = [point.need / by for point in kept], [point.seconds / per for point in kept]
    corners = [(x[0], y[0])]
    for a, b in zip(x[1:], y[1:], strict=True):
        corners += [(a, corners[-1][1]), (a, b)]
    reach, high = max(x[-1] - x[0], 0.2 * x[-1]) * 0.1, max(y)
    told = [point.plan.summary() for point in kept]
    names: list[tuple[float, float, str, float, str]] = []
    for a, b, text in zip(x, y, told, strict=True):
        if not names or a - names[-1][0] > 3 * reach or abs(b - names[-1][1]) > 0.1 * high:
            names.append((a + 0.05 * reach, b + 0.025 * high, text, 8.0, INK))
    known = [(point.share, point.bound) for point in points if point.bound is not None]
    most = max(pool.memory for pool in problem.pools)
    bounds = np.array([[share * most / by, bound / per] for share, bound in known]).reshape(-1, 2)
    keys = [Key("the fastest found", look="line"), Key("bound for as much memory", look="|")]
    panel = Panel(
        "frontier",
        Axis(x[0] - reach, max(x[-1], most / by) + 4 * reach, f"memory of the fullest GPU, {size}", grid=True),
        Axis(0.0, 1.1 * high, f"seconds of a step, {unit}", grid=True),
        [Lines([corners]), Dots(bounds, size=9.0, shape="|"), Dots(np.array([x, y]).T, texts=told)],
        keys,
        height=4.5,
    ).add(Words.of(names, "left"))
    return Scene(f"{problem!r}".partition("(")[2][:-1], "the fastest layouts by memory", [[panel]])
