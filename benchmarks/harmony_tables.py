"""The tables of docs/harmony.md, made from the rows of benchmarks/harmony.csv alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from .cells import table
from .found import Found, number, percent
from .harmony import ABLATIONS, CSV, FULL, GROUND, HARMONY, ORACLES, OURS, POLICIES, PUBLISHED, RULES, read
from .ledger import ROOT
from .report import renew

PAGE = ROOT / "docs" / "harmony.md"
LEFT_OUT = (*PUBLISHED, *ABLATIONS, "best", "first")
"""Policies without a row in the table of cases: published rules and ablations have tables of their own."""
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
    """Return mean JCTs in minutes, a row for each policy and a column for each case."""
    names = [case for case in GROUND if case in found.rows]
    lines = []
    for policy in POLICIES:
        if policy not in LEFT_OUT and (means := [_minutes(found, case, policy) for case in names]):
            lines.append((f"`{policy}`", *means, number(found.mean("poisson", policy, "rate"))))
    return table(("", *(f"`{case}`" for case in names), "tasks/s"), lines) if names else NOT_RUN


def _minutes(found: Found, case: str, policy: str) -> str:
    value = found.mean(case, policy)
    return "" if value is None else number(value / 60)


TABLES: dict[str, Callable[[Found], str]] = {
    "summary": summary,
    "published": published,
    "ablations": ablations,
    "cases": cases,
}


def write_page(path: Path = CSV, check: bool = False) -> int:
    """Renew the page, see `renew`."""
    found = Found(read(path))
    return renew(PAGE, {name: partial(make, found) for name, make in TABLES.items()}, "harmony page", check=check)
