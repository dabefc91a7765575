"""The registry: every method for latency by its name."""

from __future__ import annotations

from collections.abc import Callable

from gangplan.instances import LatencyProblem

from ...method import CPSAT, Method, Referee, Suite
from ...run import Run
from .. import offer_draft
from .bounds import impossible, path_bound
from .dominate import dominate
from .local_search import local_search
from .reduced import Reduced, reduce
from .sequence import greedy


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


def _chain(run: Run, r: Reduced) -> None:
    from .chain_bound import chain_bound

    chain_bound(run, r)


def _neighbourhood(run: Run, r: Reduced) -> None:
    from .neighbourhood import neighbourhood

    neighbourhood(run, r)


def _cpsat(run: Run, r: Reduced) -> None:
    from .cpsat import cpsat

    cpsat(run, r)


def _referee() -> Referee:
    from .enumeration import optimum
    from .random_problem import random_problem

    return optimum, random_problem


METHODS: dict[str, Method] = {
    "greedy": Method(greedy),
    "chain": Method(_chain, library=CPSAT, start=_start),
    "local_search": Method(local_search, start=_start),
    "neighbourhood": Method(_neighbourhood, library=CPSAT, start=_start),
    "cpsat": Method(_cpsat, exact=True, suits=_at_most(60_000), library=CPSAT, start=_start),
}
SUITE = Suite(METHODS, ("",), _prepare, _referee, offer_draft)
