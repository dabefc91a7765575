"""Local search over orders: move a pass to another place on its device unless a step then takes longer."""

from __future__ import annotations

import numpy as np

from gangplan.instances import verify
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.pipeline import finishes, step_seconds

from ..run import Run

_FARTHEST = 12
"""Places that a pass is moved at most."""
_STALLED = 60
"""Moves for each pass without a shorter step after which the search begins again from the best plan."""


def local_search(run: Run, prepared: object = None) -> None:
    """Move passes at random from the best plan on, for as long as there is time."""
    problem, passes, rng = run.problem, run.problem.passes(), np.random.default_rng(run.seed)
    limit = problem.capacity * (1 + TOLERANCE) if len(problem.capacity) else np.full(problem.devices, np.inf)
    change = passes.change
    while not run.stopped and run.objective is not None:
        orders, value, stalled = problem.orders(run.plan), run.objective, 0
        while not run.stopped and stalled < _STALLED * problem.n_passes:
            stalled += 1
            d = int(rng.integers(problem.devices))
            order = orders[d]
            i = int(rng.integers(len(order)))
            k = min(max(i + int(rng.integers(1, _FARTHEST + 1)) * (1 if rng.random() < 0.5 else -1), 0), len(order) - 1)
            order.insert(k, order.pop(i))
            seconds = np.inf
            if np.cumsum(change[order]).max() <= limit[d]:
                ends, stuck = finishes(problem, passes, orders)
                seconds = np.inf if stuck else step_seconds(ends, orders)[0]
            if seconds > value:
                order.insert(i, order.pop(k))
            elif seconds < value:
                value, stalled = seconds, 0
                plan = problem.plan(orders)
                if verify(problem, plan).ok:
                    run.offer(plan, "local_search")
