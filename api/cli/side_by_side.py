"""Plans beside one another, as a table for people and as data for machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..units import percent, quantity, time_unit, words
from .measure import Measured
from .output import table

MOST = 3
"""Plans in one table."""


def as_data(m: Measured) -> dict[str, Any]:
    """Return one plan as JSON-ready data; what is not known is None."""
    c, verdict = m.candidate, m.verdict
    return {
        "plan": c.path,
        "label": c.label,
        "problem": words(c.problem),
        "feasible": verdict.ok,
        "violations": list(verdict.violations),
        "objective": verdict.objective,
        "best": m.best,
        "over_best": m.over_best,
        "bound": m.bound,
        "gap": m.gap,
        "status": c.text("status"),
        "method": c.text("method"),
        "wall_seconds": c.number("wall_seconds"),
        "devices": m.devices,
        "max_load": m.max_load,
        "mean_load": m.mean_load,
        "transfer": m.transfer,
        "moved_bytes": m.moved_bytes,
        "peak_memory": m.peak_memory,
        "cuts": m.cuts,
        "placed_differently": m.placed_differently,
        "placed_differently_renamed": m.renamed,
        "notes": list(m.notes),
    }


def as_blocks(found: Sequence[Measured]) -> list[Any]:
    """Return tables with a column for each plan, then what is wrong with any."""
    blocks: list[Any] = []
    for first in range(0, len(found), MOST):
        shown = found[first : first + MOST]
        rows = [(name, *map(cell, shown)) for name, cell in ROWS.items()]
        heads = [f"{i}: {_short(m.candidate.label)}" for i, m in enumerate(shown, first + 1)]
        # a row in which no plan has anything to say would say nothing
        blocks.append(table(("", *heads), [row for row in rows if set(row[1:]) != {"-"}]))
    lines = []
    for i, m in enumerate(found, 1):
        count = len(m.verdict.violations)
        if count:
            more = f" (and {count - 1} more)" if count > 1 else ""
            lines.append(f"{i}: infeasible: {m.verdict.violations[0]}{more}")
        lines += [f"{i}: note: {note}" for note in m.notes]
    if any(not time_unit(m.candidate.problem) for m in found):
        lines.append("times are in the unit of the file")
    return [*blocks, *(["\n".join(lines)] if lines else [])]


def _short(label: str) -> str:
    return label if len(label) <= 16 else f"...{label[-14:]}"


def _seconds(value: float | None, m: Measured) -> str:
    return quantity(value, time_unit(m.candidate.problem))


def _wall(m: Measured) -> str:
    wall = m.candidate.number("wall_seconds")
    return "-" if wall is None else quantity(wall, "s")


def _devices(m: Measured) -> str:
    return "-" if m.devices is None else f"{m.devices} of {m.candidate.problem.cluster.n_devices}"


def _different(m: Measured) -> str:
    if m.placed_differently is None:
        return "-"
    renamed = f" ({m.renamed} renamed)" if m.renamed != m.placed_differently else ""
    return f"{m.placed_differently}{renamed}"


ROWS: dict[str, Callable[[Measured], str]] = {
    "problem": lambda m: words(m.candidate.problem).replace(", ", ",\n"),
    "feasible": lambda m: "yes" if m.verdict.ok else "no",
    "objective": lambda m: f"{'best ' if m.best and m.rivals else ''}{_seconds(m.verdict.objective, m)}",
    "above the best": lambda m: percent(m.over_best),
    "bound": lambda m: _seconds(m.bound, m),
    "gap": lambda m: percent(m.gap),
    "status": lambda m: m.candidate.text("status") or "-",
    "method": lambda m: m.candidate.text("method") or "-",
    "wall": _wall,
    "devices used": _devices,
    "greatest load": lambda m: _seconds(m.max_load, m),
    "mean load": lambda m: _seconds(m.mean_load, m),
    "transfers, in all": lambda m: _seconds(m.transfer, m),
    "moved": lambda m: quantity(m.moved_bytes, "B"),
    "fullest device": lambda m: quantity(m.peak_memory, "B"),
    "edges cut": lambda m: "-" if m.cuts is None else f"{m.cuts}",
    "ops placed differently": _different,
}
"""The rows of the table."""
