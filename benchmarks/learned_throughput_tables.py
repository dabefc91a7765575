"""The tables of docs/learned-throughput.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from .cells import table
from .learned_rows import LearnedRow
from .learned_speed import speed
from .learned_tables import gaps, of

ORDER = (
    "cpsat", "pipeline", "learned", "learned (16)", "greedy", "pipedream", "local_search", "local search (ms)",
    "decoder", "random", "random (16)", "trees", "trees (16)", "GNN", "GNN (16)",
)  # fmt: skip
ABLATIONS = ("learned", "imitation only", "RL only", "one label", "GNN")


def small(rows: Sequence[LearnedRow]) -> str:
    """Show the small graphs whose optimum is proved."""
    found = of(rows, set="small")
    known = [x for x in found if x.proved]
    total, proved = (len({x.instance for x in part}) for part in (found, known))
    return f"{gaps(known, ORDER)}\n\nThe optimum of {proved} of {total} is proved; the others are left out."


def unseen(rows: Sequence[LearnedRow]) -> str:
    """Show the family that no training saw."""
    return gaps([x for x in of(rows, set="unseen") if x.proved], ORDER)


def real(rows: Sequence[LearnedRow]) -> str:
    """Show the published graphs and profiles whose optimum the ledger has proved."""
    found = of(rows, set="real")
    parts = []
    for title, begin in (("MSR's graphs", "msr/"), ("PipeDream's profiles", "pipedream/")):
        known = [x for x in found if x.proved and x.family.startswith(begin)]
        parts.append(f"{title}:\n\n{gaps(known, ORDER)}")
    return "\n\n".join(parts)


def sizes(rows: Sequence[LearnedRow]) -> str:
    """Show the mean gap to the bound against size."""
    found = of(rows, set="sizes")
    shown = (
        "learned",
        "learned (16)",
        "greedy",
        "pipedream",
        "local_search",
        "local search (20 s)",
        "decoder",
        "random (16)",
    )
    lines = []
    for size in sorted({x.size for x in found}):
        here = of(found, size=size)
        by: dict[str, dict[object, LearnedRow]] = defaultdict(dict)
        for row in here:
            by[row.method][row.instance] = row
        there = [m for m in shown if by[m]]
        common = set.intersection(*(set(by[m]) for m in there))
        cells = [_cell([by[m][x] for x in common]) if by[m] else "" for m in shown]
        lines.append((f"{size:,}", str(len(common)), *cells))
    return table(("ops at most", "instances", *(f"{m}, gap (ms)" for m in shown)), lines)


def _cell(rows: Sequence[LearnedRow]) -> str:
    gap, time = np.mean([x.gap for x in rows]), np.median([x.milliseconds for x in rows])
    return f"{gap:.2%} ({time:.3g})" if np.isfinite(gap) else f"not always a plan ({time:.3g})"


def ablations(rows: Sequence[LearnedRow]) -> str:
    """Compare what the network was taught, small and large, by its own plan and by the best of 16."""
    found = [x for x in rows if x.set in ("small", "unseen") and x.proved]
    large = [x for x in of(rows, set="sizes") if x.size == 1000]
    both = [name for method in ABLATIONS for name in (method, f"{method} (16)")]
    return f"Up to 100 ops, to the optimum:\n\n{gaps(found, both)}\n\n1,000 ops, to the bound:\n\n{gaps(large, both)}"


TABLES: dict[str, Callable[[Sequence[LearnedRow]], str]] = {
    "small": small, "unseen": unseen, "real": real, "sizes": sizes, "ablations": ablations,
    "speed": lambda rows: speed([x for x in rows if x.set in ("small",)], "cpsat"),
}  # fmt: skip
