"""Attack the statuses and bounds of `solve` that no certificate is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

import gangplan
from gangplan.solvers.run import OPTIMAL_GAP

CLOSE = 2e-8
"""Share of an objective that a bound in floats may be above it: each of a few starts may be 1e-9 early."""


def _clock(problem: Any) -> float:
    """Return the largest cost of a second of the clock on which jobs come: places of it are as good as others."""
    if problem.objective != "schedule":
        return 0.0
    return max(job.release * (1 if problem.goal in ("mean_jct", "makespan") else job.weight) for job in problem.jobs)


def statuses(
    problem: Any, optimum: float | None, method: str, seconds: float = 2.0, certify: bool = False
) -> list[str]:
    """Return what a solve says that enumeration contradicts."""
    result = gangplan.solve(problem, time_limit=seconds, method=method, workers=1, certify=certify)
    faults, zero = [], result.zero
    if result.status == "INFEASIBLE" and optimum is not None:
        faults.append(f"INFEASIBLE, a plan has {optimum!r}")
    if optimum is None:
        return faults + ([f"a plan of {result.objective!r} where none is"] if result.plan is not None else [])
    room = CLOSE * abs(optimum - zero) + 16 * float(np.spacing(_clock(problem)))
    if result.objective is not None and result.objective < optimum - room:
        faults.append(f"a plan of {result.objective!r}, enumeration has {optimum!r}")
    strict = problem.objective == "schedule"  # its bounds leave what the verifier lets pass
    if result.bound is not None and result.bound > optimum + room * (not strict):
        faults.append(f"bound {result.bound!r} by {result.bound_by}, a plan has {optimum!r}")
    if result.status == "OPTIMAL" and result.objective > optimum + room + OPTIMAL_GAP * abs(result.objective - zero):
        faults.append(f"OPTIMAL at {result.objective!r}, a plan has {optimum!r}")
    return faults
