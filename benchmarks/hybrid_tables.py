"""The tables of docs/hybrid.md, each made from the rows of benchmarks/hybrid.csv alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from .cells import table
from .hybrid import DEADLINES, PROOF, SINGLE
from .hybrid_rows import CSV, HybridRow, read
from .learned_tables import interval
from .ledger import ROOT
from .report import SECTION

PAGE = ROOT / "docs" / "hybrid.md"
WORSE = 0.005
"""By how much `auto` may be worse than CP-SAT alone, as a share."""


def optima(rows: Sequence[HybridRow]) -> dict[tuple[object, ...], float]:
    """Return the optimum of each small instance that has been proved."""
    return {
        row.instance: row.objective
        for row in rows
        if row.set == "small" and row.deadline == PROOF and row.status == "OPTIMAL" and row.objective is not None
    }


def gap(objective: float | None, optimum: float) -> float:
    """Return by how much a plan is above the optimum; 1 without a plan, and at most 1: one of these is no mean."""
    if objective is None:
        return 1.0
    if optimum <= 0:
        return 0.0 if objective <= 0 else 1.0
    return float(min(max(objective / optimum - 1, 0.0), 1.0))


def small(rows: Sequence[HybridRow], problem: str) -> str:
    """Return a line a method: mean gap at each deadline over the instances that all methods have been given."""
    best = optima(rows)
    found = {row.key: row for row in rows if row.problem == problem and row.instance in best}
    lines = []
    for method in ("auto", *SINGLE[problem]):
        cells = []
        for deadline in DEADLINES:
            shared = [x for x in best if x[1] == problem and (*x, method, deadline) in found]
            if method == "auto" or not shared:
                cells.append(_mean([gap(found[(*x, method, deadline)].objective, best[x]) for x in shared]))
                continue
            own = np.array([gap(found[(*x, method, deadline)].objective, best[x]) for x in shared])
            autos = np.array([gap(found[(*x, "auto", deadline)].objective, best[x]) for x in shared])
            cells.append(f"{own.mean():.2%} (auto {autos.mean():.2%}, {len(shared)})")
        lines.append((f"`{method}`", *cells))
    return table(("method", *(f"{d:g} s" for d in DEADLINES)), lines)


def _mean(gaps: list[float]) -> str:
    if not gaps:
        return "-"
    low, high = interval(gaps)
    return f"**{np.mean(gaps):.2%}** ({low:.2%} to {high:.2%}, {len(gaps)})"


def medium(rows: Sequence[HybridRow]) -> str:
    """Return a line a problem: how often and by how much `auto` is better than CP-SAT alone in the same time."""
    newest = {row.key: row for row in rows if row.set == "medium"}
    lines = []
    for problem in SINGLE:
        pairs = [
            (row, newest[(*row.instance, "cpsat", row.deadline)])
            for row in newest.values()
            if row.problem == problem and row.method == "auto" and (*row.instance, "cpsat", row.deadline) in newest
        ]
        if not pairs:
            continue
        change = np.array([_change(a.objective, b.objective) for a, b in pairs])
        left = [row_gap(a) for a, _ in pairs]
        lines.append((
            problem, str(len(pairs)), f"{pairs[0][0].deadline:g}", f"{(change <= 1e-9).mean():.0%}",
            f"{(change > WORSE).sum()}", f"{change.max():+.2%}", f"{np.median(change):+.2%}",
            f"{np.mean(left):.1%}", f"{np.mean([row_gap(b) for _, b in pairs]):.1%}",
        ))  # fmt: skip
    head = (
        "problem", "instances", "seconds", "better or equal", "worse by more than 0.5%", "worst", "median",
        "mean gap to its bound", "of CP-SAT",
    )  # fmt: skip
    return table(head, lines)


def row_gap(row: HybridRow) -> float:
    """Return the gap that a result states itself, 1 without a plan or a bound."""
    if row.objective is None or row.bound is None:
        return 1.0
    return 1 - row.bound / row.objective if row.objective > 0 else 0.0


def _change(mine: float | None, other: float | None) -> float:
    """Return by what share of the other's my plan is worse; without a plan of one it is 1 whole."""
    if mine is None or other is None:
        return 0.0 if mine is other else 1.0 if mine is None else -1.0
    return mine / other - 1 if other > 0 else float(mine > other)


def late(rows: Sequence[HybridRow]) -> str:
    """Return a line a deadline: what `auto` takes of it."""
    lines = []
    for deadline in DEADLINES:
        used = np.array([r.seconds / deadline for r in rows if r.method == "auto" and r.deadline == deadline])
        if len(used):
            cells = (f"{np.median(used):.2f}", f"{np.percentile(used, 95):.2f}", f"{used.max():.2f}")
            lines.append((f"{deadline:g} s", str(len(used)), *cells))
    return table(("deadline", "solves", "median share used", "p95", "most"), lines)


TABLES: dict[str, Callable[[Sequence[HybridRow]], str]] = {
    **{f"small_{problem}": lambda rows, p=problem: small(rows, p) for problem in SINGLE},  # type: ignore[misc]
    "medium": medium,
    "deadlines": late,
}


def renew(page: str, rows: Sequence[HybridRow]) -> str:
    """Return `page` with every generated section made anew."""
    return SECTION.sub(lambda match: f"{match[1]}\n{TABLES[match[2]](rows)}\n\n{match[3]}", page)


def write_page(path: Path = CSV, page: Path = PAGE, check: bool = False) -> int:
    """Renew the page; with `check` write nothing and return 1 if it does not agree with the rows."""
    before = page.read_text(encoding="utf-8")
    after = renew(before, read(path))
    if check and before != after:
        print(f"{page.name} does not agree with {path.name}: python -m benchmarks hybrid page")
        return 1
    if not check:
        page.write_text(after, encoding="utf-8")
    print(f"{page.name} agrees with {path.name}")
    return 0
