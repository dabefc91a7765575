"""The tables and pictures of docs/scheduler.md, from benchmarks/online.csv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from .ledger import ROOT
from .online_rows import OnlineRow, read

PAGE = ROOT / "docs" / "scheduler.md"
PICTURE = ROOT / "docs" / "images" / "scheduler_latency.png"
ENDS = {" 5,000 jobs": "nobody is stopped", " 5,000 jobs, stops": "jobs are stopped"}
"""How rows end between which the slope is fitted, in words."""
MOLDABLE = ", moldable"
"""How traces end whose jobs have a choice of GPUs."""
MARKS = {
    kind: (f"<!-- generated: {kind} -->", f"<!-- end of {kind} -->") for kind in ("latency", "jct", "stops", "moldable")
}


def write_page(*, check: bool = False, page: Path = PAGE) -> int:
    """Write tables and picture; return 1 if `check` finds that the page would change."""
    rows, text = read(), page.read_text()
    tables = {"latency": latency(rows), "jct": jct(rows), "stops": stops(rows), "moldable": moldable(rows)}
    for kind, lines in tables.items():
        head, tail = MARKS[kind]
        before, rest = text.split(head, 1)
        text = f"{before}{head}\n\n" + "\n".join(lines) + f"\n\n{tail}" + rest.split(tail, 1)[1]
    if check:
        return int(text != page.read_text())
    page.write_text(text)
    if any(row.kind == "latency" for row in rows):
        draw(rows)
    return 0


def slope(rows: Sequence[OnlineRow], field: str, end: str) -> float:
    """Return the slope of a time over GPUs, both as logarithms, by least squares: of rows with equally many jobs."""
    found = [(row.size, getattr(row, field)) for row in rows if row.kind == "latency" and row.set.endswith(end)]
    x, y = np.log(np.array(found, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def latency(rows: Sequence[OnlineRow]) -> Iterator[str]:
    """Yield the table of latencies."""
    found = sorted((row for row in rows if row.kind == "latency"), key=lambda row: row.size)
    yield "| cluster | p99, ms of the clock | p99, ms of the thread | median, ms of the thread | resident, MiB |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for row in found:
        times = " | ".join(f"{1e3 * t:.2f}" for t in (row.value, row.thread, row.median))
        yield f"| {row.set} | {times} | {row.memory / 2**20:.0f} |"
    for end, words in ENDS.items():
        if sum(row.set.endswith(end) for row in found) > 1:
            clock, thread = (slope(found, field, end) for field in ("value", "thread"))
            yield ""
            yield f"Slope of the p99 over GPUs (log-log) where {words}: {clock:.2f}; {thread:.2f} by the thread."


def jct(rows: Sequence[OnlineRow]) -> Iterator[str]:
    """Yield a table of traces where nobody is stopped: `Scheduler` against the best classic policy."""
    yield "| trace | jobs | best classic | | `Scheduler(fleet)` | bound |"
    yield "| --- | ---: | --- | ---: | ---: | ---: |"
    for name, mine in _traces(rows):
        best = _best(mine, [p for p in mine if len(p.split()) == 2])
        told = _against(mine.get("Scheduler hybrid"), best)
        if told and MOLDABLE not in name:
            yield f"| {name} | {best.size:,} | `{best.policy}` | {best.value:,.0f} | {told} | {best.bound:,.0f} |"


def stops(rows: Sequence[OnlineRow]) -> Iterator[str]:
    """Yield a table of traces where jobs are stopped: against the best classic that stops them too, and the other."""
    yield "| trace | price, s | best that stops | | `Scheduler(price=)` | best that does not | | `srtf`, free | bound |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, mine in _traces(rows):
        still = _best(mine, [p for p in mine if len(p.split()) == 2])
        for price in sorted({int(p.split()[2]) for p in mine if p.split()[2:] and p.split()[2].isdigit()} - {0}):
            found = mine.get(f"Scheduler hybrid {price}")
            if found is None or MOLDABLE in name:
                continue
            best = _best(mine, [p for p in mine if p.endswith(f" {price}")])
            free = mine["srtf overtake 0"].value
            cells = [f"`{best.policy.split()[0]}`", f"{best.value:,.0f}", _against(found, best), f"{still.value:,.0f}"]
            last = f"{found.value / still.value - 1:+.1%} | {free:,.0f} | {best.bound:,.0f}"
            yield f"| {name} | {price:,} | {' | '.join(cells)} | {last} |"


def moldable(rows: Sequence[OnlineRow]) -> Iterator[str]:
    """Yield a table of traces whose jobs run on 1, 2, 4 or 8 GPUs or as many as they ask for."""
    yield "| trace | GPUs asked for | best rule for GPUs | | `Scheduler(fleet)` | `learned` | `price=300` | bound |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    for name, mine in _traces(rows):
        if MOLDABLE not in name or "Scheduler hybrid" not in mine:
            continue
        asked = _best(mine, [p for p in mine if len(p.split()) == 2 and not p.startswith("optimus")])
        best = _best(mine, [p for p in mine if p.startswith("optimus") or p.split()[-1] in ("most", "fits")])
        told = " | ".join(_against(mine.get(f"Scheduler {way}"), best) for way in ("hybrid", "learned", "hybrid 300"))
        short = name.replace(MOLDABLE, "")
        yield f"| {short} | {asked.value:,.0f} | `{best.policy}` | {best.value:,.0f} | {told} | {best.bound:,.0f} |"


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
