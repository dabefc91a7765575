"""Where the clock of a schedule problem starts, which means nothing, and what a goal owes to it."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..schedule import ScheduleProblem


def first_release(problem: ScheduleProblem) -> float:
    """Return the seconds by which all times of `problem` can be moved, so that the first release is at 0.

    It is 0 if goals would then not differ by the same amount for all plans: where all jobs may be left out, the
    makespan of none is 0 on any clock; and where the horizon is before the first release, nobody is done in time.
    """
    zero = min(job.release for job in problem.jobs)
    late = problem.horizon is not None and problem.horizon < zero
    optional = problem.goal == "makespan" and all(problem.price(j) is not None for j in range(len(problem.jobs)))
    return 0.0 if late or optional else zero


def clock_cost(problem: Any) -> float:
    """Return what any plan costs at least because the clock does not start at the first release.

    Gaps are shares of what an objective is above that: at Unix times any plan is within a millionth of any other. A job
    pays its weight for each second before the first release, or its value if that is less. It is 0 of all that is no
    schedule problem.
    """
    if problem.objective != "schedule" or problem.goal not in ("makespan", "weighted_completion"):
        return 0.0
    zero = first_release(problem)
    if problem.goal == "makespan" or not zero:
        return zero
    paid = ((job.weight * zero, job.value) for job in problem.jobs)
    return fsum(waits if value is None else min(waits, value) for waits, value in paid)
