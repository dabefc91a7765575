"""The library's plain models as rivals, by solver: entry points of the group ``gangplan_bench``.

They start from nothing, and MILPs have the solvers' defaults but for the gap, so that proofs are as fine as gangplan's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pulp

from gangplan.instances.intake import read_text
from gangplan.solvers import Run
from gangplan.solvers import highs as _silent  # noqa: F401
from gangplan.solvers.method import suite
from gangplan.solvers.pulp_solvers import conclude

_GAP = 1e-7
"""Relative gap at which solvers stop."""
_LOWER = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)


def cpsat(run: Run) -> None:
    """Minimise by CP-SAT."""
    _function(run, "plain_cpsat")(run)


def highs(run: Run) -> None:
    """Minimise by HiGHS."""
    _function(run, "plain_milp")(run, minimise=_by_highs)


def cbc(run: Run) -> None:
    """Minimise by CBC."""
    _function(run, "plain_milp")(run, minimise=_by_cbc)


def _function(run: Run, name: str) -> Callable[..., None]:
    return suite(run.problem.objective).methods[name].function


def _by_highs(run: Run, lp: Any, unit: float, plan: Callable[[], Any]) -> None:
    if run.stopped:
        return
    limits = {"timeLimit": run.remaining(), "threads": run.workers, "random_seed": run.seed}
    lp.solve(pulp.HiGHS(msg=False, gapRel=_GAP, **limits))
    if conclude(run, lp, plan, "plain-highs"):
        run.raise_bound(float(lp.solverModel.getInfo().mip_dual_bound) * unit, "plain-highs")


def _by_cbc(run: Run, lp: Any, unit: float, plan: Callable[[], Any]) -> None:
    """Minimise by CBC in a process of its own, as PuLP has it; only its log has the bound of a solve cut short."""
    if run.stopped:
        return
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        options = [f"randomCbcSeed {run.seed}"]
        limits = {"timeLimit": run.remaining(), "threads": run.workers, "logPath": str(log), "options": options}
        solver = pulp.PULP_CBC_CMD(msg=False, gapRel=_GAP, **limits)
        solver.tmpDir = folder
        lp.solve(solver)
        lower = _LOWER.search(read_text(log, empty=True))
    proved = lp.sol_status == pulp.LpSolutionOptimal
    bound = float(pulp.value(lp.objective) or 0.0) if proved else float(lower[1]) if lower else float("-inf")
    if conclude(run, lp, plan, "plain-cbc"):
        run.raise_bound(bound * unit, "plain-cbc")
