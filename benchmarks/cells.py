"""What stands in a cell of a table."""

from __future__ import annotations

from collections.abc import Sequence

from .ledger import Row


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, rule, *lines])


def value(row: Row | None) -> str:
    """Return the objective."""
    return "" if row is None else "none" if row.objective is None else f"{row.objective:.6g}"


def bound(row: Row | None) -> str:
    """Return the bound."""
    return "" if row is None else "none" if row.bound is None else f"{row.bound:.6g}"


def clock(row: Row | None) -> str:
    """Return the seconds."""
    return "" if row is None else f"{row.seconds:.2g}" if row.seconds < 10 else f"{row.seconds:.0f}"


def gap(row: Row | None) -> str:
    """Return the gap, or that it is proved."""
    if row is None or row.gap is None:
        return "" if row is None else row.status.lower()
    return "proved" if row.status == "OPTIMAL" else f"{row.gap:.2%}"


def seconds(row: Row | None) -> str:
    """Return the seconds to the proof, or the gap left in brackets."""
    if row is None or row.status == "OPTIMAL":
        return clock(row)
    return f"({gap(row)})" if row.gap is not None else f"({row.status.lower()})"


def times(ratio: float) -> str:
    """Return a ratio."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


def excess(row: Row | None, best: float | None) -> str:
    """Return by how much the objective exceeds the best."""
    if row is None or row.objective is None or best is None:
        return "" if row is None else "none"
    return f"{row.objective / best - 1:.1%}"
