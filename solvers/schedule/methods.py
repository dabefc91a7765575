"""The registry: every method for schedules by its name."""

from __future__ import annotations

import numpy as np

from ..method import Method, Suite, lazily
from ..run import Run
from .bounds import bound
from .enumeration import optimum
from .grain import rounded_up
from .prepare import Prepared, prepare
from .random_problem import random_problem


def _prepare(run: Run) -> Prepared:
    p = prepare(run.problem)
    stuck = [j for j in range(p.n) if not len(p.options(j)) and not np.isfinite(p.price[j])]
    if stuck:
        job = run.problem.jobs[stuck[0]]
        run.note(f"job {job.name} must run, and with none of its degrees it fits and is in time")
        run.prove_infeasible()
        return p
    value, name = bound(p)
    run.raise_bound(rounded_up(p, value * (1 - 1e-12)), name)
    return p


def _suits_priced(p: Prepared) -> bool:
    return p.n <= 2000 and not p.makespan


METHODS: dict[str, Method] = {
    "lists": Method(lazily("numba", "schedule.lists", "lists")),
    "local_search": Method(lazily("numba", "schedule.local_search", "local_search")),
    "lp": Method(lazily("highspy", "schedule.priced", "lp"), suits=_suits_priced),
    "starts": Method(lazily("highspy", "schedule.priced", "starts"), suits=_suits_priced),
    "cpsat": Method(lazily("ortools", "schedule.cpsat", "cpsat"), exact=True),
}
SUITE = Suite(METHODS, ("",), _prepare, optimum, random_problem)
