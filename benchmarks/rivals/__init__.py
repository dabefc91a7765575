"""Textbook formulations, written as plainly as a good practitioner would: what the package has to beat."""

from __future__ import annotations

from collections.abc import Callable

from gangplan.instances import GraphProblem
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers import Run

from .latency_cpsat import latency_cpsat
from .latency_milp import latency_milp
from .placement_cpsat import placement_cpsat
from .placement_milp import placement_milp
from .stages_dp import stages_dp
from .step_cpsat import step_cpsat
from .step_milp import step_milp
from .throughput_cpsat import throughput_cpsat
from .throughput_milp import throughput_milp

RIVALS: dict[str, dict[str, Callable[[Run], None]]] = {
    "plain_cpsat": {
        "throughput": throughput_cpsat,
        "latency": latency_cpsat,
        "step": step_cpsat,
        "placement": placement_cpsat,
    },
    "plain_milp": {
        "throughput": throughput_milp,
        "latency": latency_milp,
        "step": step_milp,
        "placement": placement_milp,
    },
    "plain_dp": {"stages": stages_dp},
}
"""By name and objective. A rival gets the same `Run` as a method: problem, clock, seed, workers; and its plans are
verified."""


def solve_by_rival(
    problem: GraphProblem | PlacementProblem, rival: str, *, time_limit: float, seed: int = 0, workers: int = 1
) -> Run:
    """Run a rival on `problem` within `time_limit` seconds, model building included, and return its `Run`."""
    run = Run(problem, time_limit=time_limit, seed=seed, workers=workers)
    RIVALS[rival][problem.objective](run)
    return run


def plain_cpsat(run: Run) -> None:
    """Run the plain CP-SAT model: ``gangplan bench run --plugin benchmarks.rivals:plain_cpsat``."""
    RIVALS["plain_cpsat"][run.problem.objective](run)


def plain_milp(run: Run) -> None:
    """Run the plain MILP, see `plain_cpsat`."""
    RIVALS["plain_milp"][run.problem.objective](run)
