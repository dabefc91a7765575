"""The picture of a throughput partition: the graph coloured by device, what each is busy with, and its memory.

Of the graph a dot is an op with its edges, or in large ones a block the ops of a device at a depth. Columns are depths,
rows are chosen so that edges cross little, the backward pass lies below, mirrored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import GraphProblem, OpGraph, verify
from gangplan.instances.graph import grouped, heaviest_paths
from gangplan.instances.quantities import quantity, scale

from ..units import amount, percent, time_unit, words
from .colours import FAINT, FEW, GREY, INK, colours, paler
from .scene import LEFT, RIGHT, Axis, Boxes, Dots, FloatArray, IntArray, Key, Lines, Panel, Scene, Words

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

    def verdict(self) -> Any:
        """Return what the verifier says of the plan.

        Raises:
            ValueError: if it is infeasible.
        """
        verdict = verify(self.problem, self.plan)
        if verdict.objective is None:
            raise ValueError(f"an infeasible plan cannot be drawn: {verdict.violations[0]}")
        return verdict

    def worth(self, objective: float, *more: str) -> str:
        """Return what the plan is worth, in words, with its gap if a bound is proved."""
        problem, bound = self.problem, self.bound
        far = None if bound is None else max(0.0, (objective - bound) / objective) if objective > 0 else 0.0
        gap = "" if far is None else f"gap {percent(far)}"
        kind = words(problem) if isinstance(problem, GraphProblem) else ""
        return " · ".join(filter(None, [self.status, kind, amount(problem, objective, 6), gap, *more]))


def partition_scene(entry: Drawn) -> Scene:
    """Return the picture of a plan: panels ``graph``, ``load`` and, if a device has a limit, ``memory``."""
    verdict, problem, plan, bound = entry.verdict(), entry.problem, entry.plan, entry.bound
    cluster, unit, objective = problem.cluster, time_unit(problem), verdict.objective
    stage = np.full(cluster.n_devices, -1)
    stage[plan.device] = plan.stage
    used = np.flatnonzero(stage >= 0)
    used = used[np.argsort(stage[used], kind="stable")]
    index = np.full(cluster.n_devices, -1)
    index[used] = np.arange(len(used))
    kinds = [cluster.device_types[t] for t in cluster.type_of[used].tolist()]
    names = [f"{device} ({kind.name})" for device, kind in zip(used.tolist(), kinds, strict=True)]
    fastest = zip(problem.graph.names, problem.time().min(axis=0).tolist(), strict=True)
    told = [f"{op}<br>{quantity(seconds, unit)}" for op, seconds in fastest]
    idle = cluster.n_devices - len(used)
    below = "device, in the order of the stages" + (f"; {idle} more idle" if idle else "")
    factor, seconds = scale(objective, unit)
    transfer = verdict.transfer[used] / factor
    per = f"{seconds} per pass" if unit else ""
    label = f"busy, {per}" if unit else "busy per pass (unit of the file)"
    bars = [_bars("load", names, verdict.load[used] / factor - transfer, per, label, transfer)]
    if bound is not None:
        key = Key(f"bound {quantity(bound, unit, 6)}: no plan is better", look="dash")
        bars = [limited(bars[0], np.full(len(used), bound / factor), key)]
    limit = np.array([np.inf if kind.memory is None else kind.memory for kind in kinds])
    if np.isfinite(limit).any():
        factor, size = scale(float(verdict.memory[used].max()), "B")
        panel = _bars("memory", names, verdict.memory[used] / factor, size, f"memory, {size}")
        if panel.y.high / 1.06 < OFF_SCALE * float(limit.min()) / factor:
            panel = replace(panel, keys=[Key(f"capacity {quantity(float(limit.min()), 'B')}, off the scale", look="")])
        else:
            panel = limited(panel, limit / factor, Key("capacity", look="line"))
        bars.append(panel)
    if len(bars) == 2:
        halves = (LEFT, MIDDLE - 0.2 - LEFT), (MIDDLE + 0.6, RIGHT - MIDDLE - 0.6)
        bars = [replace(panel, left=left, width=width) for panel, (left, width) in zip(bars, halves, strict=True)]
    graph = graph_panel(problem.graph, index[plan.device], names, colours(len(used)), told)
    rows = [[graph], [replace(panel, x=replace(panel.x, label=below)) for panel in bars]]
    return Scene(title(problem), entry.worth(objective), rows)


def title(problem: GraphProblem) -> str:
    """Return what is placed on what, in words."""
    cluster = problem.cluster
    kinds = zip(cluster.counts().tolist(), cluster.device_types, strict=True)
    machines = " + ".join(f"{count} \u00d7 {kind.name}" for count, kind in kinds if count)
    return f"{problem.graph.n_ops:,} ops on {machines}"


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
    marks = []
    for word, height, low, face in parts:
        told = [f"device {d}<br>{word} {y:.5g} {unit}" for d, y in zip(devices, height.tolist(), strict=True)]
        at, hatch = np.stack([x, low, np.full(count, 0.76), height], axis=1), word == "transfer"
        marks.append(Boxes(at, face, told, word, edge="#ffffff" * hatch, hatch=hatch))
    keys = [Key("compute", (GREY,)), Key("transfer", (paler(GREY), "#ffffff"), "hatch")] if pale is not None else []
    top = float(total.max()) * 1.06 or 1.0
    return Panel(name, axis, Axis(0.0, top, label, grid=True), marks, keys, height=2.4, below=0.8)


def limited(panel: Panel, limit: FloatArray, key: Key) -> Panel:
    """Return the panel with the limit of each bar, up to which its axis reaches."""
    lines = [[(i - 0.46, y), (i + 0.46, y)] for i, y in enumerate(limit.tolist()) if np.isfinite(y)]
    axis = replace(panel.y, high=max(panel.y.high, 1.06 * float(limit[np.isfinite(limit)].max())))
    return replace(panel.add(Lines(lines, width=1.4, dash=key.look == "dash")), y=axis, keys=[*panel.keys, key])


MOST_DOTS, MOST_COLUMNS, MOST_ROWS = 800, 200, 40
"""Beyond these an op is too small to see, and ops are drawn as blocks."""
BLOCK_COLUMNS, MOST_ANCHORS = 72, 40
"""Columns of blocks, and devices that can be numbered there."""
CURVE = np.linspace(0.0, 1.0, 17)
SHORT = 4
"""Characters of an op's name that fit into its dot."""
BETWEEN, INSIDE = "edges between devices", "edges inside a device"
HEIGHT = "height: ops at that depth"
DEPTH = "depth in the graph: ops on the longest path before"
SWEEPS = 8
GAP = 1.6
"""Rows between the forward and the backward half."""


def columns(graph: OpGraph) -> IntArray:
    """Return the column of each op, int (n,): its depth; an op of the backward pass stands under its twin."""
    u, v = graph.source.astype(np.int64), graph.target.astype(np.int64)
    back = graph.backward
    ahead = ~back[u] & ~back[v]
    behind = back[u] & back[v]
    order = graph.topological_order()
    column = np.where(back, _depth(order[::-1], v[behind], u[behind]), _depth(order, u[ahead], v[ahead]))
    twinned = back & (graph.twin >= 0)
    column[twinned] = column[graph.twin[twinned]]
    return column


def _depth(order: NDArray[np.int32], u: IntArray, v: IntArray) -> IntArray:
    """Return the longest path to each op, in edges; an op that nothing leads to stands right before its first use."""
    n = len(order)
    before = grouped(zip(v.tolist(), u.tolist(), strict=True), n)
    depth = np.array(heaviest_paths(order.tolist(), before, [1] * n)[0]) - 1
    latest = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(latest, u, depth[v] - 1)
    source = np.bincount(v, minlength=n) == 0
    late = source & (latest < np.iinfo(np.int64).max)
    depth[late] = latest[late]
    return depth


def rows(graph: OpGraph, column: IntArray) -> FloatArray:
    """Return the height of each op, float (n,): forward ops above zero, backward ops below.

    Within a column ops are ordered by the mean height of their neighbours, in a few sweeps (the barycentre
    method of Sugiyama, Tagawa and Toda, 1981).
    """
    n = graph.n_ops
    back = graph.backward
    group = column * 2 + back
    u, v = graph.source, graph.target
    same = back[u] == back[v]
    ends = np.concatenate([u[same], v[same]])
    others = np.concatenate([v[same], u[same]])
    degree, one = np.bincount(ends, minlength=n), np.ones(n)
    y = _centred(group, np.arange(n, dtype=np.float64), one)
    for _ in range(SWEEPS):
        mean = np.bincount(ends, weights=y[others], minlength=n) / np.maximum(degree, 1)
        y = _centred(group, np.where(degree > 0, mean, y), one)
    twinned = back & (graph.twin >= 0)
    if twinned.any():
        mirror = y.copy()
        mirror[twinned] = -y[graph.twin[twinned]]
        y = np.where(back, _centred(group, mirror, one), y)
    if not back.any() or back.all():
        return y
    shifted: FloatArray = np.where(back, y - y[back].max() - GAP / 2, y - y[~back].min() + GAP / 2)
    return shifted


def _centred(group: IntArray, key: NDArray[Any], tall: FloatArray) -> FloatArray:
    """Return the middles of what is stacked in each group, so tall each, in the order of `key`, centred on zero."""
    order = np.lexsort((np.arange(len(key)), key, group))
    _, first, of = np.unique(group[order], return_index=True, return_inverse=True)
    y, above = np.empty(len(key)), np.cumsum(tall[order])
    whole = np.bincount(of, tall[order])
    y[order] = above - tall[order] / 2 - (above - tall[order])[first][of] - whole[of] / 2
    return y


def graph_panel(
    graph: OpGraph, device: IntArray, names: Sequence[str], colour: Sequence[str], texts: Sequence[str]
) -> Panel:
    """Return the panel of a graph coloured by device.

    A small one has a dot an op, of others the ops of a device at about one depth are a block, as high as they are many.

    Args:
        graph: any.
        device: of each op, an index into the next two.
        names, colour: what each device is called, and its colour.
        texts: what there is to say of each op.
    """
    column, back, many = columns(graph), graph.backward, len(names)
    tallest = np.bincount(column * 2 + back).max()
    small = bool(graph.n_ops <= MOST_DOTS and column.max() < MOST_COLUMNS and tallest <= MOST_ROWS)
    width = 1.0 if small else max(1.0, (column.max() + 1) / BLOCK_COLUMNS)
    group = (column / width).astype(np.int64) * 2 + back
    cell = np.arange(graph.n_ops) if small else np.unique(group * many + device, return_inverse=True)[1]
    spot = cell if small else np.unique(back * many + device, return_inverse=True)[1]  # where lines end
    (first, mine), tall = (np.unique(x, return_index=True)[1] for x in (cell, spot)), np.bincount(cell).astype(float)
    x, piled = (group[first] // 2 + 0.5) * width - 0.5, np.bincount(group[first], tall).max()
    apart = np.where(back[first], -0.54, 0.54) * piled * back.any()
    y = rows(graph, column) if small else _centred(group[first], device[first], tall) + apart
    at = np.stack([np.bincount(spot, z[cell]) for z in (x, y)], axis=1) / np.bincount(spot)[:, None]
    (u, v), weight = np.unique(spot[[graph.source, graph.target]], axis=1, return_counts=True)
    of, span, cut = device[mine], np.abs(at[v, 0] - at[u, 0]) / width, device[mine][u] != device[mine][v]
    arch = np.where(span > 1, 0.26 + 0.22 * np.sqrt(span), 0.0) * np.where(back[mine][u], -1, 1)  # over what is between
    curves = _arched(at[u], at[v], arch * (1.0 if small else 0.1 * piled))
    thick = np.minimum(1.6 + 0.35 * np.log2(weight[cut]), 3.0).tolist()
    lines = [Lines(curves[~cut], FAINT, 0.9, name=INSIDE)] * small
    lines.append(Lines(curves[cut], INK, thick, name=BETWEEN, opacity=0.85))
    reach = np.concatenate([y - tall / 2, y + tall / 2, curves[cut | small, :, 1].ravel()])
    height = float(np.clip(0.34 * np.ptp(reach), 1.8, 5.0)) if small else 4.2
    margin = 0.04 * float(np.ptp(reach))
    ends = Axis(float(x.min()) - 0.8 * width, float(x.max()) + 0.8 * width, DEPTH if small else f"{DEPTH}; {HEIGHT}")
    halves = [(y > 0, "forward"), (y < 0, "backward")] if back.any() else []
    ticks = [(float(y[some].mean()), word) for some, word in halves if some.any()]
    named = [f"device {name}" for name in names]
    keys = [Key(name, (c,)) for name, c in zip(named, colour, strict=True)] if many <= len(FEW) else []
    keys.append(Key(BETWEEN if small else f"{BETWEEN}, the thicker the more", look="line"))
    keys += [Key(INSIDE, (FAINT,), "line")] if small and not cut.all() else []
    up = Axis(float(reach.min()) - margin, float(reach.max()) + margin, ticks=ticks)
    panel = Panel("graph", ends, up, (), keys, height=height)
    owners = [named[d] for d in of.tolist()]
    if small:
        size = float(np.clip(0.66 * 72 * min(panel.scale), 3.0, 18.0))
        told = [f"{text}<br>{name}" for text, name in zip(texts, owners, strict=True)]
        short = max(map(len, graph.names)) <= SHORT and size >= 11
        words = Words(at, graph.names, min(8.0, size * 0.48), "#ffffff") if short else None
        return panel.add(*lines, Dots(at, [colour[d] for d in of.tolist()], size, texts=told, name=owners), words)
    boxes, whose = np.stack([x - width / 2, y - tall / 2, np.full(len(x), width), tall], axis=1), device[first].tolist()
    cells = zip(tall.tolist(), back[first].tolist(), whose, strict=True)
    told = [f"{n:.0f} {'backward' if half else 'forward'} ops<br>{named[d]}" for n, half, d in cells]
    panel = panel.add(Boxes(boxes, [colour[d] for d in whose], told, [named[d] for d in whose]), *lines)
    if many > MOST_ANCHORS:
        return panel
    dots = Dots(at, "#ffffff", 13.0, edge=INK, texts=owners)
    return panel.add(dots, Words(at, [name.split()[1] for name in owners], 7.5))


def _arched(start: FloatArray, end: FloatArray, arch: FloatArray) -> FloatArray:
    """Return parabolas (m, points, 2) from `start` to `end` that rise `arch` above the straight line."""
    t = CURVE[None, :, None]
    line: FloatArray = start[:, None, :] * (1 - t) + end[:, None, :] * t
    line[:, :, 1] += (4 * CURVE * (1 - CURVE))[None, :] * arch[:, None]
    return line
