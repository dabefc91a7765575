"""Makespans of the policy beside those of the heuristics, on the same instances."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from gangplan.instances import verify
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.step.model import prepare

from ..policy.means import above_best

HEURISTICS = ("heft", "list_schedule", "contiguous", "critical_path")
SAMPLES = (1, 16)
_LIMIT = 20.0


def evaluate(policy: Any, seeds: Iterable[int], *, family: str = "pipeline", size: int = 100) -> list[dict[str, Any]]:
    """Return a row for each method and seed: seconds of the plan, None without one, milliseconds, how far from best.

    Args:
        policy: the learned one.
        seeds: indices into the split ``test``.
        family: of the instances.
        size: their most ops.
    """
    policy.plan(make("step", "fork_join", 0, 8))
    rows = []
    for i in seeds:
        problem: Any = make("step", family, seed_of("test", i), size)
        for samples in SAMPLES:
            started = time.perf_counter()
            plan = policy.plan(problem, samples)
            took = time.perf_counter() - started
            objective = None if plan is None else verify(problem, plan).objective
            rows.append(_row(f"learned, {samples}", family, i, objective, took))
        for name in HEURISTICS:
            run = Run(problem, time_limit=_LIMIT)
            p = prepare(problem)
            suite("step").methods[name].run(run, p)
            rows.append(_row(name, family, i, run.objective, run.seconds()))
    return above_best(rows, "seconds")


def _row(method: str, family: str, seed: int, objective: float | None, seconds: float) -> dict[str, Any]:
    return {
        "method": method, "family": family, "seed": seed, "seconds": objective, "milliseconds": 1e3 * seconds,
    }  # fmt: skip
