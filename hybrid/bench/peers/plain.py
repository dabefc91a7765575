"""The plain models by solver: entry points of the group ``gangplan_bench``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.solvers import Run

from .engines import Solve, by_cbc, by_highs
from .latency_cpsat import latency_cpsat
from .latency_milp import latency_milp
from .placement_cpsat import placement_cpsat
from .placement_milp import placement_milp
from .schedule import schedule_cpsat, schedule_milp
from .step_cpsat import step_cpsat
from .step_milp import step_milp
from .throughput_cpsat import throughput_cpsat
from .throughput_milp import throughput_milp

CPSAT: Mapping[str, Callable[[Run], None]] = {
    "throughput": throughput_cpsat,
    "latency": latency_cpsat,
    "step": step_cpsat,
    "placement": placement_cpsat,
    "schedule": schedule_cpsat,
}
MILP: Mapping[str, Callable[[Run, Solve], None]] = {
    "throughput": throughput_milp,
    "latency": latency_milp,
    "step": step_milp,
    "placement": placement_milp,
    "schedule": schedule_milp,
}


def cpsat(run: Run) -> None:
    """Minimise by CP-SAT."""
    _model(CPSAT, run)(run)


def highs(run: Run) -> None:
    """Minimise by HiGHS."""
    _model(MILP, run)(run, by_highs)


def cbc(run: Run) -> None:
    """Minimise by CBC."""
    _model(MILP, run)(run, by_cbc)


def _model(models: Mapping[str, Any], run: Run) -> Any:
    if run.problem.objective not in models:
        raise NotImplementedError(f"there is no plain model of {run.problem.objective}")
    return models[run.problem.objective]
