"""How the policy is judged: on validation instances in training, and beside the priority lists afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers.schedule.decode import start_lists
from gangplan.solvers.schedule.prepare import prepare

from .builder import Builder, plans
from .examples import solve
from .policy import SchedulePolicy, compiled

SAMPLES = 16


class Validation:
    """Mean costs on validation instances, as shares of the base's: greedy and of 16 schedules.

    Args:
        builders: the instances.
    """

    def __init__(self, builders: Sequence[Builder]) -> None:
        self.builders = builders
        self.graphs = [x.graph() for x in builders]

    def __call__(self, network: Any) -> dict[str, float]:
        """Return ``greedy`` and ``sampled``, and ``score``, which is half of each."""
        greedy, sampled = [], []
        for builder, net in zip(self.builders, compiled(network, self.graphs), strict=True):
            costs = [cost for _, cost in zip(range(SAMPLES), plans(builder, net), strict=False)]
            greedy.append(costs[0] / builder.base.cost)
            sampled.append(min(costs) / builder.base.cost)
        a, b = float(np.mean(greedy)), float(np.mean(sampled))
        return {"score": (a + b) / 2, "greedy": a, "sampled": b}


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
