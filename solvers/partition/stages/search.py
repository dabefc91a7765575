"""The recurrence on some ideals or on all: first as if memory were ample, then, if that plan does not fit, with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gangplan.instances import verify

from ...run import Run
from ..throughput.ideals import all_ideals
from .family import IdealStates, mixed, thinned
from .recurrence import LevelPipelines, best_steps, effort, plan_of
from .reduced import ReducedStages, Units

_NUMBERS_A_SECOND = 2e8
"""How many numbers the recurrence looks at, cautiously."""
_NUMBERS_HELD = 2.5e8
"""What its tables may take."""
_IDEALS = 20_000
_QUICK = 2e8
"""Numbers to look at without having a plan first."""
_STALLED = 8
"""Linear extensions in a row without a better plan, after which `chain` ends."""
_SHARE = 0.2
"""What one round along a line may take of the time left."""

Families = Callable[[Run, Units, bool], IdealStates | None]


def chain(run: Run, reduced: ReducedStages) -> None:
    """Offer the best plan along a linear extension: PipeDream's programme where the graph is nearly a chain.

    Of ideals that are too many it takes those that cut little. It goes on with other linear extensions until some in a
    row bring nothing.
    """
    stalled = 0
    while not run.stopped and stalled < _STALLED:
        before = run.objective
        along(run, reduced)
        stalled = 0 if run.objective != before else stalled + 1


def along(run: Run, reduced: ReducedStages) -> None:
    """Search along the next linear extensions."""
    number = reduced.tried
    reduced.tried += 1
    _search(run, reduced, partial(_some, number=number), "chain", exact=False)


def ideals(run: Run, reduced: ReducedStages) -> None:
    """Solve exactly if the order has few enough ideals for the time and memory there is."""
    _search(run, reduced, _all(reduced), "ideals", exact=True)


def _search(run: Run, reduced: ReducedStages, families: Families, by: str, *, exact: bool) -> None:
    problem = reduced.problem
    binds = problem.training and np.isfinite(reduced.capacity) and problem.memory_model != "none"
    for tracked, generous in (
        (False, True),
        *(((True, True),) if binds else ()),
        # a stage on the edge of what fits was too large: plans without it prove nothing
        (binds, False),
    ):
        with run.phase("families"):
            family = families(run, reduced.units, tracked)
        if run.stopped or family is None:
            return
        family.generous, proves = generous, exact and generous
        try:
            with run.phase("recurrence"):
                cap = np.inf if run.objective is None else run.objective
                level = LevelPipelines(family, len(problem.members()) - 1, tracked, lambda: run.stopped, cap)
                value, steps = best_steps(level, level.top())
        except TimeoutError:
            return
        if not steps:
            # without a plan where less is asked there is none where more is
            if proves and run.plan is None:
                run.prove_infeasible(by)
            elif proves and run.objective is not None:
                run.raise_bound(run.objective, by)
            return
        plan = plan_of(level, steps)
        fits = verify(problem, plan).ok
        if fits:
            run.offer(plan, by)
        if proves:
            run.raise_bound(value, by)
        if fits:
            return


def _some(run: Run, units: Units, tracked: bool, number: int = 0) -> IdealStates | None:
    rng = np.random.default_rng([run.seed, number]) if number else None
    family, most = mixed(units, run.seed + number, lambda: run.stopped), units.order.n_groups + 1
    while not _affordable(run, family, tracked):
        if most < 2 or run.stopped:
            return None
        family, most = thinned(units, most, lambda: run.stopped, rng), most // 2
    return family


def _all(reduced: ReducedStages) -> Families:
    def families(run: Run, units: Units, tracked: bool) -> IdealStates | None:
        found = all_ideals(units.order, _IDEALS, lambda: run.stopped)
        if found is None or run.stopped:
            if not run.stopped:
                run.note(f"more than {_IDEALS} ideals: the best plan along some chains of them, with no proof")
            return None
        family = IdealStates(units, found, lambda: run.stopped)
        if effort(family, tracked) > _QUICK and run.plan is None and not reduced.tried:
            along(run, reduced)
        # a plan to beat leaves most numbers out
        if run.stopped or _affordable(run, family, tracked, 1.0 if run.plan is None else 2.0):
            return family
        run.note(f"too little time or space for all {len(family)} ideals{' with memory' if tracked else ''}")
        return None

    return families


def _affordable(run: Run, family: IdealStates, tracked: bool, share: float = _SHARE) -> bool:
    members = family.problem.members()
    tables = 2 * sum(m * (m if tracked else 1) for m in members[:-1])
    held = len(family) * (len(family) * tables if len(members) > 1 else 1000)
    return held < _NUMBERS_HELD and effort(family, tracked) < _NUMBERS_A_SECOND * share * run.remaining()
