"""The picture of a throughput partition: the graph coloured by device, what each is busy with, and its memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, PartitionPlan, PartitionProblem, verify
from gangplan.instances.quantities import quantity, scale

from ..units import amount, percent, time_unit, words
from .colours import GREY, colours, paler
from .graph import graph_panel
from .scene import LEFT, RIGHT, Axis, Boxes, FloatArray, Key, Lines, Panel, Scene

OFF_SCALE = 0.2
"""Of a limit: where bars are lower, they would say nothing beside it."""
MOST_NAMES, MOST_VALUES = 32, 12
"""Bars that can be named, and given their value, without overlap."""
MIDDLE = (LEFT + RIGHT) / 2


@dataclass(frozen=True, slots=True)
class Drawn:
    """A plan to draw.

    Attributes:
        problem: what the plan answers.
        plan: a feasible plan.
        name: what to call it beside others.
        status: of the result it is from, if known.
        bound: no plan is better than this.
    """

    problem: Any
    plan: Any
    name: str = ""
    status: str | None = None
    bound: float | None = None


def partition_scene(
    problem: PartitionProblem, plan: PartitionPlan, name: str, status: str | None, bound: float | None
) -> Scene:
    """Return the picture of a plan: panels ``graph``, ``load`` and, if a device has a limit, ``memory``.

    Raises:
        ValueError: if the plan violates a constraint.
    """
    verdict = verify(problem, plan)
    if verdict.objective is None:
        raise ValueError(f"an infeasible plan cannot be drawn: {verdict.violations[0]}")
    cluster, unit, objective = problem.cluster, time_unit(problem), verdict.objective
    stage = np.full(cluster.n_devices, -1)
    stage[plan.device] = plan.stage
    used = np.flatnonzero(stage >= 0)
    used = used[np.argsort(stage[used], kind="stable")]
    index = np.full(cluster.n_devices, -1)
    index[used] = np.arange(len(used))
    kinds = [cluster.device_types[t] for t in cluster.type_of[used].tolist()]
    names = [f"{device} ({kind.name})" for device, kind in zip(used.tolist(), kinds, strict=True)]
    told = [
        f"{op}<br>{quantity(seconds, unit)}"
        for op, seconds in zip(problem.graph.names, problem.time().min(axis=0).tolist(), strict=True)
    ]
    idle = cluster.n_devices - len(used)
    below = "device, in the order of the stages" + (f"; {idle} more idle" if idle else "")
    factor, seconds = scale(objective, unit)
    transfer = verdict.transfer[used] / factor
    per = f"{seconds} per pass" if unit else ""
    bars = [_bars("load", names, verdict.load[used] / factor - transfer, per, f"busy, {per}", transfer)]
    if not unit:
        bars = [replace(bars[0], y=replace(bars[0].y, label="busy per pass (unit of the file)"))]
    if bound is not None:
        line = Lines([[(bars[0].x.low, bound / factor), (bars[0].x.high, bound / factor)]], width=1.2, dash=True)
        key = Key(f"bound {quantity(bound, unit, 6)}: no plan is better", look="dash")
        bars = [_limited(bars[0], line, key, bound / factor)]
    limit = np.array([np.inf if kind.memory is None else kind.memory for kind in kinds])
    if np.isfinite(limit).any():
        factor, size = scale(float(verdict.memory[used].max()), "B")
        panel = _bars("memory", names, verdict.memory[used] / factor, size, f"memory, {size}")
        bars.append(_memory(panel, limit / factor, quantity(float(limit.min()), "B")))
    if len(bars) == 2:
        bars = [
            replace(bars[0], width=MIDDLE - 0.2 - LEFT),
            replace(bars[1], left=MIDDLE + 0.6, width=RIGHT - MIDDLE - 0.6),
        ]
    return Scene(
        title(problem, name),
        subtitle(problem, objective, status, bound),
        [
            [graph_panel(problem.graph, index[plan.device], names, colours(len(used)), told)],
            [replace(panel, x=replace(panel.x, label=below)) for panel in bars],
        ],
    )


def title(problem: GraphProblem, name: str) -> str:
    """Return what is placed on what, in words."""
    cluster = problem.cluster
    kinds = zip(cluster.counts().tolist(), cluster.device_types, strict=True)
    machines = " + ".join(f"{count} \u00d7 {kind.name}" for count, kind in kinds if count)
    return f"{name + ': ' if name else ''}{problem.graph.n_ops:,} ops on {machines}"


def subtitle(problem: Any, objective: float, status: str | None, bound: float | None, *more: str) -> str:
    """Return what a plan of any problem is worth, in words, with its gap if a bound is proved."""
    gap = "" if bound is None else f"gap {percent(max(0.0, (objective - bound) / objective) if objective > 0 else 0.0)}"
    kind = words(problem) if isinstance(problem, GraphProblem) else ""
    return " · ".join(filter(None, [status, kind, amount(problem, objective, 6), gap, *more]))


def _bars(
    name: str, devices: list[str], solid: FloatArray, unit: str, label: str, pale: FloatArray | None = None
) -> Panel:
    """Return a panel with a bar a device, the hatched part on top."""
    count, total = len(devices), solid if pale is None else solid + pale
    x, colour = np.arange(count) - 0.38, colours(count)
    numbers = [device.split()[0] for device in devices]
    if count <= MOST_VALUES:
        numbers = [f"{number}\n{value:.4g}" for number, value in zip(numbers, total, strict=True)]
    middle, reach = (count - 1) / 2, max(count, 5) / 2 + 0.2
    axis = Axis(middle - reach, middle + reach, ticks=list(enumerate(numbers))[:: -(-count // MOST_NAMES)])
    parts = [("compute" if pale is not None else "used", solid, np.zeros(count), colour)]
    if pale is not None:
        parts.append(("transfer", pale, solid, [paler(c) for c in colour]))
    marks = [
        Boxes(
            np.stack([x, low, np.full(count, 0.76), height], axis=1),
            face,
            [f"device {d}<br>{word} {y:.5g} {unit}" for d, y in zip(devices, height.tolist(), strict=True)],
            word,
            edge="#ffffff" if word == "transfer" else "",
            hatch=word == "transfer",
        )
        for word, height, low, face in parts
    ]
    keys = [Key("compute", (GREY,)), Key("transfer", (paler(GREY), "#ffffff"), "hatch")] if pale is not None else []
    top = float(total.max()) * 1.06 or 1.0
    return Panel(name, axis, Axis(0.0, top, label, grid=True), marks, keys, height=2.4, below=0.8)


def _limited(panel: Panel, line: Lines, key: Key, limit: float) -> Panel:
    """Return the panel with a limit, up to which its axis reaches."""
    axis = replace(panel.y, high=max(panel.y.high, limit * 1.06))
    return replace(panel.add(line), y=axis, keys=[*panel.keys, key])


def _memory(panel: Panel, limit: FloatArray, least: str) -> Panel:
    """Return the panel of memory with the capacity of each device, unless bars would be too low to be seen."""
    finite = np.flatnonzero(np.isfinite(limit))
    if panel.y.high / 1.06 < OFF_SCALE * float(limit.min()):
        return replace(panel, keys=[Key(f"capacity {least}, off the scale", look="")])
    lines = [[(i - 0.46, limit[i]), (i + 0.46, limit[i])] for i in finite.tolist()]
    return _limited(panel, Lines(lines, width=1.4), Key("capacity", look="line"), float(limit[finite].max()))
