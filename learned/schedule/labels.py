"""What the exact solver knows of an instance: the list of its best schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers import Run
from gangplan.solvers.method import suite_of
from gangplan.solvers.schedule.local_search import list_of
from gangplan.solvers.schedule.prepare import Ints, Prepared


def solve(problem: Any, seconds: float, methods: tuple[str, ...] = ("starts", "cpsat"), seed: int = 0) -> Run:
    """Run some methods of the suite one after the other, each for at most 60% of the time left but the last."""
    run = Run(problem, time_limit=seconds, seed=seed)
    suite = suite_of(problem)
    prepared = suite.prepare(run)
    for i, name in enumerate(methods):
        if not run.stopped and suite.methods[name].suits(prepared):
            with run.share(1.0 if i == len(methods) - 1 else 0.6):
                suite.methods[name].run(run, prepared)
    return run


def best_list(p: Prepared, seconds: float) -> tuple[Ints, float] | None:
    """Return (job, option or -1) in the order of starts, int64 (n, 2), and the goal; None if there is no such list."""
    run = solve(p.problem, seconds)
    if run.plan is None or run.objective is None:
        return None
    order, wish = list_of(p, run.plan.degree, run.plan.start)
    if (wish < -1).any():
        return None  # at a degree that is no faster than a smaller one
    return np.stack([order, wish[order]], axis=1).astype(np.int64), float(run.objective)
