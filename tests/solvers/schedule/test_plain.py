"""Plain models of schedules: cases by hand."""

from __future__ import annotations

import pytest

from gangplan import solve
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem
from gangplan.solvers import Run
from gangplan.solvers.schedule.plain import plain_milp

LIGHT, HEAVY = MoldableJob("light", (2,), (10.0,)), MoldableJob("heavy", (2,), (1.0,), release=1.0, weight=100.0)
LATE = MoldableJob("late", (1,), (2.0,), release=50.0, value=3.0)
THREE = tuple(MoldableJob(name, (2,), (5.0,)) for name in "xyz")
CASES = {
    # the light job waits for the heavy one: 12 + 100 x 2, not 10 + 100 x 11
    "waiting pays": (ScheduleProblem((LIGHT, HEAVY), Pool(2)), 212.0),
    # 1 GPU for 4 s each side by side, or both on 2 GPUs in turn, 3 and 6 s: 8, not 9
    "degree": (ScheduleProblem(tuple(MoldableJob(x, (1, 2), (4.0, 3.0)) for x in "xy"), Pool(2)), 8.0),
    # three jobs of two GPUs on two nodes of three: one waits, 5 + 5 + 10
    "nodes": (ScheduleProblem(THREE, NodePool(2, 3)), 20.0),
    # the makespan is 52 with the late job, and 10 + 3 without it: its release is no end
    "left out": (ScheduleProblem((LIGHT, LATE), Pool(2), goal="makespan"), 13.0),
    # 10 s of work due at 9
    "none": (ScheduleProblem((MoldableJob("x", (2,), (10.0,), deadline=9.0),), Pool(2)), None),
}


@pytest.mark.parametrize("name", ["milp", "plain_cpsat", "plain_milp"])
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, name: str) -> None:
    """The optimum of the comment is found and proved, or that there is none."""
    problem, best = CASES[case]
    result = solve(problem, time_limit=60, method=name, workers=1)
    assert result.status == ("INFEASIBLE" if best is None else "OPTIMAL")
    assert result.objective == (None if best is None else pytest.approx(best, rel=1e-6))


def test_ticks() -> None:
    """The MILP says that it needs whole ticks, and not too many."""
    jobs = tuple(MoldableJob(x, (1,), (seconds,)) for x, seconds in (("x", 9_000.0), ("y", 9_000.0), ("z", 1.0)))
    with pytest.raises(NotImplementedError, match="ticks"):
        plain_milp(Run(ScheduleProblem(jobs, Pool(1)), time_limit=5))
