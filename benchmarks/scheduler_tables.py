"""The tables and the picture of docs/scheduler-results.md: latencies, and traces."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .found import Found, table
from .rows import ROOT
from .scheduler_latency import JOBS, NODES
from .scheduler_traces import CASES

PICTURE = ROOT / "docs" / "images" / "scheduler_latency.png"
STOPS, POLICY = ", stops", "hybrid"
"""How the names of clusters end where jobs may be stopped; what is timed."""
MOLDABLE = ", moldable"
"""How traces end whose jobs have a choice of GPUs."""


def cluster(gpus: int) -> str:
    """Return the name of a cluster in the rows."""
    return f"{gpus:,} GPUs, {JOBS:,} jobs"


def latency(found: Found) -> str:
    """Return the table of latencies."""
    lines = []
    for gpus in NODES:
        pair = (found.one(cluster(gpus) + end, POLICY, figure) for end in ("", STOPS) for figure in ("p99", "median"))
        lines += [(f"{gpus:,}", *(f"{1e3 * t:.2f}" for t in pair))] if cluster(gpus) in found.cases else []
    return table(("GPUs", "p99, ms", "median, ms", "p99, ms, with stops", "median, ms, with stops"), lines)


def traces(found: Found) -> str:
    """Return a line a trace: `Scheduler` against the best classic policy that stops nobody, and at each price."""
    lines = []
    for name in (case.name for case in CASES if MOLDABLE not in case.name and case.name in found.cases):
        cells = []
        for end in ("", " 300"):
            mine = found.policies(name)
            best = _best(found, name, [p for p in mine if (p.endswith(end) if end else len(p.split()) == 2)])
            cells += [] if end else [f"{found.one(name, best):,.0f}"]
            cells.append(_against(found, name, f"Scheduler hybrid{end}", best))
        lines.append((_short(name), *cells, f"{found.one(name, best, 'bound'):,.0f}"))
    head = ("trace", "best without stops", "`Scheduler(fleet)`", "`price=300`", "bound")
    return table(head, lines)


def _short(name: str) -> str:
    return name.replace("virtual cluster ", "").replace(", pods that ended, whole GPUs", "")


def _best(found: Found, name: str, policies: Iterable[str]) -> str:
    """Return the classic policy with the least mean."""
    return min((p for p in policies if not p.startswith("Scheduler")), key=lambda p: found.one(name, p))


def _against(found: Found, name: str, policy: str, best: str) -> str:
    """Return a mean with how much more or less than the best it is."""
    mean = found.mean(name, policy)
    return "" if mean is None else f"{mean:,.0f} ({mean / found.one(name, best) - 1:+.1%})"


TABLES = {"scheduler-results.md": {"traces": traces}, "tried/measured.md": {"latency": latency}}


def draw(found: Found, picture: Path = PICTURE) -> None:
    """Draw how the time of a decision grows with the cluster."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.0, 3.2), dpi=110)
    for end, words, style in (("", "nobody is stopped", "o--"), (STOPS, "jobs are stopped", "o-")):
        sizes = [gpus for gpus in NODES if cluster(gpus) + end in found.cases]
        for field, label, colour in (("p99", "p99, clock", "#1f77b4"), ("thread", "p99, thread", "#d62728")):
            took = [1e3 * found.one(cluster(gpus) + end, POLICY, field) for gpus in sizes]
            axes.plot(sizes, took, style, color=colour, label=f"{label}, {words}")
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
