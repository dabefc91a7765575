"""Tables of gaps and of what proofs cost, from the rows of the study `proofs`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gangplan.hybrid.bench.suite import SIZES
from gangplan.solvers.result import relative_gap
from gangplan.solvers.run import OPTIMAL_GAP

from .found import Found, table

CERTIFY, PUBLISHED = ", certify", "published"
GAP = 0.15
"""Families where no size has a larger mean gap are left out."""
Figures = Mapping[str, float]


def size_of(certificate: Any) -> float:
    """Return the bytes of a certificate as JSON."""
    return float(len(json.dumps(certificate, separators=(",", ":"))))


def gap_of(x: Figures) -> float | None:
    """Return the gap of a solve to its own bound; 1 without plan or bound, `None` where it proved that none exists."""
    gap = relative_gap(x.get("value"), x.get("bound"), x.get("zero", 0.0))
    return None if x.get("infeasible") else 1.0 if gap is None else min(max(gap, 0.0), 1.0)


def proved(x: Figures) -> bool:
    """Return whether a solve proved its plan optimal."""
    return (gap_of(x) or 0.0) <= OPTIMAL_GAP and not x.get("infeasible")


def labels(found: Found) -> list[str]:
    """Return the labels of solves without a certificate, oldest first."""
    return list(dict.fromkeys(policy for _, policy in found.runs if not policy.endswith(CERTIFY)))


def _gaps(found: Found) -> tuple[dict[str, dict[tuple[float, str], list[float]]], list[tuple[float, str]]]:
    """Return gaps by "objective, family, size" and column, and the columns: deadlines (s) of the newest label."""
    kept: dict[str, dict[tuple[float, str], list[float]]] = {}
    for (case, label), rows in found.runs.items():
        if not label.endswith(CERTIFY):
            group, deadline = case.removesuffix(" s").rsplit(", ", 1)
            own = [gap for row in rows.values() if (gap := gap_of(row.figures)) is not None]
            kept.setdefault(group, {})[float(deadline), label] = own
    return kept, sorted({c for own in kept.values() for c in own if c[1] == labels(found)[-1]})


def _gap_table(first: str, groups: Mapping[str, Sequence[str]], found: Found) -> str:
    kept, columns = _gaps(found)
    lines = []
    for name, own in groups.items():
        each = [[gap for g in own for gap in kept[g].get(c, ())] for c in columns]
        lines.append((name, *(f"{100 * float(np.mean(x)):.2f}%" if x else "" for x in each)))
    return table((first, *(f"{deadline:g} s" for deadline, _ in columns)), lines)


def gaps(found: Found) -> str:
    """Return the mean gap of the newest label by family and size from medium on, of each deadline."""
    kept, newest = _gaps(found)
    sizes = SIZES[SIZES.index("medium") :]

    def of(group: str) -> list[list[float]]:
        return [kept.get(group, {}).get(c, []) for c in newest]

    families = dict.fromkeys(group.rpartition(", ")[0] for group in sorted(kept))
    families = [x for x in families if any(np.mean(own) > GAP for size in sizes for own in of(f"{x}, {size}") if own)]

    def cell(group: str) -> str:
        each = of(group)
        return ", ".join(f"{100 * float(np.mean(x)):.2f}" if x else "-" for x in each) if any(each) else ""

    head = f"{' and '.join(f'{deadline:g} s' for deadline, _ in newest)}, %"
    return table((head, *sizes), [(x, *(cell(f"{x}, {size}") for size in sizes)) for x in families])


def gaps_in_short(found: Found) -> str:
    """Return mean gaps by objective, and of how many solves."""
    kept, columns = _gaps(found)
    groups = list(kept)
    parts = {x: [g for g in groups if g.startswith(f"{x}, ")] for x in dict.fromkeys(g.split(", ")[0] for g in groups)}
    counts = " | ".join(str(sum(len(own.get(c, ())) for own in kept.values())) for c in columns)
    means = _gap_table("", {**parts, "all": groups}, found)
    return f"{means}\n| solves | {counts} |"


def published(found: Found) -> str:
    """Return values and bounds of published graphs that stay open, by the newest label; and how many are optimal."""
    newest = {case: rows[0].figures for (case, _), rows in found.runs.items() if case.startswith(f"{PUBLISHED}, ")}
    lines = []
    for case, x in newest.items():
        _, objective, name, _ = case.split(", ")
        cells = [f"{x[key]:.6g}" if key in x else "" for key in ("value", "proves")]
        gap = gap_of(x)
        if not x.get("certified") and not proved(x):
            lines.append((f"{name}, {objective}", *cells, "" if gap is None else f"{gap:.2%}"))
    certified = sum(bool(x.get("certified")) for x in newest.values())
    words = f"Of the {len(newest) - len(lines)} others {certified} are certified optimal, the rest claimed."
    return table(("graph", "value", "certified bound", "gap to the bound"), lines) + f"\n\n{words}"
