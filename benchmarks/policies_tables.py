"""The tables of docs/policies.md, each made from the rows of benchmarks/policies.csv alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from gangplan.simulator.metrics.compare import interval

from .cells import table
from .ledger import ROOT
from .policies_rows import POLICIES, PROTOCOL, PolicyRow, read
from .policies_traces import TRACES
from .report import SECTION

PAGE = ROOT / "docs" / "policies.md"
SECTIONS = tuple(dict.fromkeys(trace.section for trace in TRACES))
_AT_ONCE = 100.0
HEAD = ("policy", "mean JCT, s", "p99 JCT, s", "makespan, s", "utilisation", "regret", "makespan over its bound")
BASE = "fifo overtake"
UNSTOPPED = "regret, no job stopped"
SEEDED = ("policy", "mean JCT, s", f"against `{BASE}`, s", "p99 JCT, s", "makespan, s", "utilisation", "regret")


def renew(page: str, rows: Sequence[PolicyRow]) -> str:
    """Return `page` with every generated section made anew.

    Raises:
        ValueError: if the sections of the page are not those of the traces.
    """
    named = [match[2] for match in SECTION.finditer(page)]
    if sorted(named) != sorted(SECTIONS):
        raise ValueError(f"sections are {', '.join(named)}; expected {', '.join(SECTIONS)}")
    return SECTION.sub(lambda match: f"{match[1]}\n{section(match[2], rows)}\n\n{match[3]}", page)


def write_page(path: Path = POLICIES, page: Path = PAGE, check: bool = False) -> int:
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
    """Return the tables of a section, a trace each, with its jobs and cluster above."""
    newest = {row.key: row for row in rows if row.protocol == PROTOCOL}
    parts = []
    for trace in TRACES:
        found = [r for r in newest.values() if (r.trace, r.cluster) == (trace.name, trace.cluster)]
        if trace.section == name and found:
            order = {p if isinstance(p, str) else " ".join(p): i for i, p in enumerate(trace.policies)}
            by_policy: dict[str, list[PolicyRow]] = {}
            for row in sorted(found, key=lambda r: (order.get(r.policy, len(order)), r.seed)):
                by_policy.setdefault(row.policy, []).append(row)
            many = len({row.seed for row in found}) > 1
            parts += [_words(trace.name, found), _seeded(by_policy) if many else _single(by_policy)]
    return "\n\n".join(parts)


def _words(name: str, rows: Sequence[PolicyRow]) -> str:
    first = rows[0]
    words = f"**{name}.** {first.jobs:,} jobs on {first.cluster},"
    seeds = {row.seed: row for row in rows}
    if len(seeds) > 1:
        loads = dict.fromkeys(f"{load:.0%}" for load in sorted(row.load for row in seeds.values()))
        ends = list(loads) if len(loads) == 1 else [next(iter(loads)), next(reversed(loads))]
        return f"{words} load {' to '.join(ends)}, {len(seeds)} seeds, mean ± 95% interval."
    lp = next((row.unstopped_bound for row in rows if row.unstopped_bound is not None), None)
    unstopped = "" if lp is None else f", {lp:,.0f} s if no job is stopped"
    bounds = f"{first.jct_bound:,.0f} s{unstopped}, on the makespan {first.makespan_bound:,.0f} s"
    load = f"load {first.load:.0%}" if first.load < _AT_ONCE else "all submitted at once"
    return f"{words} {load}. Bound on the mean JCT {bounds}."


def _single(by_policy: dict[str, list[PolicyRow]]) -> str:
    lines: list[tuple[str, ...]] = []
    known = any(row.unstopped_bound is not None for (row,) in by_policy.values())
    head = (*HEAD, UNSTOPPED) if known else HEAD
    for policy, (row,) in by_policy.items():
        if row.mean_jct is None or row.p99_jct is None or row.makespan is None or row.utilisation is None:
            lines.append((f"`{policy}`", f"cut off after {row.seconds:.0f} s", *[""] * (len(head) - 2)))
            continue
        figures = (f"{row.mean_jct:,.0f}", f"{row.p99_jct:,.0f}", f"{row.makespan:,.0f}", f"{row.utilisation:.1%}")
        last = [] if not known else [""] if row.unstopped_regret is None else [f"{row.unstopped_regret:.1%}"]
        lines.append((f"`{policy}`", *figures, f"{row.regret:.1%}", f"{row.makespan_regret:.1%}", *last))
    return table(head, lines)


def _seeded(by_policy: dict[str, list[PolicyRow]]) -> str:
    first, lines = by_policy.get(BASE, []), []
    for policy, rows in by_policy.items():
        apart = ""
        if rows is not first and [r.seed for r in rows] == [r.seed for r in first]:
            pairs = zip(first, rows, strict=True)
            apart = _spread([_number(b.mean_jct) - _number(a.mean_jct) for a, b in pairs], "{:,.0f}")
        cells = [
            _spread([_number(figure(r)) for r in rows], form)
            for figure, form in (
                (_field("mean_jct"), "{:,.0f}"),
                (_field("p99_jct"), "{:,.0f}"),
                (_field("makespan"), "{:,.0f}"),
                (_field("utilisation"), "{:.1%}"),
                (_field("regret"), "{:.1%}"),
            )
        ]
        lines.append((f"`{policy}`", cells[0], apart, *cells[1:]))
    return table(SEEDED, lines)


def _field(name: str) -> Callable[[PolicyRow], float | None]:
    return lambda row: getattr(row, name)


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _spread(values: Sequence[float], form: str) -> str:
    """Return a mean with its interval; that it was cut off, if a seed was."""
    if not np.isfinite(values).all():
        return "cut off"
    mean, margin = interval(np.array(values))
    return form.format(mean) + ("" if margin is None else f" ± {form.format(margin)}")
