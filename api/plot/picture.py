"""What a picture of a plan shows, as plain numbers; the two renderers draw the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances import GraphProblem, PartitionPlan, PartitionProblem, verify

from ..units import percent, quantity, scale, time_unit
from .colours import colours
from .layout import FloatArray, IntArray, columns, rows
from .shapes import Drawing, blocks, dots

MOST_DOTS, MOST_COLUMNS, MOST_ROWS = 800, 200, 40
"""Beyond these an op is too small to see, and ops are drawn as blocks."""
OFF_SCALE = 0.2


@dataclass(frozen=True, slots=True)
class Bars:
    """One bar a device.

    Attributes:
        label: of the vertical axis.
        unit: of the numbers, empty if it has no name.
        least: the lowest limit in words.
        solid, pale: the parts of each bar, float (D,), the second on top.
        limit: float (D,), infinite for none.
    """

    label: str
    unit: str
    least: str
    solid: FloatArray
    pale: FloatArray
    limit: FloatArray

    @property
    def off_scale(self) -> bool:
        """Whether the limit is so far away that bars drawn against it would say nothing."""
        return float((self.solid + self.pale).max()) < OFF_SCALE * float(self.limit.min())


@dataclass(frozen=True, slots=True)
class Picture:
    """A plan, ready to draw; D is the number of devices in use, in the order of their stages.

    Attributes:
        title, subtitle: what it is, and how good.
        drawing: the graph; its devices are indices into the next two.
        devices: what each device is called.
        colours: of each device.
        load: seconds per sample, compute and transfers; its limit is the bound.
        memory: bytes, `None` if no device has a limit.
        idle: devices without an op.
    """

    title: str
    subtitle: str
    drawing: Drawing
    devices: tuple[str, ...]
    colours: tuple[str, ...]
    load: Bars
    memory: Bars | None
    idle: int


def compose(
    problem: PartitionProblem,
    plan: PartitionPlan,
    *,
    name: str = "",
    status: str | None = None,
    bound: float | None = None,
) -> Picture:
    """Lay out `plan` and measure its devices.

    Args:
        problem: what the plan answers.
        plan: a feasible plan.
        name: of the graph, for the title.
        status: of the result, for the title.
        bound: no plan is better than this, seconds.

    Raises:
        ValueError: if the plan violates a constraint.
    """
    verdict = verify(problem, plan)
    if verdict.objective is None:
        raise ValueError(f"an infeasible plan cannot be drawn: {verdict.violations[0]}")
    cluster, unit = problem.cluster, time_unit(problem)
    stage = np.full(cluster.n_devices, -1)
    stage[plan.device] = plan.stage
    used = np.flatnonzero(stage >= 0)
    used = used[np.argsort(stage[used], kind="stable")]
    index = np.full(cluster.n_devices, -1)
    index[used] = np.arange(len(used))
    kinds = [cluster.device_types[t] for t in cluster.type_of[used].tolist()]
    factor, seconds = scale(verdict.objective, unit)
    limit = np.full(len(used), np.inf if bound is None else bound / factor)
    load, transfer = verdict.load[used] / factor, verdict.transfer[used] / factor
    label = f"busy, {seconds} per sample" if unit else "busy per sample (unit of the file)"
    return Picture(
        title=title(problem, name),
        subtitle=_subtitle(problem, verdict.objective, status, bound),
        drawing=_drawing(problem, index[plan.device], unit),
        devices=tuple(f"{device} ({kind.name})" for device, kind in zip(used.tolist(), kinds, strict=True)),
        colours=tuple(colours(len(used))),
        load=Bars(
            label, f"{seconds} per sample" if unit else "", quantity(bound, unit, 6), load - transfer, transfer, limit
        ),
        memory=_memory(verdict.memory[used], [kind.memory for kind in kinds]),
        idle=cluster.n_devices - len(used),
    )


def title(problem: GraphProblem, name: str) -> str:
    """Return what is placed on what, in words."""
    cluster = problem.cluster
    kinds = zip(cluster.counts().tolist(), cluster.device_types, strict=True)
    machines = " + ".join(f"{count} \u00d7 {kind.name}" for count, kind in kinds if count)
    return f"{name + ': ' if name else ''}{problem.graph.n_ops:,} ops on {machines}"


def _subtitle(problem: PartitionProblem, objective: float, status: str | None, bound: float | None) -> str:
    parts = [f"{problem.variant} partition", f"{quantity(objective, time_unit(problem), 6)} per sample"]
    if status is not None:
        parts.insert(0, status)
    if bound is not None:
        parts.append(f"gap {percent(max(0.0, (objective - bound) / objective) if objective > 0 else 0.0)}")
    return " · ".join(parts)


def _drawing(problem: PartitionProblem, device: IntArray, unit: str) -> Drawing:
    graph = problem.graph
    column = columns(graph)
    tallest = np.bincount(column * 2 + graph.backward).max()
    if graph.n_ops > MOST_DOTS or column.max() >= MOST_COLUMNS or tallest > MOST_ROWS:
        return blocks(graph, column, device)
    seconds = problem.time().min(axis=0)
    texts = tuple(f"{name}<br>{quantity(float(s), unit)}" for name, s in zip(graph.names, seconds, strict=True))
    return dots(graph, column, rows(graph, column), device, texts)


def _memory(used: FloatArray, capacity: list[float | None]) -> Bars | None:
    limit = np.array([np.inf if c is None else c for c in capacity])
    if not np.isfinite(limit).any():
        return None
    factor, unit = scale(float(used.max()), "B")
    return Bars(
        f"memory, {unit}", unit, quantity(float(limit.min()), "B"), used / factor, np.zeros_like(used), limit / factor
    )
