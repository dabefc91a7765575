"""The registry: every method for placement by its name."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from gangplan.instances.lazy import on_demand

from ..method import CPSAT, Method, Suite, plain_methods, without_plan
from ..run import Run
from .bounds import bound, impossible
from .build import build
from .policies import Policy, best_fit, first_fit, least_interference, nearest, topology
from .prepare import INSERTED, PreparedBatch, suits_bounds, suits_cpsat, suits_local_search, suits_patterns
from .quick import quick

if TYPE_CHECKING:
    from . import classic, enumeration, local_search, pattern_bound, patterns, plain
else:
    globals().update(on_demand(__package__, "classic enumeration local_search pattern_bound patterns plain"))

BATCH_POLICIES: dict[str, Policy] = {
    "first_fit": first_fit,
    "best_fit": best_fit,
    "pack": classic.pack,
    "load_balance": classic.load_balance,
    "least_interference": least_interference,
    "dot_prod": classic.dot_prod,
    "gpu_packing": classic.gpu_packing,
    "gpu_clustering": classic.gpu_clustering,
    "fgd": classic.fgd,
    "topology": topology,
    "nearest": nearest,
    "nearest_by_size": classic.nearest_by_size,
    "nearest_to_centre": classic.nearest_to_centre,
}
"""Where to put one gang; each is a method that places the gangs one after the other."""


_LARGE = 100_000
"""Jobs times nodes from which on a first plan is made whatever the time: policies may take more than is left."""
_POLICY, _INSERTION = 20.0, 7.0
"""What a policy takes to place a large batch, and compiled insertion, in terms of the time to prepare it."""


def _prepare(run: Run) -> PreparedBatch:
    """Look at the batch; where nothing better would be done in time, offer a plan at once."""
    began = run.seconds()
    batch = PreparedBatch(run.problem)
    left = run.remaining() / max(1e-9, run.seconds() - began)
    inserts = batch.n_nodes <= INSERTED
    at_once = left < _INSERTION if inserts else left < _POLICY or len(batch.jobs) * batch.n_nodes > _LARGE
    if run.plan is None and at_once:
        quick(run, batch)
    if run.plan is None and (left >= _POLICY or not inserts) and _proved_impossible(run, batch):
        return batch
    if not run.stopped:
        value, by = bound(batch, brief=left < _POLICY)
        if value < inf:  # else there is no plan, which a method has to prove
            run.raise_bound(value, by)
    return batch


def _proved_impossible(run: Run, batch: PreparedBatch) -> bool:
    if (reason := impossible(batch)) is not None:
        run.prove_infeasible("sums", reason)
    return run.infeasible


def _draft(run: Run, batch: PreparedBatch | None) -> None:
    if batch is not None and not _proved_impossible(run, batch):
        quick(run, batch)


def _one_by_one(name: str, policy: Policy) -> Callable[[Run, Any], None]:
    def place_all(run: Run, batch: PreparedBatch) -> None:
        build(run, batch, [policy], name)

    return place_all


def _first(run: Run, batch: PreparedBatch) -> None:
    build(run, batch, (topology, best_fit, least_interference), "cpsat")


METHODS: dict[str, Method] = {
    **{name: Method(_one_by_one(name, policy)) for name, policy in BATCH_POLICIES.items()},
    "local_search": Method(local_search.local_search, suits=suits_local_search, draws=True),
    "bounds": Method(pattern_bound.bounds, suits=suits_bounds),
    "patterns": Method(patterns.patterns, suits=suits_patterns, library=CPSAT),
    "cpsat": Method(plain.cpsat, exact=True, suits=suits_cpsat, library=CPSAT, start=without_plan(_first)),
    **plain_methods(plain, start=without_plan(quick)),
}
SUITE = Suite(METHODS, ("",), _prepare, enumeration.optimum, enumeration.random_problem, _draft)
