"""Who is compared on TopDRL's cluster, and the tables of docs/topdrl.md and docs/topdrl-results.md."""

from __future__ import annotations

import numpy as np

from gangplan.simulator.gangs.allocate import ALLOCATORS
from gangplan.systems.topdrl.policies import PUBLISHED
from gangplan.systems.topdrl.rules import DISCIPLINES, TUNED
from gangplan.systems.topdrl.suites import SUITES

from .found import Found, number, percent, table
from .study import NOT_RUN, Tables

CLASSIC = (*PUBLISHED, "least_work")
GRID = tuple(f"{s}+{d}+{a}" for s in CLASSIC for d in DISCIPLINES for a in ALLOCATORS)
"""Every selector, discipline and allocator: the best of them is the best rule of a workload, chosen in hindsight."""
TOPDRL, OURS, ORACLE, BOUND = "topdrl", "gnn", "oracle", "bound"
UNGUARDED = "gnn-unguarded"
"""Ours without its guard."""
NEAREST = ("scheduler-far", "scheduler", "scheduler-patient", "scheduler-gnn")
"""How `Scheduler` is called, see `SCHEDULERS`."""
PLACED = tuple(f"topdrl+{a}" for a in ALLOCATORS if a != "closest")
"""TopDRL with the published allocators."""
WINDOWS = "windows"
"""The suite of windows; there the oracle is the best plan of CP-SAT."""
OTHERS = (
    *("linear", "patient", "linear+easy", "linear+overtake", "srtf", "rollout"),
    *(TOPDRL, "topdrl-imitated", "topdrl-single", "proximity-drl", OURS),
    *(UNGUARDED, *PLACED, ORACLE, BOUND),
)

SHOWN = ("linear", "patient", "srtf", "rollout", TOPDRL, OURS, ORACLE, BOUND)
"""Beside the best rules in the tables of suites and windows."""


def full(name: str, allocator: str = "closest") -> str:
    """Return the name that the rows have of a selector with the discipline that suits it."""
    if name in CLASSIC:
        return f"{name}+{TUNED.get(name, 'overtake')}+{allocator}"
    return name if allocator == "closest" else f"{name}+{allocator}"


def summary(found: Found) -> str:
    """Return a line a suite: the best rule, the room below it, and what of it ours takes."""
    lines = []
    for suite in SUITES:
        best = found.best(suite, GRID)
        if best is not None:
            others = (found.apart(suite, p, best) for p in ("patient", ORACLE, TOPDRL, OURS))
            share = found.room(suite, OURS, GRID, ORACLE)
            lines.append((suite, f"`{best}` {number(found.mean(suite, best))}", *map(percent, others), share))
    named = ("patient", "oracle", "TopDRL", "ours")
    head = ("mean JCT", "best rule, s", *named, "our room")
    return table(head, lines) if lines else NOT_RUN


def suites(found: Found) -> str:
    """Return the mean JCT of the best rules of each suite, of policies and of bounds."""
    known = [suite for suite in SUITES if suite in found.cases]
    best = {suite: found.best(suite, GRID) for suite in known}
    names = list(dict.fromkeys((*filter(None, best.values()), *SHOWN)))

    def cell(suite: str, name: str) -> str:
        mean = number(found.mean(suite, name)) if found.of(suite, name) else ""
        return f"**{mean}**" if name == best[suite] else mean

    names = [name for name in names if any(found.of(suite, name) for suite in known)]
    jct = [(f"`{name}`", *(cell(suite, name) for suite in known)) for name in names]
    return table(("mean JCT, s", *known), jct) if jct else NOT_RUN


def rivals(found: Found) -> str:
    """Return how far TopDRL is from each published baseline on both sizes, the allocator being the same."""
    sizes = ("small", "large")
    lines = []
    for name in (*map(full, (*PUBLISHED, "least_work")), "proximity-drl"):
        cells = [found.apart(suite, TOPDRL, name) for suite in sizes]
        if any(cells):
            lines.append((f"`{name}`", *map(percent, cells)))
    return table(("mean JCT of TopDRL less", *sizes), lines) if lines else NOT_RUN


def windows(found: Found) -> str:
    """Return the gaps of policies to the optimum, of windows where it is proved, and of all to the best plan found."""
    best, least = found.of(WINDOWS, ORACLE), found.of(WINDOWS, BOUND)
    proved = [seed for seed in best if seed in least and best[seed] <= least[seed] * (1 + 1e-6)]
    lines = []
    for name in (full("least_work"), *SHOWN):
        mine = found.of(WINDOWS, name)
        gaps = np.array([mine[seed] / best[seed] - 1 for seed in proved if seed in mine])
        if len(gaps) and name not in (ORACLE, BOUND):
            known = np.mean([x / best[seed] - 1 for seed, x in mine.items() if seed in best])
            cells = (
                f"{gaps.mean():.2%}",
                f"{np.quantile(gaps, 0.95):.2%}",
                f"{np.mean(gaps < 1e-6):.0%}",
                f"{known:.2%}",
            )
            lines.append((f"`{name}`", *cells))
    head = (
        f"{len(proved)} of {len(best)} windows proved",
        "mean gap",
        "p95",
        "optimal",
        "mean gap of all to the best plan",
    )
    return table(head, lines) if lines else NOT_RUN


def near(found: Found) -> str:
    """Return how far `Scheduler` is from ours, where nobody is ever due."""
    known, names = [suite for suite in SUITES if found.of(suite, OURS)], (NEAREST[0], *NEAREST[2:])
    lines = [(s, number(found.mean(s, OURS)), *(percent(found.apart(s, name, OURS)) for name in names)) for s in known]
    calls = ("`Scheduler(fleet)`", '`"patient"` too', '`"gnn"` too')
    return table(("mean JCT less `gnn`", "`gnn`, s", *calls), lines) if lines else NOT_RUN


SUMMARY: Tables = {"summary": summary}
NEAR: Tables = {"near": near}
RESULTS: Tables = {table.__name__: table for table in (suites, rivals, windows)}
