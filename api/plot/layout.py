"""The picture of a layout: what each stage computes when, how full its GPUs are, and what a step consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.pipeline import PipelineProblem
from gangplan.instances.quantities import scale
from gangplan.instances.verify.layout import LayoutVerdict
from gangplan.instances.verify.pipeline import verify_pipeline
from gangplan.solvers.layout.frontier import Point
from gangplan.solvers.pipeline.published import interleaved, one_forward_one_backward, zb_h1

from .colours import INK, colours
from .partition import MIDDLE, Drawn, limited
from .pipeline import MOST_NAMES, TimedPasses, timed_scene
from .scene import LEFT, RIGHT, Axis, Boxes, Dots, FloatArray, Key, Lines, Panel, Scene, Words
from .simulation import steps

MOST = 6000
"""Passes that a picture has room for."""
FORWARD = np.array([1, 0, 0, 1 / 2, 1 / 3, 1 / 2, 1 / 3, 1 / 2])
"""Share of the forward pass of the first parts of a step, see `SECONDS`; the rest is of the backward pass."""


def layout_scene(entry: Drawn) -> Scene:
    """Return the picture of a layout: panels ``pipeline``, ``memory`` and ``seconds``."""
    verdict, problem, plan = entry.verdict(), entry.problem, entry.plan
    parts, limits = verdict.parts, np.array([problem.pools[k].memory for k in plan.pool.tolist()])
    (size, bytes_), (per, unit) = scale(float(limits.max()), "B"), scale(float(verdict.seconds.sum(axis=0).max()), "s")
    memory = _stacked("memory", parts["memory"], size, f"memory of a GPU, {bytes_}")
    full = limited(memory, limits / size, Key("capacity", look="line"))
    seconds = _stacked("seconds", parts["seconds"], per, f"seconds of a step, {unit}")
    halves = replace(full, width=MIDDLE - 0.2 - LEFT), replace(seconds, left=MIDDLE + 0.6, width=RIGHT - MIDDLE - 0.6)
    timed = first_passes(problem, plan, verdict)
    above = [replace(x, name="pipeline", heading=timed.told * (not x.bare)) for x in timed_scene([timed]).rows[0]]
    return Scene(f"{problem!r}".partition("(")[2][:-1], entry.worth(verdict.objective, plan.summary()), [above, halves])


def first_passes(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict) -> TimedPasses:
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
    return TimedPasses(drawn, found.start, found.finish, found.objective or 0.0, found.memory, some)


def _stacked(name: str, parts: Mapping[str, FloatArray], factor: float, label: str) -> Panel:
    """Return a panel with a bar a stage of the parts that there are, one on the other."""
    total = np.sum([*parts.values()], axis=0) / factor
    some = {part: x / factor for part, x in parts.items() if x.max() > 1e-3 * total.max() * factor}
    stages, below = len(total), np.zeros(len(total))
    marks, keys = [], []
    for (part, high), colour in zip(some.items(), colours(len(some)), strict=True):
        told = [f"stage {s}<br>{part} {x:.4g} {label.rpartition(' ')[2]}" for s, x in enumerate(high.tolist())]
        at = np.stack([np.arange(stages) - 0.4, below, np.full(stages, 0.8), high], axis=1)
        marks.append(Boxes(at, colour, told, part))
        keys.append(Key(part, (colour,)))
        below = below + high
    x = Axis(-0.6, max(stages, 4) - 0.4, "stage", list(enumerate(map(str, range(stages))))[:: -(-stages // MOST_NAMES)])
    return Panel(name, x, Axis(0.0, 1.06 * float(total.max()), label, grid=True), marks, keys, height=2.6)


def frontier_scene(problem: LayoutProblem, points: Sequence[Point]) -> Scene:
    """Return the picture of the fastest layouts by memory, and of the bounds for as much, where these are known."""
    kept = [x for x in points if x.seconds <= min(y.seconds for y in points if y.need <= x.need)]
    kept = sorted(kept, key=lambda x: x.need)
    (by, size), (per, unit) = scale(kept[-1].need, "B"), scale(kept[0].seconds, "s")
    at = np.array([[point.need / by, point.seconds / per] for point in kept])
    most, high = max(pool.memory for pool in problem.pools) / by, float(at[:, 1].max())
    reach, told = max(float(np.ptp(at[:, 0])), 0.2 * at[-1, 0]) * 0.1, [point.plan.summary() for point in kept]
    names: list[tuple[float, float, str, float, str]] = []
    for (a, b), text in zip(at.tolist(), told, strict=True):
        if not names or a - names[-1][0] > 3 * reach or abs(b - names[-1][1]) > 0.1 * high:
            names.append((a + 0.05 * reach, b + 0.025 * high, text, 8.0, INK))
    bounds = np.array([[x.share * most, x.bound / per] for x in points if x.bound is not None]).reshape(-1, 2)
    panel = Panel(
        "frontier",
        Axis(at[0, 0] - reach, max(at[-1, 0], most) + 4 * reach, f"memory of the fullest GPU, {size}", grid=True),
        Axis(0.0, 1.1 * high, f"seconds of a step, {unit}", grid=True),
        [Lines([steps(*at.T)]), Dots(bounds, size=9.0, shape="|"), Dots(at, texts=told)],
        [Key("the fastest found", look="line"), Key("bound for as much memory", look="|")],
        height=4.5,
    ).add(Words.of(names, "left"))
    return Scene(f"{problem!r}".partition("(")[2][:-1], "the fastest layouts by memory", [[panel]])
