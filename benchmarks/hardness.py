"""Fit `gangplan.hybrid.hardness` to the ledgers: how long ``auto`` took to prove what, or did not."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np

from . import hybrid_rows, ledger

_GRID = np.geomspace(0.01, 60.0, 25)
_RIDGE = 0.1
_LEAST = 8
"""Solves of a kind from which on it gets a model."""


def observations() -> dict[str, list[tuple[float, float, float]]]:
    """Return of each kind of problem (size, seconds to the proof or infinity, seconds given) of its solves."""
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for row in ledger.read(ledger.LEDGER):
        if row.method == "auto":
            kind = f"throughput {row.variant}" if row.variant in ("contiguous", "convex", "free") else row.variant
            found[kind].append(_seen(row.ops * row.devices, row.status, row.seconds, row.time_limit))
    for one in hybrid_rows.read():
        if one.method == "auto" and one.deadline >= 1:
            problem = _made(one)
            kind = f"{problem.objective} {problem.variant}".strip()
            found[kind].append(_seen(_size(problem), one.status, one.seconds, one.deadline))
    return found


def _seen(size: float, status: str, seconds: float, limit: float) -> tuple[float, float, float]:
    return size, seconds if status in ("OPTIMAL", "INFEASIBLE") else np.inf, limit


def _made(row: hybrid_rows.HybridRow) -> Any:
    from gangplan.instances.generators.families import make

    return make(row.problem, row.family, row.seed, row.size)


def _size(problem: Any) -> float:
    from gangplan.hybrid.hardness import size

    return float(size(problem))


def fit(solves: list[tuple[float, float, float]]) -> list[float]:
    """Return a, b and c of the logistic model by Newton's method, with a small ridge on b and c."""
    rows, proved = [], []
    for size, seconds, limit in solves:
        for t in _GRID[limit >= _GRID]:
            rows.append((1.0, np.log10(max(size, 1)), np.log10(t)))
            proved.append(float(seconds <= t))
    x, y = np.array(rows), np.array(proved)
    weights, ridge = np.zeros(3), np.diag([1e-3, _RIDGE, _RIDGE])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (p - y) + ridge @ weights
        step = np.linalg.solve(x.T @ (x * (p * (1 - p))[:, None]) + ridge, gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    return [round(float(w), 4) for w in weights]


def main() -> int:
    """Write hybrid/hardness.json, and say how well each model tells proved from unproved."""
    from gangplan.hybrid.hardness import MODEL

    models = {}
    for kind, solves in sorted(observations().items()):
        if len(solves) >= _LEAST:
            models[kind] = a, b, c = fit(solves)
            right = [
                (1 / (1 + np.exp(-(a + b * np.log10(max(n, 1)) + c * np.log10(min(limit, 10.0))))) > 0.5)
                == (seconds <= min(limit, 10.0))
                for n, seconds, limit in solves
            ]
            print(f"{kind}: {len(solves)} solves, proved within 10 s or not: right in {np.mean(right):.0%}")
    MODEL.write_text(json.dumps(models, indent=1) + "\n", encoding="utf-8")
    return 0
