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
from gangplan.solvers.highs import Answer, answer, bounded
from gangplan.solvers.method import suite
from gangplan.solvers.plain import Rows, Values

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


def _by_highs(rows: Rows, plan: Callable[[Values], Any]) -> None:
    if not rows.run.stopped:
        _conclude(rows, plan, answer(rows, mip_rel_gap=_GAP), "plain-highs")


def _by_cbc(rows: Rows, plan: Callable[[Values], Any]) -> None:
    """Minimise by CBC in a process of its own, as PuLP has it; only its log has the bound of a solve cut short."""
    run, lp = rows.run, pulp.LpProblem("plain", pulp.LpMinimize)
    if run.stopped:
        return
    kinds = ("Integer" if column.whole else "Continuous" for column in rows.columns)
    x = [pulp.LpVariable(y.label, y.low, y.high, kind) for y, kind in zip(rows.columns, kinds, strict=True)]
    lp.setObjective(pulp.lpSum(a * x[j] for j, a in rows.goal.terms.items()))
    for _, terms, least, most, *_ in rows.lines:
        line = pulp.LpAffineExpression([(x[j], a) for j, a in terms.items()])
        lp += line == most if least == most else line >= least if most is None else line <= most
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
    none = lp.status == pulp.LpStatusInfeasible and lp.sol_status == pulp.LpSolutionInfeasible
    solved = proved or lp.sol_status == pulp.LpSolutionIntegerFeasible
    values = [float(y.lowBound if y.varValue is None else y.varValue) for y in x] if solved else []
    _conclude(rows, plan, (none, bound, values), "plain-cbc")


def _conclude(rows: Rows, plan: Callable[[Values], Any], found: Answer, by: str) -> None:
    if bounded(rows, plan, found, by):
        rows.run.raise_bound(found[1] * rows.unit, by)
