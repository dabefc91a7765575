"""Gantt charts of plans, one below the other; the two renderers draw the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gangplan.instances import GraphProblem, Plan
from gangplan.instances.timeline import Timeline, timeline

from ..units import percent, quantity, scale, time_unit, words
from .chart import Chart, lay_out
from .picture import title

PIPELINES = {"throughput", "stages"}
"""Objectives that are times per sample of a full pipeline."""
MOST_ROWS = 72
"""Beyond these, of all plans together, the links of single devices are left out."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A plan to draw.

    Attributes:
        problem: what the plan answers.
        plan: a feasible plan.
        name: what to call it.
        status: of the result it is from, if known.
        bound: no plan is better than this, seconds.
    """

    problem: GraphProblem
    plan: Plan
    name: str = ""
    status: str | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Gantt:
    """Plans, ready to draw, one below the other.

    Attributes:
        title, subtitle: what it is, and how good.
        axis: what the axis of time says.
        horizon: where it ends, the same for all.
        charts: one for each plan.
    """

    title: str
    subtitle: str
    axis: str
    horizon: float
    charts: tuple[Chart, ...]


def compose_gantt(entries: Sequence[Entry], *, name: str = "") -> Gantt:
    """Lay out feasible plans on one axis of time.

    Args:
        entries: at least one; all of one graph.
        name: of the graph, for the title.

    Raises:
        ValueError: if a plan violates a constraint.
    """
    drawn = [timeline(entry.problem, entry.plan) for entry in entries]
    problem = entries[0].problem
    unit = time_unit(problem)
    latest = max(max(t.makespan, e.bound or 0.0) for t, e in zip(drawn, entries, strict=True))
    factor, seconds = scale(latest, unit)
    crowded = sum(len(t.rows) for t in drawn) > MOST_ROWS
    several = len(entries) > 1
    charts = tuple(
        lay_out(
            entry.problem,
            _thinned(t) if crowded else t,
            heading=f"{entry.name} · {describe(entry, t)}" if several else "",
            bound=entry.bound,
            factor=factor,
            unit=unit,
        )
        for entry, t in zip(entries, drawn, strict=True)
    )
    subtitle = f"{len(entries)} plans on one axis of time" if several else describe(entries[0], drawn[0])
    return Gantt(
        title=title(problem, name),
        subtitle=subtitle + (" · links of devices not shown" if crowded else ""),
        axis=f"time, {seconds}" if unit else "time, in the unit of the file",
        horizon=latest / factor or 1.0,
        charts=charts,
    )


def _thinned(drawn: Timeline) -> Timeline:
    """Leave out the links of single devices."""
    kept = [i for i, row in enumerate(drawn.rows) if not row.link or row.device is None]
    bars = [i for i, bar in enumerate(drawn.bars) if bar.row in set(kept)]
    place, row = {bar: i for i, bar in enumerate(bars)}, {r: i for i, r in enumerate(kept)}
    return replace(
        drawn,
        rows=tuple(drawn.rows[i] for i in kept),
        bars=tuple(replace(drawn.bars[i], row=row[drawn.bars[i].row]) for i in bars),
        chain=tuple(place[i] for i in drawn.chain if i in place),
    )


def describe(entry: Entry, drawn: Timeline) -> str:
    """Return what a plan is worth, in words."""
    problem, bound, unit = entry.problem, entry.bound, time_unit(entry.problem)
    per = " per sample" if problem.objective in PIPELINES else ""
    parts = [] if entry.status is None else [entry.status]
    parts += [words(problem), f"{quantity(drawn.makespan, unit, 6)}{per}"]
    if bound is not None:
        end = drawn.makespan
        parts.append(f"gap {percent(max(0.0, (end - bound) / end) if end > 0 else 0.0)}")
    if drawn.idle:
        parts.append(f"{drawn.idle} {'device' if drawn.idle == 1 else 'devices'} idle")
    return " · ".join(parts)
