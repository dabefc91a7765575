"""The tables of docs/hybrid.md, each made from the rows of benchmarks/hybrid.csv alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from .cells import interval, table
from .hybrid import CSV, PROOF, SINGLE, HybridRow, read
from .ledger import ROOT
from .report import renew

PAGE, PICTURE = ROOT / "docs" / "hybrid.md", ROOT / "docs" / "images" / "primal_integral.png"
FROM, DEADLINE = 1e-3, 1.0
SHOWN = (0.01, 0.1, 1.0, 10.0)
"""Deadlines that single methods have been given as well."""
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


def small(rows: Sequence[HybridRow]) -> str:
    """Return a line a method: mean gap at each deadline, over the instances that all methods have been given."""
    best = optima(rows)
    found = {row.key: row for row in rows if row.instance in best}
    lines = []
    for problem, methods in SINGLE.items():
        alone = [m for m in methods if any(row.method == m and row.problem == problem for row in rows)]
        for method in ("auto", *alone):
            cells = []
            for deadline in SHOWN:
                shared = [x for x in best if x[1] == problem and all((*x, m, deadline) in found for m in alone)]
                gaps = [gap(found[(*x, method, deadline)].objective, best[x]) for x in shared]
                cells.append(f"{np.mean(gaps):.2%}" if gaps else "-")
            lines.append((problem, f"`{method}`", *(f"**{x}**" if method == "auto" else x for x in cells)))
    return table(("problem", "method", *(f"{d:g} s" for d in SHOWN)), lines)


def many(rows: Sequence[HybridRow]) -> str:
    """Return a line a problem: the mean gap of `auto` with its interval, over all instances."""
    best = optima(rows)
    lines = []
    for problem in SINGLE:
        cells = []
        for deadline in SHOWN[:3]:
            own = [r for r in rows if r.problem == problem and r.method == "auto" and r.deadline == deadline]
            cells.append(_mean([gap(r.objective, best[r.instance]) for r in own if r.instance in best]))
        lines.append((problem, *cells))
    return table(("`auto`", *(f"{d:g} s" for d in SHOWN[:3])), lines)


def _mean(gaps: list[float]) -> str:
    if not gaps:
        return "-"
    low, high = interval(gaps)
    return f"{np.mean(gaps):.2%} ({low:.2%} to {high:.2%}, {len(gaps)})"


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


def large(rows: Sequence[HybridRow]) -> str:
    """Return a line a family, size and deadline: `auto` against the best single method and the best plan known."""
    newest = {row.key: row for row in rows if row.set == "large"}
    best: dict[tuple[object, ...], float] = {}
    for row in newest.values():
        if row.objective is not None:
            best[row.instance] = min(row.objective, best.get(row.instance, row.objective))
    groups: dict[tuple[str, str, int, float], list[tuple[HybridRow, list[HybridRow]]]] = {}
    for row in newest.values():
        if row.method == "auto":
            alone = [newest.get((*row.instance, method, row.deadline)) for method in SINGLE[row.problem]]
            group = groups.setdefault((row.problem, row.family, row.size, row.deadline), [])
            group.append((row, [other for other in alone if other is not None]))
    lines = []
    for (problem, family, size, deadline), pairs in groups.items():
        behind = [
            _change(row.objective, min((x.objective for x in alone if x.objective is not None), default=None))
            for row, alone in pairs
        ]
        above = [gap(row.objective, best[row.instance]) for row, _ in pairs if row.instance in best]
        lines.append((
            f"{problem}, {family}", f"{size:,}", f"{deadline:g} s", str(len(pairs)),
            f"{sum(row.objective is None for row, _ in pairs)}", f"{np.mean(above):.1%}" if above else "-",
            f"{np.mean(behind):+.2%}", f"{np.max(behind):+.2%}", f"{np.mean([row_gap(row) for row, _ in pairs]):.1%}",
        ))  # fmt: skip
    head = (
        "problem", "size", "deadline", "instances", "no plan", "above the best known", "behind the best single method",
        "at worst", "gap to its bound",
    )  # fmt: skip
    return table(head, lines)


def late(rows: Sequence[HybridRow]) -> str:
    """Return a line a deadline: what `auto` takes of it; large problems apart."""
    lines = []
    for isin, words in ((False, ""), (True, ", large")):
        mine = [r for r in rows if r.method == "auto" and (r.set == "large") is isin]
        for deadline in sorted({r.deadline for r in mine} - {PROOF}):
            used = np.array([r.seconds / deadline for r in mine if r.deadline == deadline])
            cells = (f"{np.median(used):.2f}", f"{np.percentile(used, 95):.2f}", f"{used.max():.2f}")
            lines.append((f"{deadline:g} s{words}", str(len(used)), *cells))
    return table(("deadline", "solves", "median share used", "p95", "most"), lines)


TABLES: dict[str, Callable[[Sequence[HybridRow]], str]] = {
    "small": small,
    "many": many,
    "medium": medium,
    "large": large,
    "deadlines": late,
}


def write_page(path: Path = CSV, page: Path = PAGE, check: bool = False) -> int:
    """Renew docs/hybrid.md from the rows, see `renew`."""
    rows = read(path)
    return renew(page, {name: partial(make, rows) for name, make in TABLES.items()}, "hybrid page", check=check)


def curve(rows: Sequence[HybridRow], best: dict[tuple[object, ...], float], times: Sequence[float]) -> list[float]:
    """Return the mean gap at each of `times` of solves with one deadline; 1 where there is no plan yet."""
    total = np.zeros(len(times))
    for row in rows:
        steps = row.incumbents
        for i, second in enumerate(times):
            value = next((v for t, v in reversed(steps) if t <= second), None)
            total[i] += gap(value, best[row.instance])
    return (total / max(len(rows), 1)).tolist()  # type: ignore[no-any-return]


def draw(path: Path = CSV, picture: Path = PICTURE) -> None:
    """Write the picture: a panel a problem, a line a method; the number is the area below it in linear time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = read(path)
    best = optima(rows)
    times = np.geomspace(FROM, DEADLINE, 60)
    figure, panels = plt.subplots(2, 2, figsize=(9.6, 6.8), dpi=110)
    for axes, problem in zip(panels.flat, SINGLE, strict=True):
        for i, method in enumerate(("auto", *SINGLE[problem])):
            found = {
                row.instance: row
                for row in rows
                if row.problem == problem and row.method == method and row.deadline == DEADLINE and row.instance in best
            }
            alone = {row.instance for row in rows if row.method != "auto" and row.problem == problem}
            mine = [row for key, row in found.items() if key in alone]
            if not mine:
                continue
            values = curve(mine, best, times)
            integral = float(np.trapezoid(values, times))
            style = (
                {"color": "black", "linewidth": 2.4} if method == "auto" else {"color": f"C{i - 1}", "linewidth": 1.2}
            )
            axes.step(times, values, where="post", label=f"{method} ({integral:.3f})", **style)
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1e-3)
        axes.set_ylim(0, 1.2)
        axes.set_title(problem, fontsize=10)
        axes.set_xlabel("seconds")
        axes.set_ylabel("mean gap (1: no plan)")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7, title="method (primal integral, s)", title_fontsize=7)
    figure.tight_layout()
    figure.savefig(picture, metadata={"Software": None})
    plt.close(figure)
    print(f"{picture.name} drawn")
