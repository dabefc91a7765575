"""The registry: every method for placement by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..method import CPSAT, Method, Referee, Suite
from ..run import Run
from .bounds import bound
from .build import build
from .impossible import impossible
from .policies import (
    Policy,
    best_fit,
    first_fit,
    least_interference,
    load_balance,
    nearest,
    nearest_by_size,
    nearest_to_centre,
    pack,
    topology,
)
from .prepare import Batch, suits_cpsat, suits_local_search, suits_patterns
from .quick import quick
from .scored import dot_prod, fgd, gpu_clustering, gpu_packing

POLICIES: dict[str, Policy] = {
    "first_fit": first_fit,
    "best_fit": best_fit,
    "pack": pack,
    "load_balance": load_balance,
    "least_interference": least_interference,
    "dot_prod": dot_prod,
    "gpu_packing": gpu_packing,
    "gpu_clustering": gpu_clustering,
    "fgd": fgd,
    "topology": topology,
    "nearest": nearest,
    "nearest_by_size": nearest_by_size,
    "nearest_to_centre": nearest_to_centre,
}
"""Where to put one gang; each is a method that places the gangs one after the other."""


_POLICY = 20.0
"""What a policy takes to place a large batch, in terms of the time to prepare it."""
_BOUND = 0.2
"""Of the time left that the bound may take."""


def _prepare(run: Run) -> Batch:
    """Look at the batch; where no policy would be done in time, offer a plan at once."""
    began = run.seconds()
    batch = Batch(run.problem)
    reason = impossible(batch)
    if reason is not None:
        run.note(reason)
        run.prove_infeasible()
        return batch
    if run.plan is None and run.remaining() < _POLICY * (run.seconds() - began):
        quick(run, batch)
    if not run.stopped:
        until = (1 - _BOUND) * run.remaining()
        run.raise_bound(*bound(batch, lambda: run.remaining() < until))
    return batch


def _one_by_one(name: str, policy: Policy) -> Callable[[Run, Any], None]:
    def place_all(run: Run, batch: Batch) -> None:
        build(run, batch, [policy], name)

    return place_all


def _local_search(run: Run, batch: Batch) -> None:
    from .local_search import local_search

    local_search(run, batch)


def _search() -> tuple[Any, ...]:
    from .ruin_recreate.search import search

    return (search,)


def _lns(run: Run, batch: Batch) -> None:
    from .lns import lns

    lns(run, batch)


def _patterns(run: Run, batch: Batch) -> None:
    from .patterns import patterns

    patterns(run, batch)


def _pricing() -> tuple[Any, ...]:
    from .pricing import _search

    return (_search,)


def _cpsat(run: Run, batch: Batch) -> None:
    from .cpsat import cpsat

    cpsat(run, batch)


def _referee() -> Referee:
    from .enumeration import optimum
    from .random_problem import random_problem

    return optimum, random_problem


METHODS: dict[str, Method] = {
    **{name: Method(_one_by_one(name, policy)) for name, policy in POLICIES.items()},
    "local_search": Method(_local_search, suits=suits_local_search, library="numba", kernels=_search),
    "lns": Method(_lns, library=CPSAT),
    "patterns": Method(_patterns, suits=suits_patterns, library=CPSAT, kernels=_pricing),
    "cpsat": Method(_cpsat, exact=True, suits=suits_cpsat, library=CPSAT),
}
SUITE = Suite(METHODS, ("",), _prepare, _referee)
