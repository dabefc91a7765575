"""The registry: every method for stages by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method import Method, Suite, on_demand, plain_methods
from ...run import Run
from .. import offer_draft
from .reduced import Reduced
from .search import along, chain, ideals

if TYPE_CHECKING:
    from . import enumeration, plain, random_problem
else:
    enumeration, plain, random_problem = on_demand(__package__, "enumeration plain random_problem")


def _prepare(run: Run) -> Reduced:
    reduced = Reduced(run.problem, lambda: run.stopped)
    reason = reduced.impossible()
    if reason is not None:
        run.note(reason)
        run.prove_infeasible()
    else:
        run.raise_bound(reduced.work_bound(), "work")
    return reduced


def _start(run: Run, reduced: Reduced) -> None:
    """Offer a plan along one linear extension if there is none."""
    if run.plan is None:
        along(run, reduced)


METHODS: dict[str, Method] = {
    "chain": Method(chain),
    "ideals": Method(ideals, exact=True),
    **plain_methods(plain, start=_start),
}
SUITE = Suite(METHODS, ("",), _prepare, lambda: (enumeration.optimum, random_problem.random_problem), offer_draft)
