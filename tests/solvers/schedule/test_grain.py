"""Whole numbers for times and costs: nothing is rounded away, and nothing up."""

from __future__ import annotations

import numpy as np

from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.solvers import Run
from gangplan.solvers.schedule.grain import Scale
from gangplan.solvers.schedule.methods import METHODS, SUITE
from gangplan.solvers.schedule.prepare import prepare


def test_costs_do_not_floor_to_nothing() -> None:
    """Beside prices of a thousand million the seconds of broken lengths still count, and are rounded by little."""
    jobs = tuple(
        MoldableJob(f"j{i}", (1,), (4.0 + 0.1234567 * i * i,), release=0.71 * i, value=1e9 if i % 2 else None)
        for i in range(5)
    )
    p = prepare(ScheduleProblem(jobs, Pool(1)))
    scale = Scale(p, most=60.0)
    assert min(scale.slope) > 0
    assert scale.error < 1e-4
    run = Run(p.problem, time_limit=60.0)
    METHODS["cpsat"].run(run, SUITE.prepare(run))
    assert run.stop_reason == "claimed"
    # so large a price cannot be told in the unit of the times: it is said what that may cost
    assert Scale(p).error > 1.0


def test_broken_times_are_rounded_down() -> None:
    """Three runs of 3.9999995 ticks and a deadline at their end: none is rounded up, so CP-SAT has the plan."""
    tick = float(np.pi)
    jobs = tuple(
        MoldableJob(n, (1,), (s,), deadline=float(np.sum([tick, np.e, 2.0])))
        for n, s in zip("abc", (tick, np.e, 2.0), strict=True)
    )
    run = Run(ScheduleProblem(jobs, Pool(1)), time_limit=20.0)
    METHODS["cpsat"].run(run, SUITE.prepare(run))
    assert not run.infeasible and run.plan is not None
    scale = Scale(prepare(run.problem))
    assert not scale.whole and all(
        scale.down(x) * scale.tick <= x for x in np.random.default_rng(0).random(1000).tolist()
    )
