"""The tables of placement, each made from ledger rows alone."""

from __future__ import annotations

from statistics import median

from .cells import bound, clock, excess, gap, seconds, table, value
from .gang_suites import SIZES, Batches
from .ledger import Row
from .rows import Rows

NEAR = 0.02
"""The gap within which a large batch counts as solved."""
COMPARED = ("auto", "cpsat", "plain_cpsat", "milp", "plain_milp")


def placement(rows: Rows) -> str:
    """Show every batch, and how many of each size are proved."""
    lines, words = [], []
    for size in SIZES:
        found = [row for seed in range(size.seeds) if (row := _find(rows, "placement", size, seed))]
        for row in found:
            made = (row.instance, str(row.ops), str(row.devices))
            lines.append((*made, value(row), bound(row), gap(row), clock(row), f"{row.time_limit:g}"))
        words += [_summary(size, found)] if found else []
    head = ("batch", "jobs", "GPUs", "weighted slowdowns", "proved bound", "gap", "seconds", "limit, s")
    return "\n\n".join([table(head, lines), *words])


def gang_rivals(rows: Rows) -> str:
    """Compare with plain formulations: seconds to the proof or the gap left, and how good their plans are."""
    lines = []
    for size in SIZES:
        for seed in size.compared:
            found = {m: _find(rows, "gang_rivals", size, seed, m) for m in COMPARED}
            if not any(found.values()):
                continue
            best = min((row.objective for row in found.values() if row and row.objective is not None), default=None)
            plans = [excess(found[m], best) for m in COMPARED if m.startswith("plain")]
            lines.append((size.name(seed), *(seconds(found[m]) for m in COMPARED), *plans))
    plain = (f"{m}, above the best" for m in COMPARED if m.startswith("plain"))
    return table(("batch", *(f"{m}, s" for m in COMPARED), *plain), lines)


def _find(rows: Rows, suite: str, size: Batches, seed: int, method: str = "auto") -> Row | None:
    return rows.find(suite, size.name(seed), "placement", method)


def _summary(size: Batches, found: list[Row]) -> str:
    proved = [row.seconds for row in found if row.status == "OPTIMAL"]
    near = sum(row.gap is not None and row.gap <= NEAR for row in found)
    half = f", the median of these in {median(proved):.2g} s" if proved else ""
    return f"{size.size}: {len(proved)} of {len(found)} proved{half}; {near} within {NEAR:.0%}."


TABLES = {f.__name__: f for f in (placement, gang_rivals)}
