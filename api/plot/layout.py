"""The picture of a layout: what each stage computes when, how full its GPUs are, and what a step consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.pipeline import PipelineProblem
from gangplan.instances.quantities import quantity, scale
from gangplan.instances.verify.layout import LayoutVerdict
from gangplan.instances.verify.pipeline import verify_pipeline
from gangplan.solvers.layout.frontier import Point
from gangplan.solvers.pipeline.published import interleaved, one_forward_one_backward, zb_h1

from .colours import INK, colours
from .partition import MIDDLE, Drawn
from .pipeline import MOST_NAMES, Timed, timed_scene
from .scene import LEFT, RIGHT, Axis, Boxes, Dots, FloatArray, Key, Lines, Panel, Scene, Words

MOST = 6000
"""Passes that a picture has room for."""
FORWARD = np.array([1, 0, 0, 1 / 2, 1 / 3, 1 / 2, 1 / 3, 1 / 2])
"""Share of the forward pass of the first parts of a step, see `SECONDS`; the rest is of the backward pass."""


def layout_scene(entry: Drawn) -> Scene:
    """Return the picture of a layout: panels ``pipeline``, ``memory`` and ``seconds``."""
    verdict, problem, plan = entry.verdict(), entry.problem, entry.plan
    limits = np.array([problem.pools[k].memory for k in plan.pool.tolist()])
    halves = (LEFT, MIDDLE - 0.2 - LEFT), (MIDDLE + 0.6, RIGHT - MIDDLE - 0.6)
    full = _stacked("memory", verdict.parts["memory"], "B", halves[0], limits)
    parts = _stacked("seconds", verdict.parts["seconds"], "s", halves[1])
    timed = first_passes(problem, plan, verdict)
    pipeline = [replace(x, name="pipeline", heading=timed.told * (not x.bare)) for x in timed_scene([timed]).rows[0]]
    return Scene(
        f"{problem!r}".partition("(")[2][:-1],
        entry.worth(verdict.objective, plan.summary()),
        [pipeline, [full, parts]],
    )


def first_passes(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict) -> Timed:
    """Return the passes of the first micro-batches of a step, as many as can be drawn, in the published order.

    That is 1F1B, interleaved or ZB-H1; chunks of a stage take equally long.
    """
    p, v = len(plan.pool), plan.virtual
    count = problem.batch // (plan.data * plan.micro_batch)
    few = max(2 * p, 8) if v == 1 else 2 * p
    shown = min(count, few if 2 * p * v * few <= MOST else p)
    each = verdict.seconds[: len(FORWARD)] / (count * v)
    forward, backward = (np.tile(x @ each, v) for x in (FORWARD, 1 - FORWARD))
    late = backward / 2 * plan.zero_bubble  # the share of the weights
    drawn = PipelineProblem(
        np.tile(np.arange(p), v), forward, backward - late, late, shown, plan.zero_bubble, activation=0 * late
    )
    orders = (interleaved if v > 1 else zb_h1 if plan.zero_bubble else one_forward_one_backward)(drawn) or []
    found = verify_pipeline(drawn, drawn.plan([[drawn.number(*x) for x in order] for order in orders]))
    some = "" if shown == count else f"the first {shown} of {count} micro-batches"
    return Timed(drawn, found.start, found.finish, found.objective or 0.0, found.memory, some)


def _stacked(
    name: str,
    parts: Mapping[str, FloatArray],
    unit: str,
    room: tuple[float, float],
    limits: FloatArray | None = None,
) -> Panel:
    """Return a panel with a bar a stage of the parts that there are, one on the other."""
    total = np.sum([*parts.values()], axis=0)
    most = float(max(total.max(), 0.0 if limits is None else limits.max()))
    factor, word = scale(most, unit)
    some = [part for part, amounts in parts.items() if amounts.max() > 1e-3 * most]
    stages, below = len(total), np.zeros(len(total))
    marks, keys = [], []
    for part, colour in zip(some, colours(len(some)), strict=True):
        high = parts[part] / factor
        told = [f"stage {s}<br>{part} {quantity(x * factor, unit)}" for s, x in enumerate(high.tolist())]
        at = np.stack([np.arange(stages) - 0.4, below, np.full(stages, 0.8), high], axis=1)
        marks.append(Boxes(at, colour, told, part))
        keys.append(Key(part, (colour,)))
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
