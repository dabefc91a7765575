"""Gaps of the policy beside the priority lists, to the best schedule that the exact solver has."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers.schedule.decode import start_lists
from gangplan.solvers.schedule.prepare import prepare

from .labels import solve
from .policy import SchedulePolicy

SAMPLES = 16


def evaluate(
    policy: SchedulePolicy, seeds: Iterable[int], *, jobs: int = 20, seconds: float = 5.0, split: str = "test"
) -> list[dict[str, Any]]:
    """Return a row a method and instance: gap to the best plan known, milliseconds.

    Args:
        policy: the learned one.
        seeds: indices of instances of the family moldable.
        jobs: at most, of each.
        seconds: for the exact solver.
        split: which seeds.
    """
    rows = []
    for i in seeds:
        p = prepare(make("schedule", "moldable", seed_of(split, i), jobs))
        started = time.perf_counter()
        run = solve(p.problem, seconds)
        if run.objective is None:
            continue
        best, proved = run.objective, run.bound is not None and run.objective <= run.bound * (1 + 1e-6)
        found = [("exact", best, time.perf_counter() - started)]
        for name, samples in (("greedy", 1), (f"{SAMPLES} schedules", SAMPLES)):
            started = time.perf_counter()
            cost, _ = policy.schedule(p, samples)
            found.append((name, cost, time.perf_counter() - started))
        started = time.perf_counter()
        found.append(("lists", start_lists(p)[0][0], time.perf_counter() - started))
        rows += [
            {
                "seed": i, "method": name, "gap": cost / best - 1, "proved": proved,
                "milliseconds": 1e3 * spent,
            }
            for name, cost, spent in found
        ]  # fmt: skip
    return rows
