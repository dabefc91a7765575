"""The registry: every method for latency by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gangplan.instances import LatencyProblem
from gangplan.instances.lazy import on_demand

from ...method import CPSAT, Method, Suite, plain_methods, without_plan
from ...run import Run
from .. import offer_draft
from .bounds import impossible, path_bound
from .contract import contract
from .dominate import dominate
from .reduced import ReducedLatency, reduce
from .sequence import greedy

if TYPE_CHECKING:
    from .. import referee, tiny
    from . import annealing, chain_bound, exact, plain, series_bound
else:
    globals().update(on_demand(__package__, "annealing chain_bound exact plain series_bound"))
    globals().update(on_demand("gangplan.solvers.partition", "referee tiny"))


def _prepare(run: Run) -> ReducedLatency:
    problem: LatencyProblem = run.problem
    r = contract(reduce(problem, lambda: run.stopped), lambda: run.stopped)
    r = dominate(r, lambda: run.stopped)
    if (reason := impossible(r)) is not None:
        run.prove_infeasible("sums", reason)
    else:
        run.raise_bound(path_bound(r), "path")
    return r


def _suits_cpsat(r: ReducedLatency) -> bool:
    return (2 * r.n_items + len(r.groups) + len(r.nets)) * len(r.slots) <= 60_000


_start = without_plan(greedy)
METHODS: dict[str, Method] = {
    "greedy": Method(greedy),
    "series": Method(series_bound.series_bound, start=_start),
    "chain": Method(chain_bound.chain_bound, library=CPSAT, start=_start),
    "local_search": Method(annealing.local_search, start=_start, draws=True),
    "cpsat": Method(exact.cpsat, exact=True, suits=_suits_cpsat, library=CPSAT, start=_start),
    **plain_methods(plain, start=_start),
}
SUITE = Suite(METHODS, ("",), _prepare, referee.optimum, tiny.random_latency, offer_draft)
