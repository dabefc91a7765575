"""The tables and pictures of docs/scheduler.md, from benchmarks/online.csv and benchmarks/learned_speeds.csv."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from . import learned_speeds, learned_speeds_page
from .cells import table
from .ledger import ROOT
from .online_rows import OnlineRow, read
from .report import renew

PAGE = ROOT / "docs" / "scheduler.md"
PICTURE = ROOT / "docs" / "images" / "scheduler_latency.png"
ENDS = {" 5,000 jobs": "nobody is stopped", " 5,000 jobs, stops": "jobs are stopped"}
"""How rows end that are one line of the picture, in words."""
MOLDABLE = ", moldable"
"""How traces end whose jobs have a choice of GPUs."""


def write_page(*, check: bool = False, page: Path = PAGE) -> int:
    """Write tables and picture; return 1 if `check` finds that the page would change."""
    rows = read()
    tables: dict[str, Callable[[], str]] = {make.__name__: partial(make, rows) for make in (latency, traces, moldable)}
    tables["learned"] = lambda: learned_speeds_page.learned(learned_speeds.read())
    changed = renew(page, tables, "online page", check=check)
    if not check and any(row.kind == "latency" for row in rows):
        draw(rows)
    return changed


def latency(rows: Sequence[OnlineRow]) -> str:
    """Return the table of latencies."""
    found = [row for row in rows if row.kind == "latency"]
    lines = []
    for size in sorted({row.size for row in found}):
        pair = sorted((row for row in found if row.size == size), key=lambda row: row.set.endswith("stops"))
        lines.append((f"{size:,}", *(f"{1e3 * t:.2f}" for row in pair for t in (row.value, row.median))))
    return table(("GPUs", "p99, ms", "median, ms", "p99, ms, with stops", "median, ms, with stops"), lines)


def traces(rows: Sequence[OnlineRow]) -> str:
    """Return a line a trace: `Scheduler` against the best classic policy that stops nobody, and at each price."""
    lines = []
    for name, mine in _traces(rows):
        if MOLDABLE in name:
            continue
        cells = []
        for end in ("", " 300", " 1800"):
            best = _best(mine, [p for p in mine if (p.endswith(end) if end else len(p.split()) == 2)])
            cells += [] if end else [f"{best.value:,.0f}"]
            cells.append(_against(mine.get(f"Scheduler hybrid{end}"), best))
        lines.append((_short(name), f"{best.size:,}", *cells, f"{best.bound:,.0f}"))
    head = ("trace", "jobs", "best without stops", "`Scheduler(fleet)`", "`price=300`", "`price=1800`", "bound")
    return table(head, lines)


def _short(name: str) -> str:
    return name.removesuffix(MOLDABLE).replace("virtual cluster ", "").replace(", pods that ended, whole GPUs", "")


def moldable(rows: Sequence[OnlineRow]) -> str:
    """Return a table of traces whose jobs run on 1, 2, 4 or 8 GPUs or as many as they ask for."""
    lines = []
    for name, mine in _traces(rows):
        if MOLDABLE not in name or "Scheduler hybrid" not in mine:
            continue
        asked = _best(mine, [p for p in mine if len(p.split()) == 2 and not p.startswith("optimus")])
        best = _best(mine, [p for p in mine if p.startswith("optimus") or p.split()[-1] in ("most", "fits")])
        told = (_against(mine.get(f"Scheduler {way}"), best) for way in ("hybrid", "hybrid 300"))
        means = (f"{asked.value:,.0f}", f"`{best.policy}` {best.value:,.0f}")
        lines.append((_short(name), *means, *told, f"{best.bound:,.0f}"))
    head = ("trace", "GPUs asked for", "best rule for GPUs", "`Scheduler(fleet)`", "`price=300`", "bound")
    return table(head, lines)


def _traces(rows: Sequence[OnlineRow]) -> Iterator[tuple[str, dict[str, OnlineRow]]]:
    """Yield each trace with its rows by policy."""
    for name in dict.fromkeys(row.set for row in rows if row.kind == "jct"):
        yield name, {row.policy: row for row in rows if row.kind == "jct" and row.set == name}


def _best(mine: Mapping[str, OnlineRow], policies: Iterable[str]) -> OnlineRow:
    """Return the row of the classic policy with the least mean."""
    return min((mine[p] for p in policies if not p.startswith("Scheduler")), key=lambda row: row.value)


def _against(row: OnlineRow | None, best: OnlineRow) -> str:
    """Return a mean with how much more or less than the best it is."""
    return "" if row is None else f"{row.value:,.0f} ({row.value / best.value - 1:+.1%})"


def draw(rows: Sequence[OnlineRow], picture: Path = PICTURE) -> None:
    """Draw how the time of a decision grows with the cluster."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.0, 3.2), dpi=110)
    for (end, words), style in zip(ENDS.items(), ("o--", "o-"), strict=True):
        found = sorted((row for row in rows if row.kind == "latency" and row.set.endswith(end)), key=lambda r: r.size)
        if not found:
            continue
        sizes = [row.size for row in found]
        for field, label, colour in (("value", "p99, clock", "#1f77b4"), ("thread", "p99, thread", "#d62728")):
            axes.plot(
                sizes, [1e3 * getattr(row, field) for row in found], style, color=colour, label=f"{label}, {words}"
            )
    axes.axhline(50, color="grey", linestyle=":", linewidth=1)
    axes.text(104, 52, "deadline", fontsize=8, color="grey", va="bottom")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("GPUs")
    axes.set_ylabel("ms a decision")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(picture)
    plt.close(figure)
