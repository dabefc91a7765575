"""The tables of docs/benchmarks.md, each made from ledger rows alone (and the published values beside them)."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median

from .cells import bound, clock, excess, gap, seconds, table, times, value
from .ledger import Row, Rows
from .suites import (
    LATENCY,
    PCIE,
    PROFILES,
    PUBLISHED,
    REPLICATED,
    SIZES,
    SUITES,
    SYNTHETIC,
    Batches,
    profile_name,
)

VALUES = Path(__file__).parent / "published.csv"
"""Values by others: Tarnawski et al., NeurIPS 2020; seconds of their programme as run on a shared two-core machine."""
AGAIN = ("rivals", "objectives", "gang_rivals", "placement")
"""Suites whose instances other tables show, gaps and all, or other suites have with longer limits."""
NEAR, SMALL = 0.02, 0.05
"""The gap within which a large batch counts as solved, and that is no shortfall."""
GREEDY = {
    "layer-bert24_inference": 100.219,
    "layer-gnmt_inference": 268.5,
    "layer-inceptionv3_inference": 2485.24,
    "layer-resnet50_inference": 4197.06,
    "operator-bert_l-3_inference": 416.204,
}
"""What the greedy of Tarnawski et al. (NeurIPS 2020) reaches."""
PIPEDREAM = {("vgg16", "2x8"): 8.579, ("gnmt", "4"): 3.4566, ("alexnet", "4"): 2.8898, ("resnet50", "4"): 3.7066}
"""How many times one GPU's throughput PipeDream's optimiser says its plan has."""
COMPARED = ("auto", "cpsat", "plain_cpsat", "milp", "plain_milp")


def proofs(rows: Rows) -> str:
    """Compare pipelines of the published graphs with the values published."""
    lines = []
    for name in PUBLISHED:
        row, other = rows.find("published", f"msr/{name}"), _others()[name]
        size = ("", "") if row is None else (str(row.ops), str(row.devices - 1))
        published = (other["optimum"], other["pipedream"], other["expert"], other["dp_seconds"])
        lines.append((name, *size, value(row), seconds(row), *published))
    found = [row for row in (rows.find("published", f"msr/{name}") for name in PUBLISHED) if row]
    total = sum(row.seconds + row.read_seconds for row in found)
    head = ("graph", "ops", "accelerators", "optimum", "s", "published", "PipeDream", "expert", "their programme, s")
    proved = sum(row.status == "OPTIMAL" for row in found)
    return f"{table(head, lines)}\n\n{proved} of {len(found)} proved optimal; {total:.1f} s for all, reading included."


def rivals(rows: Rows) -> str:
    """Compare with plain formulations: how many are proved, and how many times longer the plain model takes."""
    lines = []
    for method in COMPARED:
        both = ([rows.find("rivals", f"msr/{name}", method=m) for m in ("auto", method)] for name in PUBLISHED)
        pairs = [(mine, other) for mine, other in both if mine is not None and other is not None]
        proved = sum(other.status == "OPTIMAL" for _, other in pairs)
        ratio = geometric_mean([other.seconds / mine.seconds for mine, other in pairs]) if pairs else 1.0
        bounded = "≥ " if proved < len(pairs) else ""
        longest = max((other.seconds for _, other in pairs), default=0.0)
        lines.append((method, f"{proved} of {len(pairs)}", f"{longest:.2g}", bounded + times(ratio)))
    return table(("method", "proved", "longest, s", "geometric mean of times, auto is 1"), lines)


def pipedream(rows: Rows) -> str:
    """Show the profiles on 8 and 16 devices with fast and slow links that are not all proved within a second."""
    grid = [(devices, bandwidth) for bandwidth in (None, PCIE) for devices in (8, 16)]
    lines, quick = [], list[float]()
    for name in PROFILES:
        found = [rows.find("pipedream", profile_name(name, *setting)) for setting in grid]
        if all(r is not None and r.status == "OPTIMAL" and r.seconds < 1 for r in found):
            quick.append(max(r.seconds for r in found if r is not None))
        else:
            lines.append((name, next((str(r.ops) for r in found if r), ""), *map(seconds, found)))
    links = [f"{devices} x {'NVLink' if bandwidth is None else 'PCIe'}" for devices, bandwidth in grid]
    more = f"{len(quick)} more are proved on all, in {max(quick, default=0.0):.2g} s at most."
    return f"{table(('profile', 'ops', *links), lines)}\n\n{more}"


def shortfalls(rows: Rows) -> str:
    """List what `auto` left with more than a small gap, the widest first."""
    left = [r for r in rows.newest.values() if r.method == "auto" and r.suite not in AGAIN and r.status != "OPTIMAL"]
    found = sorted(
        (r for r in left if r.gap is None or r.gap > SMALL), key=lambda r: (r.gap is not None, -(r.gap or 0))
    )
    lines = [(r.instance, r.variant, str(r.ops), value(r), bound(r), gap(r), clock(r)) for r in found]
    head = ("instance", "variant", "ops", "objective", "proved bound", "gap", "seconds")
    return f"{table(head, lines)}\n\n{len(left) - len(found)} more are left with {SMALL:.0%} or less."


def provenance(rows: Rows) -> str:
    """Say what made the rows that the tables above show."""
    lines = []
    for suite in SUITES:
        found = rows.of(suite)
        if found:
            commits = ", ".join(sorted({f"`{r.commit}`" for r in found}))
            load = f"{min(r.load for r in found):.1f} to {max(r.load for r in found):.1f}"
            lines.append((suite, commits, max(r.date[:10] for r in found), load))
    ways = ", ".join(sorted({f"{r.workers} workers, seed {r.seed}" for r in rows.newest.values()}))
    used = sorted({r.versions for r in rows.newest.values()})
    made = table(("suite", "commit", "date", "load before"), lines)
    return "\n\n".join([made, f"Run with {ways}.", *(f"Versions: {u}." for u in used)])


def latency(rows: Rows) -> str:
    """Compare with the published greedy, and with ours and local search from it."""
    lines = []
    for name in LATENCY:
        row, *others = (rows.find("latency", f"msr/{name}", "latency", m) for m in ("auto", "greedy", "local_search"))
        best = None if row is None else row.objective
        size = "" if row is None else str(row.ops)
        lines.append((name, size, f"{GREEDY[name]:g}", value(row), seconds(row), *(excess(x, best) for x in others)))
    head = ("graph", "ops", "published greedy", "latency", "seconds", "greedy", "local_search, above the best")
    return table(head, lines)


def steps(rows: Rows) -> str:
    """Show synthetic steps on two servers of four devices, by seed."""
    lines = []
    for name, _, limit, _ in SYNTHETIC:
        found = [rows.find("step", f"{name}/seed{seed}@2x4", "step") for seed in range(5)]
        ops = next((str(row.ops) for row in found if row), "")
        lines.append((name, ops, str(limit), *map(seconds, found)))
    return table(("graph", "ops", "limit, s", *(f"seed {seed}" for seed in range(5))), lines)


def replicated(rows: Rows) -> str:
    """Compare with PipeDream's optimiser."""
    lines = []
    for name, cluster, _ in REPLICATED:
        row = rows.find("stages", f"pipedream/{name}@{cluster}", "stages")
        published = PIPEDREAM.get((name, cluster))
        lines.append((name, cluster, value(row), seconds(row), "" if published is None else f"{published:g}"))
    return table(("profile", "cluster", "seconds a minibatch", "seconds", "published speed-up"), lines)


def objectives(rows: Rows) -> str:
    """Compare with plain formulations: how many are proved, and how many times longer the plain model takes."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows.of("objectives"):
        found.setdefault((row.variant, row.instance), {})[row.method] = row
    pairs: dict[tuple[str, str], list[tuple[Row, Row]]] = {}
    for (variant, _), methods in found.items():
        for name, other in methods.items():
            if name != "auto" and "auto" in methods:
                pairs.setdefault((variant, name), []).append((methods["auto"], other))
    lines = []
    for (variant, name), both in pairs.items():
        proved = [str(sum(pair[side].status == "OPTIMAL" for pair in both)) for side in (0, 1)]
        ratios = [b.seconds / a.seconds for a, b in both if "OPTIMAL" in (a.status, b.status)]
        lines.append((variant, name, str(len(both)), *proved, f"**{times(geometric_mean(ratios))}**" if ratios else ""))
    return table(("objective", "rival", "instances", "auto proves", "rival proves", "geometric mean of ratios"), lines)


def placement(rows: Rows) -> str:
    """Say of each size how many batches are proved, how soon, and how far the others are."""
    lines = []
    for size in SIZES:
        found = [row for seed in range(size.seeds) if (row := _find(rows, "placement", size, seed))]
        if not found:
            continue
        proved = [row.seconds for row in found if row.status == "OPTIMAL"]
        half = f"{median(proved):.2g}" if proved else ""
        gaps = [row.gap for row in found if row.gap is not None]
        near = sum(x <= NEAR for x in gaps)
        widest = f"{max(gaps):.2%}" if gaps else "none"
        lines.append((size.size, str(len(found)), f"{size.seconds:g}", str(len(proved)), half, str(near), widest))
    head = ("batches", "seeds", "limit, s", "proved", "median of these, s", f"within {NEAR:.0%}", "widest gap")
    return table(head, lines)


def gang_rivals(rows: Rows) -> str:
    """Compare with plain formulations: of each size, batches proved and the widest gap left."""
    lines = []
    for method in COMPARED:
        cells = []
        for size in SIZES:
            found = [row for seed in size.compared if (row := _find(rows, "gang_rivals", size, seed, method))]
            proved = sum(row.status == "OPTIMAL" for row in found)
            widest = max((1.0 if row.gap is None else row.gap for row in found), default=0.0)
            cells.append(f"{proved} of {len(found)} ({widest:.1%})" if found else "")
        lines.append((method, *cells))
    return table(("proved (widest gap)", *(size.size for size in SIZES)), lines)


def _find(rows: Rows, suite: str, size: Batches, seed: int, method: str = "auto") -> Row | None:
    return rows.find(suite, size.name(seed), "placement", method)


TABLES: dict[str, Callable[[Rows], str]] = {
    f.__name__: f
    for f in (
        *(proofs, rivals, pipedream, latency, steps, replicated, objectives),
        *(placement, gang_rivals, shortfalls, provenance),
    )
}
"""By the name that the page's markers give."""


def _others() -> dict[str, dict[str, str]]:
    with VALUES.open(newline="", encoding="utf-8") as file:
        return {line["instance"]: line for line in csv.DictReader(file)}
