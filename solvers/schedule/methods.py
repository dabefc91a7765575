"""The registry: every method for schedules by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..method import CPSAT, Method, Referee, Suite
from ..run import OPTIMAL_GAP, Run
from .bounds import bound
from .first_come import BY, first_come
from .grain import rounded_up, suits_cpsat, suits_milp_events, suits_milp_time, suits_prices
from .prepare import Prepared, ShiftedRun, prepare


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
    ShiftedRun(run, p).raise_bound(rounded_up(p, value * (1 - 1e-12)), name)
    return p


def _start(run: Run, p: Prepared) -> None:
    """Offer list schedules if there is no plan yet but the one in which who comes first runs first."""
    begins = run.plan is None or run.trace[-1].by == BY
    if begins and not run.stopped and run.compiled(_serial, "lists"):
        _lists(run, p)


def _lists(run: Run, p: Prepared) -> None:
    from .decode import lists

    lists(run, p)


def _local_search(run: Run, p: Prepared) -> None:
    from .local_search import local_search

    local_search(run, p)


def _lp(run: Run, p: Prepared) -> None:
    from .starts import lp

    lp(run, p)


def _starts(run: Run, p: Prepared) -> None:
    from .starts import starts

    starts(run, p)


def _rolling(run: Run, p: Prepared) -> None:
    from .rolling import rolling

    rolling(run, p)


def _milp_time(run: Run, p: Prepared) -> None:
    from .milp import milp_time

    milp_time(run, p)


def _milp_events(run: Run, p: Prepared) -> None:
    from .milp import milp_events

    milp_events(run, p)


def _cpsat(run: Run, p: Prepared) -> None:
    from .cpsat import cpsat

    cpsat(run, p)


def _serial() -> tuple[Any, ...]:
    from .decode import serial

    return (serial,)


def _annealing() -> tuple[Any, ...]:
    from .local_search import _anneal

    return (*_serial(), _anneal)


def _pricing() -> tuple[Any, ...]:
    from .prices import busy, cheapest

    return (*_serial(), cheapest, busy)


def _searching() -> tuple[Any, ...]:
    from .labels import at_least, dominated, extend

    return (*_pricing(), at_least, extend, dominated)


def _referee() -> Referee:
    from .enumeration import optimum, random_problem

    return optimum, random_problem


def _shifted(method: Callable[[Run, Prepared], None]) -> Callable[[Run, Prepared], None]:
    """Return `method` on a run whose plan, objective and bound are those of the prepared problem."""
    return lambda run, p: method(ShiftedRun(run, p), p)


_SEARCHES: dict[str, Method] = {
    "lists": Method(_lists, library="numba", kernels=_serial),
    "local_search": Method(_local_search, library="numba", kernels=_annealing),
    "lp": Method(_lp, suits=suits_prices, library="highspy", kernels=_pricing, start=_start),
    "starts": Method(_starts, suits=suits_prices, library="highspy", kernels=_searching, start=_start),
    "rolling": Method(_rolling, library="highspy", kernels=lambda: (*_searching(), _annealing()[-1]), start=_start),
    "milp_time": Method(_milp_time, exact=True, suits=suits_milp_time, library="pulp", start=_start),
    "milp_events": Method(_milp_events, exact=True, suits=suits_milp_events, library="pulp", start=_start),
    "cpsat": Method(_cpsat, exact=True, suits=suits_cpsat, library=CPSAT, start=_start),
}
METHODS: dict[str, Method] = {
    name: replace(
        method,
        function=_shifted(method.function),
        start=method.start and _shifted(method.start),
    )
    for name, method in _SEARCHES.items()
}
SUITE = Suite(METHODS, ("",), _prepare, _referee)
