"""The tables of docs/policies.md, each made from the rows of benchmarks/policies.csv alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gangplan.simulator.metrics.compare import interval

from .cells import table
from .ledger import ROOT
from .policies_rows import POLICY_ROWS, PROTOCOL, PolicyRow, read
from .policies_traces import TRACES
from .report import SECTION

PAGE = ROOT / "docs" / "policies.md"
SECTIONS = ("nodes", "rounds")
_AT_ONCE = 100.0


def renew(page: str, rows: Sequence[PolicyRow]) -> str:
    """Return `page` with every generated section made anew.

    Raises:
        ValueError: if the sections of the page are not those of the traces.
    """
    named = [match[2] for match in SECTION.finditer(page)]
    if sorted(named) != sorted(SECTIONS):
        raise ValueError(f"sections are {', '.join(named)}; expected {', '.join(SECTIONS)}")
    return SECTION.sub(lambda match: f"{match[1]}\n{section(match[2], rows)}\n\n{match[3]}", page)


def write_page(path: Path = POLICY_ROWS, page: Path = PAGE, check: bool = False) -> int:
    """Renew the page; with `check` write nothing and return 1 if it does not agree with the rows."""
    before = page.read_text(encoding="utf-8")
    after = renew(before, read(path))
    if before == after:
        print(f"{page.name} agrees with {path.name}")
        return 0
    if check:
        print(f"{page.name} does not agree with {path.name}: python -m benchmarks policies")
        return 1
    page.write_text(after, encoding="utf-8")
    print(f"{page.name} renewed")
    return 0


def section(name: str, rows: Iterable[PolicyRow]) -> str:
    """Return the traces of a section, and a table of regret: a line for each policy, a column for each trace."""
    newest = {row.key: row for row in rows if row.protocol == PROTOCOL}
    legend: list[str] = []
    columns: list[dict[str, str]] = []
    policies: dict[str, None] = {}
    for trace in TRACES:
        found = [r for r in newest.values() if (r.trace, r.cluster) == (trace.name, trace.cluster)]
        if (trace.section == "rounds") != (name == "rounds") or not found:
            continue
        order = {p if isinstance(p, str) else " ".join(p): i for i, p in enumerate(trace.policies)}
        by_policy: dict[str, list[PolicyRow]] = {}
        for row in sorted(found, key=lambda r: (order.get(r.policy, len(order)), r.seed)):
            by_policy.setdefault(row.policy, []).append(row)
        policies |= dict.fromkeys(by_policy)
        columns.append({policy: _regret(mine) for policy, mine in by_policy.items()})
        legend.append(f"{len(columns)}. {_words(trace.name, found)}")
    if not columns:
        return ""
    lines = [(f"`{policy}`", *(column.get(policy, "") for column in columns)) for policy in policies]
    heads = ("mean JCT above its bound, %", *(str(i) for i in range(1, len(columns) + 1)))
    return "\n".join(legend) + "\n\n" + table(heads, lines)


def _words(name: str, rows: Sequence[PolicyRow]) -> str:
    first, seeds = rows[0], len({row.seed for row in rows})
    words = f"{name}: {first.jobs:,} jobs on {first.cluster}"
    if seeds > 1:
        return f"{words}, {seeds} seeds"
    load = f"load {first.load:.0%}" if first.load < _AT_ONCE else "all submitted at once"
    lp = next((row.unstopped_bound for row in rows if row.unstopped_bound is not None), None)
    unstopped = "" if lp is None else f", {lp:,.0f} s if no job is stopped"
    return f"{words}, {load}; the bound on the mean JCT is {first.jct_bound:,.0f} s{unstopped}"


def _regret(rows: Sequence[PolicyRow]) -> str:
    """Return a mean regret in percent, over seeds with its interval; that it was cut off, if a seed was."""
    if any(row.regret is None for row in rows):
        return "cut off"
    mean, margin = interval(100 * np.array([row.regret for row in rows], dtype=float))
    return f"{mean:,.1f}" if margin is None else f"{mean:,.1f} ± {margin:,.0f}"
