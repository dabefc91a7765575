"""The registry: every method for latency by its name."""

from __future__ import annotations

from collections.abc import Callable

from gangplan.instances import LatencyProblem

from ...method import CPSAT, Method, Suite, lazily
from ...run import Run
from ..draft import draft
from .bounds import impossible, path_bound
from .dominate import dominate
from .enumeration import optimum
from .greedy import greedy
from .local_search import local_search
from .random_problem import random_problem
from .reduced import Reduced
from .reduction import reduce


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


def _seeded(method: Callable[[Run, Reduced], None]) -> Callable[[Run, Reduced], None]:
    """Give `method` greedy's plan to start from if there is none: a ceiling scales integers and cuts off trees."""

    def run_seeded(run: Run, r: Reduced) -> None:
        if run.plan is None:
            greedy(run, r)
        if not run.stopped:
            method(run, r)

    return run_seeded


_chain = lazily("ortools", "partition.latency.chain_bound", "chain_bound")
_neighbourhood = lazily("ortools", "partition.latency.neighbourhood", "neighbourhood")
_cpsat = lazily("ortools", "partition.latency.cpsat", "cpsat")
_milp = lazily("pulp", "partition.latency.milp", "milp")
METHODS: dict[str, Method] = {
    "greedy": Method(greedy),
    "chain": Method(_seeded(_chain), library=CPSAT),
    "local_search": Method(_seeded(local_search)),
    "neighbourhood": Method(_seeded(_neighbourhood), library=CPSAT),
    "cpsat": Method(_seeded(_cpsat), exact=True, suits=_at_most(60_000), library=CPSAT),
    "milp": Method(_seeded(_milp), exact=True, suits=_at_most(400_000)),
}
SUITE = Suite(METHODS, ("",), _prepare, optimum, random_problem, draft)
