"""The library's plain models by CBC, as PuLP has it: an entry point of the group ``gangplan_bench``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pulp

from gangplan.instances.intake import read_text
from gangplan.solvers import Run
from gangplan.solvers.plain import PlainRows, Values

from .plain import GAP, conclude, textbook

_LOWER = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)


def solve(run: Run) -> None:
    """Minimise by CBC."""
    textbook(run, "plain_milp")(run, minimise=_minimise)


def _minimise(rows: PlainRows, plan: Callable[[Values], Any]) -> None:
    """Minimise in a process of its own; only its log has the bound of a solve cut short."""
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
        solver = pulp.PULP_CBC_CMD(msg=False, gapRel=GAP, **limits)
        solver.tmpDir = folder
        lp.solve(solver)
        lower = _LOWER.search(read_text(log, empty=True))
    proved = lp.sol_status == pulp.LpSolutionOptimal
    bound = float(pulp.value(lp.objective) or 0.0) if proved else float(lower[1]) if lower else float("-inf")
    none = lp.status == pulp.LpStatusInfeasible and lp.sol_status == pulp.LpSolutionInfeasible
    solved = proved or lp.sol_status == pulp.LpSolutionIntegerFeasible
    values = [float(y.lowBound if y.varValue is None else y.varValue) for y in x] if solved else []
    conclude(rows, plan, (none, bound, values), "plain-cbc")
