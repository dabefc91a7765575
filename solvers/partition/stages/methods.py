"""The registry: every method for stages by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method import Method, Suite, on_demand
from ...run import Run
from .. import offer_draft
from .reduced import Reduced
from .search import chain, ideals

if TYPE_CHECKING:
    from . import referee
else:
    (referee,) = on_demand(__package__, "referee")


def _prepare(run: Run) -> Reduced:
    reduced = Reduced(run.problem, lambda: run.stopped)
    reason = reduced.impossible()
    if reason is not None:
        run.note(reason)
        run.prove_infeasible()
    else:
        run.raise_bound(reduced.work_bound(), "work")
    return reduced


METHODS: dict[str, Method] = {
    "chain": Method(chain),
    "ideals": Method(ideals, exact=True),
}
SUITE = Suite(METHODS, ("",), _prepare, lambda: (referee.optimum, referee.random_problem), offer_draft)
