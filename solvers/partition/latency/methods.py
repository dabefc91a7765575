"""The registry: every method for latency by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.instances import LatencyProblem
from gangplan.instances.lazy import on_demand

from ...method import CPSAT, Method, Referee, Suite, plain_methods
from ...run import Run
from .. import offer_draft
from .bounds import impossible, path_bound
from .contract import contract
from .dominate import dominate
from .reduced import Reduced, reduce
from .sequence import greedy


def _prepare(run: Run) -> Reduced:
    problem: LatencyProblem = run.problem
    r = contract(reduce(problem, lambda: run.stopped), lambda: run.stopped)
    r = dominate(r, lambda: run.stopped)
    reason = impossible(r)
    if reason is not None:
        run.note(reason)
        run.prove_infeasible("sums")
    else:
        run.raise_bound(path_bound(r), "path")
    return r


def _at_most(literals: int) -> Callable[[Reduced], bool]:
    def suits(r: Reduced) -> bool:
        return (2 * r.n_items + len(r.groups) + len(r.nets)) * len(r.slots) <= literals

    return suits


def _start(run: Run, r: Reduced) -> None:
    if run.plan is None:
        greedy(run, r)


def _chain(run: Run, r: Reduced) -> None:
    from .chain_bound import chain_bound

    chain_bound(run, r)


def _series(run: Run, r: Reduced) -> None:
    from .series_bound import series_bound

    series_bound(run, r)


def _local_search(run: Run, r: Reduced) -> None:
    from .annealing import local_search

    local_search(run, r)


def _kernels() -> tuple[Any, ...]:
    from .annealing import anneal

    return (anneal,)


def _cpsat(run: Run, r: Reduced) -> None:
    from .cpsat import cpsat

    cpsat(run, r)


def _referee() -> Referee:
    from . import referee

    return referee.optimum, referee.random_problem


METHODS: dict[str, Method] = {
    "greedy": Method(greedy),
    "series": Method(_series, start=_start),
    "chain": Method(_chain, library=CPSAT, start=_start),
    "local_search": Method(_local_search, library="numba", kernels=_kernels, start=_start, draws=True),
    "cpsat": Method(_cpsat, exact=True, suits=_at_most(60_000), library=CPSAT, start=_start),
    **plain_methods(on_demand(__package__, "plain")[0], start=_start),
}
SUITE = Suite(METHODS, ("",), _prepare, _referee, offer_draft)
