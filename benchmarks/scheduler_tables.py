"""The tables and the picture of docs/scheduler-results.md: latencies, and traces."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gangplan.plot.scene import Axis, Dots, Key, Lines, Mark, Panel, Scene

from .found import Found, table
from .rows import ROOT
from .scheduler_latency import JOBS, NODES
from .scheduler_traces import CASES

PICTURE = ROOT / "docs" / "images" / "scheduler_latency.png"
STOPS, POLICY = ", stops", "hybrid"
"""How the names of clusters end where jobs may be stopped; what is timed."""
DEADLINE = 50.0
"""Milliseconds."""
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
    keys, marks, every = list[Key](), list[Mark](), list[float]()
    for end, words, dash in (("", "nobody is stopped", True), (STOPS, "jobs are stopped", False)):
        sizes = [gpus for gpus in NODES if cluster(gpus) + end in found.cases]
        for field, label, colour in (("p99", "p99, clock", "#1f77b4"), ("thread", "p99, thread", "#d62728")):
            took = [1e3 * found.one(cluster(gpus) + end, POLICY, field) for gpus in sizes]
            at = np.stack([sizes, took], axis=1)
            keys.append(Key(f"{label}, {words}", (colour,), "dash" if dash else "line"))
            marks += [Lines([at], colour, 1.6, dash), Dots(at, colour)]
            every += took
    low, high = 0.8 * min(NODES), 1.25 * max(NODES)
    keys.append(Key(f"deadline, {DEADLINE:g} ms", ("#999999",), "dash"))
    marks.append(Lines([[(low, DEADLINE), (high, DEADLINE)]], "#999999", dash=True))
    x = Axis(low, high, "GPUs", [(float(gpus), f"{gpus:,}") for gpus in NODES], True, True)
    y = Axis(0.8 * min(every), 1.25 * max(*every, DEADLINE), "ms a decision", log=True, grid=True)
    Scene("A decision of Scheduler", "", [[Panel("latency", x, y, marks, keys)]]).save(picture)
