"""The registry: every method for schedules by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..method import CPSAT, Method, Suite, lazily
from ..result import OPTIMAL_GAP
from ..run import Run
from .bounds import bound
from .door import Door, from_first_release
from .enumeration import optimum
from .first import BY, first_come
from .grain import rounded_up
from .prepare import Prepared, prepare
from .random_problem import random_problem
from .sizes import suits_cpsat, suits_milp_events, suits_milp_time, suits_prices


def _prepare(run: Run) -> Prepared:
    p = prepare(run.problem)
    stuck = np.flatnonzero((np.diff(p.first) == 0) & ~np.isfinite(p.price))
    if len(stuck):
        job = run.problem.jobs[stuck[0]]
        run.note(f"job {job.name} must run, and with none of its degrees it fits and is in time")
        run.prove_infeasible()
        return p
    if run.plan is None and run.deadline > run.started and (found := first_come(p)) is not None:
        run.offer(p.plan(*found), BY)  # however little time there is, there is a plan
    value, name = bound(p)
    if p.blur > OPTIMAL_GAP * value:
        run.note(f"starts are rounded on a clock of such numbers: bounds leave {p.blur:.2g} for it")
    Door(run, p).raise_bound(rounded_up(p, value * (1 - 1e-12)), name)
    return p


def _seeded(method: Callable[[Run, Prepared], None]) -> Callable[[Run, Prepared], None]:
    """Give `method` a plan to start from if there is none."""

    def run_seeded(run: Run, p: Prepared) -> None:
        begins = run.plan is None or run.trace[-1].by == BY
        if begins and not run.stopped and run.compiled(*_SERIAL):
            _lists(run, p)
        if not run.stopped:
            method(run, p)

    return run_seeded


_lists = lazily("numba", "schedule.lists", "lists")
_cpsat = lazily("ortools", "schedule.cpsat", "cpsat")
_milp_time = lazily("pulp", "schedule.milp_time", "milp_time")
_milp_events = lazily("pulp", "schedule.milp_events", "milp_events")
_SERIAL = ("solvers.schedule.decode:serial",)
_ANNEAL = (*_SERIAL, "solvers.schedule.local_search:_anneal")
_PRICES = (*_SERIAL, *(f"solvers.schedule.prices:{name}" for name in ("cheapest", "busy")))
_STARTS = (*_PRICES, *(f"solvers.schedule.starts:{name}" for name in ("at_least", "extend", "dominated")))
METHODS: dict[str, Method] = {
    "lists": Method(_lists, compiled=_SERIAL),
    "local_search": Method(lazily("numba", "schedule.local_search", "local_search"), library="numba", compiled=_ANNEAL),
    "lp": Method(_seeded(lazily("highspy", "schedule.priced", "lp")), suits=suits_prices, compiled=_PRICES),
    "starts": Method(
        _seeded(lazily("highspy", "schedule.priced", "starts")),
        suits=suits_prices,
        library="highspy",
        compiled=_STARTS,
    ),
    "rolling": Method(_seeded(lazily("highspy", "schedule.rolling", "rolling")), compiled=(*_STARTS, _ANNEAL[-1])),
    "milp_time": Method(_seeded(_milp_time), exact=True, suits=suits_milp_time),
    "milp_events": Method(_seeded(_milp_events), exact=True, suits=suits_milp_events),
    "cpsat": Method(_seeded(_cpsat), exact=True, suits=suits_cpsat, library=CPSAT),
}
METHODS = {name: replace(method, run=from_first_release(method.run)) for name, method in METHODS.items()}
SUITE = Suite(METHODS, ("",), _prepare, optimum, random_problem)
