"""The library's plain models as rivals, by solver: entry points of the group ``gangplan_bench``.

They start from nothing, and MILPs have the solvers' defaults but for the gap, so that proofs are as fine as gangplan's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.solvers import Run
from gangplan.solvers.highs import Answer, answer, bounded
from gangplan.solvers.method import suite
from gangplan.solvers.plain import PlainRows, Values

GAP = 1e-7
"""Relative gap at which solvers stop."""


def cpsat(run: Run) -> None:
    """Minimise by CP-SAT."""
    textbook(run, "plain_cpsat")(run)


def highs(run: Run) -> None:
    """Minimise by HiGHS."""
    textbook(run, "plain_milp")(run, minimise=_by_highs)


def textbook(run: Run, name: str) -> Callable[..., None]:
    """Return a method of the problem's objective."""
    return suite(run.problem.objective).methods[name].function


def _by_highs(rows: PlainRows, plan: Callable[[Values], Any]) -> None:
    if not rows.run.stopped:
        conclude(rows, plan, answer(rows, mip_rel_gap=GAP), "plain-highs")


def conclude(rows: PlainRows, plan: Callable[[Values], Any], found: Answer, by: str) -> None:
    """Offer the plan and the bound of a solver's answer."""
    if bounded(rows, plan, found, by):
        rows.run.raise_bound(found[1] * rows.unit, by)
