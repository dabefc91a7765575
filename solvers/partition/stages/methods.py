"""The registry: every method for stages by its name."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from gangplan.instances.lazy import on_demand
from gangplan.instances.verify import TOLERANCE

from ...method import Method, Suite, plain_methods, without_plan
from ...run import Run
from .. import offer_draft
from .reduced import ReducedStages
from .search import along, chain, ideals
from .under_way import under_way_bound

if TYPE_CHECKING:
    from . import plain, referee
else:
    globals().update(on_demand(__package__, "plain referee"))


def _prepare(run: Run) -> ReducedStages:
    reduced = ReducedStages(run.problem, lambda: run.stopped)
    if (reason := reduced.impossible()) is not None:
        run.prove_infeasible("sums", reason)
    else:
        run.raise_bound(reduced.work_bound(), "work")
        bound = under_way_bound(reduced.units, reduced.work_bound(), lambda: run.stopped)
        if bound == inf:
            why = "memory: too little for what is under way, however ops are cut into stages"
            run.prove_infeasible("under way", why)
        else:
            run.raise_bound(bound * (1 - TOLERANCE), "under way")
    return reduced


METHODS: dict[str, Method] = {
    "chain": Method(chain),
    "ideals": Method(ideals, exact=True),
    **plain_methods(plain, start=without_plan(along)),
}
SUITE = Suite(METHODS, ("",), _prepare, referee.optimum, referee.random_problem, offer_draft)
