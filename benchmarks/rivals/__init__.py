"""Textbook formulations, written as plainly as a good practitioner would: what the package has to beat."""

from __future__ import annotations

from collections.abc import Callable

from gangplan.instances import PartitionProblem
from gangplan.solvers import Run

from .plain_cpsat import plain_cpsat
from .plain_milp import plain_milp

RIVALS: dict[str, Callable[[Run], None]] = {"plain_cpsat": plain_cpsat, "plain_milp": plain_milp}
"""By name. A rival gets the same `Run` as a method: problem, clock, seed, workers; and its plans are verified."""


def solve_by_rival(problem: PartitionProblem, rival: str, *, time_limit: float, seed: int = 0, workers: int = 1) -> Run:
    """Run a rival on `problem` within `time_limit` seconds, model building included, and return its `Run`."""
    run = Run(problem, time_limit=time_limit, seed=seed, workers=workers)
    RIVALS[rival](run)
    return run
