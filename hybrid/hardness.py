"""How hard a problem is: the chance that the exact methods prove their answer in so many seconds.

Learned from the ledgers of the benchmarks by ``python -m benchmarks hardness``, which writes hardness.json:

    P(proved within t) = sigmoid(a + b log10(size) + c log10(t)),

size being ops times devices, or jobs times GPUs.
"""

from __future__ import annotations

import json
from functools import cache
from math import exp, log10
from pathlib import Path
from typing import Any

from gangplan.instances.placement import PlacementProblem
from gangplan.instances.schedule import ScheduleProblem
from gangplan.instances.schedule.capacity import total
from gangplan.instances.verify import Problem

MODEL = Path(__file__).with_name("hardness.json")


def size(problem: Problem) -> int:
    """Return what a problem's models grow with."""
    if isinstance(problem, PlacementProblem):
        return len(problem.jobs) * problem.fleet.n_gpus
    if isinstance(problem, ScheduleProblem):
        return len(problem.jobs) * total(problem.capacity)
    return problem.graph.n_ops * problem.cluster.n_devices


def parts(problem: Problem) -> int:
    """Return of how many parts a problem consists: ops, jobs and nodes, or jobs."""
    if isinstance(problem, PlacementProblem):
        return len(problem.jobs) + problem.fleet.n_nodes
    return len(problem.jobs) if isinstance(problem, ScheduleProblem) else problem.graph.n_ops


def chance(problem: Problem, seconds: float) -> float:
    """Return the chance that `problem` is solved to proved optimality within `seconds`; a half if nothing is known."""
    known = _model().get(f"{problem.objective} {problem.variant}".strip())
    if known is None or seconds <= 0:
        return 0.5
    a, b, c = known
    return 1 / (1 + exp(-max(-50.0, min(50.0, a + b * log10(max(size(problem), 1)) + c * log10(seconds)))))


@cache
def _model() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MODEL.read_text(encoding="utf-8"))
    return found
