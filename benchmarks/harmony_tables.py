"""The tables of docs/harmony.md, made from the rows of benchmarks/harmony.csv alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from gangplan.simulator.metrics import interval

from .cells import table
from .found import Found, number, percent
from .harmony import ABLATIONS, CSV, FULL, GROUND, HARMONY, ORACLES, OURS, POLICIES, PUBLISHED, RULES, read
from .ledger import ROOT
from .report import renew

PAGE = ROOT / "docs" / "harmony.md"
NOT_RUN = "Not run yet."


def summary(found: Found) -> str:
    """Return a line a case: the best rule, and how far from it others are, with shares of the room."""
    lines = []
    for case in GROUND:
        best, oracle = found.best(case, RULES), found.best(case, ORACLES)
        if best is None:
            continue
        cells = [percent(found.apart(case, p, best)) for p in (HARMONY, OURS, "alone", oracle)]
        ahead = [percent(found.apart(case, OURS, p)) for p in (HARMONY, "alone-joint")]
        room = found.room(case, OURS, RULES, oracle)
        lines.append((f"`{case}`", f"`{best}` {_minutes(found, case, best)}", *cells, *ahead, room))
    head = (
        "mean JCT",
        "best rule, min",
        "Harmony",
        "ours",
        "speeds alone",
        "oracle",
        "ours less Harmony",
        "less its search alone",
        "our room",
    )
    return table(head, lines) if lines else NOT_RUN


def published(found: Found) -> str:
    """Return how far Harmony is from each rule, as published and tuned."""
    lines = []
    for case in GROUND:
        cells = [found.apart(case, HARMONY, p) for p in (*PUBLISHED, *RULES[:3])]
        if any(cells):
            lines.append((f"`{case}`", *map(percent, cells)))
    return table(("Harmony less", *(f"`{p}`" for p in (*PUBLISHED, *RULES[:3]))), lines) if lines else NOT_RUN


def ablations(found: Found) -> str:
    """Return how far Harmony with something left out is from Harmony."""
    bases = (FULL, HARMONY)
    lines = [(f"`{p}`", *(percent(found.apart("poisson", p, base)) for base in bases)) for p in (FULL, *ABLATIONS)]
    return table(("`poisson`, mean JCT", *(f"less `{base}`" for base in bases)), lines)


def cases(found: Found) -> str:
    """Return a table for each case: the figures of every policy that was run."""
    parts = []
    for case in GROUND:
        best, oracle, lines = found.best(case, RULES), found.best(case, ORACLES), []
        for name in POLICIES:
            if mine := found.of(case, name):
                mean, margin = interval(np.array(list(mine.values())) / 60)
                cells = [number(mean) + ("" if margin is None else f" ± {number(margin)}")]
                cells += [_minutes(found, case, name, "p95_jct"), _hours(found, case, name)]
                cells += [number(found.mean(case, name, "rate")), found.room(case, name, RULES, oracle)]
                lines.append((f"**`{name}`**" if name == best else f"`{name}`", *cells))
        head = (case, "mean JCT, min", "p95, min", "makespan, h", "tasks/s", "share of the room")
        parts += [table(head, lines)] if lines else []
    return "\n\n".join(parts) or NOT_RUN


def provenance(found: Found) -> str:
    """Return where the rows come from."""
    lines = []
    for name in POLICIES:
        kept = [row for case in GROUND for row in found.rows.get(case, ()) if row.policy == name]
        if kept:
            newest = max(kept, key=lambda r: r.date)  # type: ignore[attr-defined]
            weights = ", ".join(sorted({row.weights for row in kept} - {""}))
            lines.append((f"`{name}`", weights, f"{len(kept):,}", newest.commit, newest.date[:10]))  # type: ignore[attr-defined]
    return table(("", "weights", "rows", "commit", "newest"), lines) if lines else NOT_RUN


def _minutes(found: Found, case: str, policy: str, figure: str = "mean_jct") -> str:
    value = found.mean(case, policy, figure)
    return "" if value is None else number(value / 60)


def _hours(found: Found, case: str, policy: str) -> str:
    value = found.mean(case, policy, "makespan")
    return "" if value is None else number(value / 3600)


TABLES: dict[str, Callable[[Found], str]] = {
    "summary": summary,
    "published": published,
    "ablations": ablations,
    "cases": cases,
    "provenance": provenance,
}


def write_page(path: Path = CSV, check: bool = False) -> int:
    """Renew the page, see `renew`."""
    found = Found(read(path))
    return renew(PAGE, {name: partial(make, found) for name, make in TABLES.items()}, "harmony page", check=check)
