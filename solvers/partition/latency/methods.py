"""The registry: every method for latency by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gangplan.instances import LatencyProblem

from ...method import CPSAT, Method, Suite, compiled, on_demand, plain_methods
from ...run import Run
from .. import offer_draft
from .bounds import impossible, path_bound
from .dominate import dominate
from .reduced import Reduced, reduce
from .sequence import greedy

if TYPE_CHECKING:
    from . import annealing, chain_bound, cpsat, enumeration, neighbourhood, plain, random_problem
else:
    annealing, chain_bound, cpsat, enumeration, neighbourhood, plain, random_problem = on_demand(
        __package__, "annealing chain_bound cpsat enumeration neighbourhood plain random_problem"
    )


def _prepare(run: Run) -> Reduced:
    problem: LatencyProblem = run.problem
    r = dominate(reduce(problem, lambda: run.stopped), lambda: run.stopped)
    reason = impossible(r)
    if reason is not None:
        run.note(reason)
        run.prove_infeasible()
    else:
        run.raise_bound(path_bound(r), "path")
    return r


def _at_most(literals: int) -> Callable[[Reduced], bool]:
    """Accept problems of so many literals, items and nets times slots: beyond, a minute neither proves nor helps."""

    def suits(r: Reduced) -> bool:
        return (2 * r.n_items + len(r.groups) + len(r.nets)) * len(r.slots) <= literals

    return suits


def _start(run: Run, r: Reduced) -> None:
    """Offer greedy's plan if there is none: a ceiling scales integers and cuts off trees."""
    if run.plan is None:
        greedy(run, r)


METHODS: dict[str, Method] = {
    "greedy": Method(greedy),
    "chain": Method(chain_bound.chain_bound, library=CPSAT, start=_start),
    "local_search": Method(
        annealing.local_search, library="numba", kernels=compiled(annealing.anneal), start=_start, draws=True
    ),
    "neighbourhood": Method(neighbourhood.neighbourhood, library=CPSAT, start=_start),
    "cpsat": Method(cpsat.cpsat, exact=True, suits=_at_most(60_000), library=CPSAT, start=_start),
    **plain_methods(plain, start=_start),
}
SUITE = Suite(METHODS, ("",), _prepare, lambda: (enumeration.optimum, random_problem.random_problem), offer_draft)
