"""The recurrence on some ideals or on all: first as if memory were ample, then, if that plan does not fit, with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances import verify

from ...run import Run
from ..throughput.lattice import all_ideals, linear_extension, prefixes
from .build import plan_of
from .family import Family
from .recurrence import Level, effort
from .reduced import Reduced, Units

_NUMBERS_A_SECOND = 1e8
"""How many numbers the recurrence looks at, cautiously."""
_NUMBERS_HELD = 2.5e8
"""What its tables may take."""
_IDEALS = 20_000
_ORDERS = 4
"""Linear extensions that the heuristic mixes."""

Families = Callable[[Run, Units], Family | None]


def chain(run: Run, reduced: Reduced) -> None:
    """Offer the best plan along a few linear extensions: PipeDream's programme where the graph is nearly a chain."""
    _search(run, reduced, _some, "chain", exact=False)


def ideals(run: Run, reduced: Reduced) -> None:
    """Solve exactly if the order has few enough ideals for the time and memory there is."""
    _search(run, reduced, _all, "ideals", exact=True)


def _search(run: Run, reduced: Reduced, families: Families, by: str, *, exact: bool) -> None:
    problem = reduced.problem
    binds = problem.training and np.isfinite(reduced.capacity) and problem.memory_model != "none"
    for units, tracked in ((reduced.lean, False), *(((reduced.units, True),) if binds else ())):
        with run.phase("list"):
            family = families(run, units)
        if run.stopped or family is None:
            return
        if not _affordable(run, family, tracked):
            run.note(f"{by}: too little time or space for {len(family)} ideals{' with memory' if tracked else ''}")
            return
        try:
            with run.phase("recurrence"):
                level = Level(family, len(problem.members()) - 1, tracked, lambda: run.stopped)
                value, steps = level.trace_top(level.top())
        except TimeoutError:
            return
        if not steps:
            # without a plan where less is asked there is none where more is
            if exact:
                run.prove_infeasible()
            return
        plan = plan_of(level, steps)
        fits = verify(problem, plan).ok
        if fits:
            run.offer(plan, by)
        if exact:
            run.raise_bound(value, by)
        if fits:
            return


def _some(run: Run, units: Units) -> Family | None:
    order, rng = units.order, np.random.default_rng(run.seed)
    found = dict.fromkeys(prefixes(linear_extension(order)))
    for _ in range(_ORDERS - 1):
        found |= dict.fromkeys(prefixes(linear_extension(order, rng)))
    family = Family(units, list(found))
    if _affordable(run, family, len(units.problem.members()) > 1):
        return family
    return Family(units, list(prefixes(linear_extension(order))))


def _all(run: Run, units: Units) -> Family | None:
    found = all_ideals(units.order, _IDEALS, lambda: run.stopped)
    if found is None and not run.stopped:
        run.note(f"more than {_IDEALS} ideals: the best plan along some chains of them, with no proof")
    return None if found is None else Family(units, found)


def _affordable(run: Run, family: Family, tracked: bool) -> bool:
    nested = len(family.problem.members()) > 1
    tables = sum(m * (m if tracked else 1) for m in family.problem.members()[:-1]) * 2
    held = len(family) * (len(family) * tables if nested else 1000)
    return held < _NUMBERS_HELD and effort(family, tracked) < _NUMBERS_A_SECOND * run.remaining()
