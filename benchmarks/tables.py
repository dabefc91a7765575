"""The tables of docs/benchmarks.md, each made from ledger rows alone (and the published values beside them)."""

from __future__ import annotations

import csv
from collections.abc import Callable
from math import exp, log
from pathlib import Path

from . import gang_tables, objective_tables
from .cells import bound, clock, excess, gap, seconds, table, times, value
from .rows import Rows
from .suites import GENERATED, PCIE, PROFILES, PUBLISHED, SUITES, profile_name

VALUES = Path(__file__).parent / "published.csv"
"""Values by others: Tarnawski et al., NeurIPS 2020; seconds of their programme as run on a shared two-core machine."""
METHODS = ("auto", "cpsat", "milp")
HEURISTICS = ("greedy", "pipedream", "local_search")
AGAIN = ("rivals", "objectives", "gang_rivals", "placement")
"""Suites whose instances other tables show, gaps and all, or other suites have with longer limits."""
COMPARED = ("auto", "cpsat", "plain_cpsat", "milp", "plain_milp")


def proofs(rows: Rows) -> str:
    """Compare pipelines of the published graphs with the values published."""
    lines = []
    for name in PUBLISHED:
        row, other = rows.find("published", f"msr/{name}"), _others()[name]
        size = ("", "") if row is None else (str(row.ops), str(row.devices - 1))
        published = (other["optimum"], other["pipedream"], other["expert"], other["dp_seconds"])
        lines.append((name, *size, value(row), bound(row), seconds(row), *published))
    found = [row for row in (rows.find("published", f"msr/{name}") for name in PUBLISHED) if row]
    total = sum(row.seconds + row.read_seconds for row in found)
    ours = ("graph", "ops", "accelerators", "time per sample", "proved bound", "seconds")
    head = (*ours, "published optimum", "PipeDream heuristic", "human expert", "published programme, seconds")
    proved = sum(row.status == "OPTIMAL" for row in found)
    return f"{table(head, lines)}\n\n{proved} of {len(found)} proved optimal; {total:.1f} s for all, reading included."


def methods(rows: Rows) -> str:
    """Compare the methods of the package on pipelines of the published graphs."""
    lines = []
    for name in PUBLISHED:
        found = {m: rows.find("published", f"msr/{name}", method=m) for m in (*METHODS, *HEURISTICS)}
        best = min((r.objective for r in found.values() if r and r.objective is not None), default=None)
        exact = [seconds(found[m]) for m in METHODS]
        lines.append((name, *exact, *(excess(found[m], best) for m in HEURISTICS)))
    head = ("graph", *(f"{m}, s" for m in METHODS), *(f"{m}, above the best" for m in HEURISTICS))
    return table(head, lines)


def variants(rows: Rows) -> str:
    """Show what contiguity costs on the published graphs."""
    lines = []
    for name in PUBLISHED:
        cells: list[str] = [name]
        for variant in ("contiguous", "convex", "free"):
            row = rows.find("published", f"msr/{name}", variant)
            cells += [value(row), gap(row), clock(row)]
        lines.append(tuple(cells))
    each = [x for v in ("contiguous", "convex", "free") for x in (v, "gap", "s")]
    return table(("graph", *each), lines)


def rivals(rows: Rows) -> str:
    """Compare with plain formulations: seconds to the proof, and how many times longer the plain model takes."""
    lines, ratios = [], dict[tuple[str, str], list[float]]()
    pairs = (("auto", "plain_cpsat"), ("cpsat", "plain_cpsat"), ("milp", "plain_milp"))
    for name in PUBLISHED:
        found = {m: rows.find("rivals", f"msr/{name}", method=m) for m in COMPARED}
        cells = [name, *(seconds(found[m]) for m in COMPARED)]
        for ours, theirs in pairs:
            mine, other = found[ours], found[theirs]
            if mine is None or other is None:
                cells.append("")
                continue
            ratio = other.seconds / mine.seconds
            ratios.setdefault((ours, theirs), []).append(ratio)
            sign = "≥ " if other.status != "OPTIMAL" else "≤ " if mine.status != "OPTIMAL" else ""
            neither = "OPTIMAL" not in (mine.status, other.status)
            cells.append("neither" if neither else sign + times(ratio))
        lines.append(tuple(cells))
    means = ["" if p not in ratios else f"**{times(exp(sum(map(log, ratios[p])) / len(ratios[p])))}**" for p in pairs]
    proved = [f"{sum(r.status == 'OPTIMAL' for r in rows.of('rivals') if r.method == m)} proved" for m in COMPARED]
    lines.append(("**proved; geometric mean of the ratios**", *proved, *means))
    return table(("graph", *(f"{m}, s" for m in COMPARED), *(f"{b} / {a}" for a, b in pairs)), lines)


def pipedream(rows: Rows) -> str:
    """Show the profiles on 4, 8 and 16 devices with fast and slow links."""
    lines = []
    grid = [(devices, bandwidth) for bandwidth in (None, PCIE) for devices in (4, 8, 16)]
    for name in PROFILES:
        found = [rows.find("pipedream", profile_name(name, *setting)) for setting in grid]
        ops = next((str(r.ops) for r in found if r), "")
        lines.append((name, ops, *map(seconds, found)))
    links = [f"{devices} x {'NVLink' if bandwidth is None else 'PCIe'}" for devices, bandwidth in grid]
    return table(("profile", "ops", *links), lines)


def generated(rows: Rows) -> str:
    """Show the networks that the package generates."""
    lines = []
    for name, _, devices, _ in GENERATED:
        row = rows.find("generated", f"generated/{name}@{devices}")
        size = ("", "") if row is None else (str(row.ops), str(row.devices))
        made = "" if row is None else f"{row.read_seconds:.2f}"
        lines.append((name, *size, made, value(row), bound(row), seconds(row)))
    head = ("network", "ops", "devices", "generating, s", "seconds per step", "proved bound", "seconds to solve")
    return table(head, lines)


def shortfalls(rows: Rows) -> str:
    """List what `auto` did not prove, the widest gap first."""
    found = [r for r in rows.newest.values() if r.method == "auto" and r.suite not in AGAIN and r.status != "OPTIMAL"]
    found.sort(key=lambda r: (r.gap is not None, -(r.gap or 0.0)))
    lines = [
        (
            r.instance,
            r.variant,
            str(r.ops),
            str(r.devices),
            value(r),
            bound(r),
            gap(r),
            clock(r),
            f"{r.time_limit:g}",
        )
        for r in found
    ]
    head = ("instance", "variant", "ops", "devices", "time per sample", "proved bound", "gap", "seconds", "limit, s")
    return table(head, lines)


def provenance(rows: Rows) -> str:
    """Say what made the rows that the tables above show."""
    lines = []
    for suite in SUITES:
        found = rows.of(suite)
        if found:
            commits = ", ".join(sorted({f"`{r.commit}`" for r in found}))
            dates = sorted(r.date[:10] for r in found)
            days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
            load = f"{min(r.load for r in found):.1f} to {max(r.load for r in found):.1f}"
            ways = ", ".join(sorted({f"{r.workers} workers, seed {r.seed}" for r in found}))
            lines.append((suite, str(len(found)), commits, days, ways, load))
    used = sorted({r.versions for r in rows.newest.values()})
    return "\n\n".join(
        [
            table(("suite", "rows", "commit", "date", "run with", "load before"), lines),
            *(f"Versions: {u}." for u in used),
        ]
    )


TABLES: dict[str, Callable[[Rows], str]] = {
    **{f.__name__: f for f in (proofs, methods, variants, rivals, pipedream, generated, shortfalls, provenance)},
    **objective_tables.TABLES,
    **gang_tables.TABLES,
}
"""By the name that the page's markers give."""


def _others() -> dict[str, dict[str, str]]:
    with VALUES.open(newline="", encoding="utf-8") as file:
        return {line["instance"]: line for line in csv.DictReader(file)}
