"""Tables of what GapBench's library holds: certified optima, why others are not, classes, open problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import inf

from gangplan.hybrid.bench.best_known import CLASSES, class_of, closed, standing, why
from gangplan.hybrid.bench.library import read_library
from gangplan.hybrid.bench.rows import ONLINE
from gangplan.hybrid.bench.suite import SIZES, Instance, suite
from gangplan.solvers.result import relative_gap

from .found import Found, table

OPEN = (
    "latency-architecture-small-06", "latency-random-small-11", "latency-fat_tree-small-04", "step-fat_tree-small-06",
    "step-random-small-03", "throughput-random-medium-04", "throughput-fat_tree-large-01", "stages-fat_tree-medium-01",
    "stages-fat_tree-large-03", "placement-racks-medium-12", "placement-openb-medium-07", "schedule-moldable-medium-01",
)  # fmt: skip
"""The instances that docs/open-problems.md tells."""
EVERY = {x.id: x for x in suite("all") if x.objective != ONLINE}
RECORDS = read_library()


def _by_size(cell: Callable[[list[Instance]], str], first: str, sizes: Sequence[str] = SIZES) -> str:
    lines = []
    for name in (*dict.fromkeys(x.objective for x in EVERY.values()), "all"):
        own = [x for x in EVERY.values() if name in (x.objective, "all")]
        lines.append((name, *(cell([x for x in own if x.size == size]) for size in sizes), cell(own)))
    return table((first, *sizes, "all"), lines)


def certified_table(found: Found) -> str:
    """Return by objective how many proved optima are certified, and of how many; small and medium ones apart."""

    def cell(own: list[Instance]) -> str:
        words = Counter(standing(x, RECORDS.get(x.id)) for x in own)
        done = words["optimal (certified)"]
        return f"{done}/{done + words['optimal (claimed)']}"

    return _by_size(cell, "certified / optima", SIZES[1:3])


def why_table(found: Found) -> str:
    """Return by objective why closed instances are not certified."""
    reasons: dict[str, Counter[str]] = {}
    for x in EVERY.values():
        reasons.setdefault(x.objective, Counter())[why(x, RECORDS.get(x.id))] += 1
    words = {
        name: ", ".join(f"{reason} {n}" for reason, n in own.most_common() if reason) for name, own in reasons.items()
    }
    return table(("objective", "not certified, and why"), list(words.items()))


def classes(found: Found) -> str:
    """Return by objective how many instances of each size are easy, hard, open."""

    def cell(own: list[Instance]) -> str:
        counts = Counter(class_of(x, RECORDS.get(x.id)) for x in own)
        return "/".join(str(counts[name]) for name in CLASSES)

    return _by_size(cell, " / ".join(CLASSES))


def open_problems(found: Found) -> str:
    """Return value, bounds and gap of the instances that a page tells."""
    lines = []
    for x in (EVERY[name] for name in OPEN):
        record, gap = RECORDS.get(x.id), relative_gap(x.value, x.bound, x.zero)
        proves = record.proves if record is not None and record.certificate else None
        cells = ["" if y is None or y == inf else f"{float(y):.6g}" for y in (x.value, x.bound, proves)]
        now = standing(x, record) if closed(x, record) else "" if gap is None else f"{100 * gap:.2f}%"
        lines.append((f"`{x.id}`", *cells, now))
    return table(("instance", "best plan", "bound", "certified bound", "gap"), lines)
