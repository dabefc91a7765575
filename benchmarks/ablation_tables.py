"""What the rows of the study `ablation` say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gangplan.simulator.metrics import interval

from .found import Found, table

PROBE, WHOLE = "first", "auto"
LEFT = ("throughput: spectral", "throughput: random_keys", "step: lns", "step: cpsat_below", "pipeline: published",
        "pipeline: bounds", "pipeline: cpsat")  # fmt: skip
"""CP-SAT of pipelines only below two seconds."""


def of_case(case: str) -> tuple[str, str, float, int]:
    """Return objective, family, limit in seconds and workers of a case."""
    objective, family, limit, *workers = case.split(", ")
    return objective, family, float(limit.removesuffix(" s")), int(workers[0].split()[0]) if workers else 1


def worse(found: Found, objective: str, policy: str, base: str) -> dict[tuple[str, int], list[tuple[float, ...]]]:
    """Return by family and instance how much worse a policy is than another, a triple a limit.

    These are what its plan costs more and its bound is lower, of the best value above zero, and how much later the
    claim comes, of the limit; without a plan, or a claim, all of it.
    """
    worse: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    for case in (x for x in found.cases if x.startswith(f"{objective}, ")):
        _, family, limit, _ = of_case(case)
        own, others = (found.runs.get((case, x), {}) for x in (policy, base))
        for seed in own.keys() & others.keys():
            x, y = own[seed].figures, others[seed].figures
            idle = "idle" in x
            least, zero = min((z["value"] for z in (x, y) if "value" in z), default=None), y.get("zero", 0.0)
            plans, bounds, claims = [0.0, 0.0], [0.0, 0.0], [min(z.get("claimed", limit) / limit, 1) for z in (x, y)]
            if least is not None and least > zero:
                plans = [min(1.0, (z.get("value", np.inf) - least) / (least - zero)) for z in (x, y)]
                bounds = [max(0.0, (min(z.get("bound", zero), least) - zero) / (least - zero)) for z in (x, y)]
            three = (plans[0] - plans[1], bounds[1] - bounds[0], claims[0] - claims[1])
            worse.setdefault((family, seed), []).append((0.0, 0.0, 0.0) if idle else three)
    return worse


def _cells(worse: Mapping[Any, Sequence[tuple[float, ...]]]) -> list[str]:
    """Return mean and interval over instances, in percent."""
    each = 100 * np.array([np.mean(x, axis=0) for x in worse.values()])
    pairs = (interval(column) for column in each.T)
    return [f"{mean:+.2f}±{margin or 0:.2f}" for mean, margin in pairs]


def left(found: Found) -> str:
    """Return what left, its share of the time, and how much worse `auto` is without it; then all of it together."""
    lines = []
    for objective, name in (x.split(": ") for x in LEFT):
        rows = [row for key, rows in found.runs.items() if key[1] == PROBE for row in rows.values()]
        first = [x.figures for x in rows if of_case(x.task.case)[0] == objective and f"ran {name}" in x.figures]
        share = sum(x[f"ran {name}"] for x in first) / max(sum(x["seconds"] for x in first), 1e-9)
        apart = worse(found, objective, f"without {name}", WHOLE)
        lines.append((f"{objective}, `{name}`", str(len(apart)), f"{share:.0%}", *_cells(apart)))
    for objective in dict.fromkeys(x.split(": ")[0] for x in LEFT):
        apart = worse(found, objective, "after", "before")
        lines.append((f"{objective}, all of them", str(len(apart)), "", *_cells(apart)))
    return table(("without", "instances", "its time", "plan", "bound", "claim"), lines)
