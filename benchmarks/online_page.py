"""The tables and pictures of docs/scheduler.md, from benchmarks/online.csv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from .ledger import ROOT
from .online_rows import OnlineRow, read

PAGE = ROOT / "docs" / "scheduler.md"
PICTURE = ROOT / "docs" / "images" / "scheduler_latency.png"
_STOPS = ("srtf", "tiresias", "optimus")
MOST = " 5,000 jobs"
"""How rows end between which the slope is fitted."""
WAYS = {
    "hybrid": "`hybrid`",
    "heuristic": "`heuristic`",
    "learned": "`learned`",
    "0.55": "fixed, 0.55",
    "0.4": "fixed, 0.4",
    "chosen": "chosen, from 1",
    "chosen-0.55": "chosen, from 0.55",
}
"""The columns of the table of traces."""
MARKS = {kind: (f"<!-- generated: {kind} -->", f"<!-- end of {kind} -->") for kind in ("latency", "jct")}


def write_page(*, check: bool = False, page: Path = PAGE) -> int:
    """Write tables and picture; return 1 if `check` finds that the page would change."""
    rows, text = read(), page.read_text()
    for kind, lines in (("latency", latency(rows)), ("jct", jct(rows))):
        head, tail = MARKS[kind]
        before, rest = text.split(head, 1)
        text = f"{before}{head}\n\n" + "\n".join(lines) + f"\n\n{tail}" + rest.split(tail, 1)[1]
    if check:
        return int(text != page.read_text())
    page.write_text(text)
    if any(row.kind == "latency" for row in rows):
        draw(rows)
    return 0


def slope(rows: Sequence[OnlineRow], field: str) -> float:
    """Return the slope of a time over GPUs, both as logarithms, by least squares: of rows with equally many jobs."""
    found = [(row.size, getattr(row, field)) for row in rows if row.kind == "latency" and row.set.endswith(MOST)]
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
    if len(found) > 1:
        yield ""
        yield f"Slope of the p99 over GPUs, log-log: {slope(found, 'value'):.2f} by the clock, " + (
            f"{slope(found, 'thread'):.2f} of the thread."
        )


def jct(rows: Sequence[OnlineRow]) -> Iterator[str]:
    """Yield a table for all traces: `Scheduler` against the best classic policy that stops no job."""
    names = " | ".join(WAYS.values())
    yield f"| trace | jobs | best classic | | {names} | srtf, stops jobs | bound |"
    yield f"| --- | ---: | --- | ---: {'| ---: ' * len(WAYS)}| ---: | ---: |"
    for name in dict.fromkeys(row.set for row in rows if row.kind == "jct"):
        mine = {row.policy: row for row in rows if row.kind == "jct" and row.set == name}
        rivals = [r for p, r in mine.items() if p.split()[0] not in ("Scheduler", *_STOPS)]
        if not rivals or not any(p.startswith("Scheduler") for p in mine):
            continue
        best = min(rivals, key=lambda row: row.value)
        told = " | ".join(_against(mine.get(f"Scheduler {way}"), best) for way in WAYS)
        srtf = mine.get("srtf overtake")
        stops = "" if srtf is None else f"{srtf.value:,.0f}"
        yield f"| {name} | {best.size:,} | `{best.policy}` | {best.value:,.0f} | {told} | {stops} | {best.bound:,.0f} |"


def _against(row: OnlineRow | None, best: OnlineRow) -> str:
    """Return a mean with how much more or less than the best it is."""
    return "" if row is None else f"{row.value:,.0f} ({row.value / best.value - 1:+.1%})"


def draw(rows: Sequence[OnlineRow], picture: Path = PICTURE) -> None:
    """Draw how the time of a decision grows with the cluster."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = sorted((row for row in rows if row.kind == "latency"), key=lambda row: row.size)
    sizes = [row.size for row in found]
    figure, axes = plt.subplots(figsize=(6.0, 3.2), dpi=110)
    for field, label, colour in (
        ("value", "p99, clock", "#1f77b4"),
        ("thread", "p99, thread", "#d62728"),
        ("median", "median, thread", "#2ca02c"),
    ):
        axes.plot(sizes, [1e3 * getattr(row, field) for row in found], "o-", color=colour, label=label)
    axes.axhline(50, color="grey", linestyle=":", linewidth=1)
    axes.text(sizes[0], 52, "deadline", fontsize=8, color="grey", va="bottom")
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
