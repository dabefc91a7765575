"""From settings of the dials to plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.solvers.partition.step.improve.annealing import anneal, begin
from gangplan.solvers.partition.step.improve.descent import descended
from gangplan.solvers.partition.step.improve.links import links_of
from gangplan.solvers.partition.step.schedule import Decoder, as_plan

from .features import Case
from .plans import Found, decode

NO_ROOM = 3.0
"""What a dead end counts, in units of the case."""
BUDGET = 30_000
"""Ops that may be scheduled in the descent from one plan, at most."""
BUDGET_PER_OP = 300
"""And for each op of the problem."""
ANNEALED, ANNEALED_PER_OP = 2_000_000, 2_000
"""The same for annealing, where a problem is too large for all of its descent."""
_HOT = (1e-2 / 4, 1e-2 / 30)
"""Where its rounds begin, as shares of the makespan: the plan is a good one."""
_STEPS = 2
"""Steps of a round for each whole schedule in its budget: most are given up on the way."""
_HASTE = 0.1
"""Share of the descent that the table of the book gets, which has a plan of every setting."""
_DRAWS = np.random.default_rng(0).random(4096)


def improved(case: Case, found: Found, share: float = 1.0) -> Found:
    """Return the plan that descent leads to, or a share of it."""
    a, where, start = case.arrays, found[1].copy(), found[2].copy()
    finish = start + a.seconds[where[a.group], np.arange(len(start))]
    budget = int(share * min(BUDGET, BUDGET_PER_OP * len(start)))
    return descended(a, where, start, finish, budget, _DRAWS), where, start


def annealed(case: Case, found: Found, seed: int) -> Found:
    """Return the plan that annealing leads to, never a longer one."""
    a, n = case.arrays, len(found[2])
    s = begin(a, links_of(case.p), found[1], found[2])
    budget = min(ANNEALED, ANNEALED_PER_OP * n) // len(_HOT)
    for hot in _HOT:
        anneal(a, s, 0, _STEPS * budget // n, hot, budget, seed)
    # `plan_of` wants no more of the starts than their order
    return float(s.length[1]), s.best_where, np.argsort(s.best_order).astype(float)


def descents(samples: int) -> int:
    """Return from how many plans there is a descent, the shortest ones."""
    return 2 + samples // 4


def anneals(samples: int) -> int:
    """Return how many plans of large problems are annealed."""
    return 1 + samples // 16


def lengths(case: Case, settings: FloatArray) -> FloatArray:
    """Return the makespan of each setting before descent, (K, D), no more than the base's, in units of the case."""
    found = [decode(case.p, case.arrays, case.basis, x) for x in settings]
    most = min((x[0] / case.unit for x in case.base), default=NO_ROOM)
    return np.array([min(most, x[0] / case.unit) if x else most for x in found])


def costs(case: Case, book: FloatArray) -> FloatArray:
    """Return what `search` in haste makes of each setting alone, (K, D), in units of the case, float64 (K,)."""
    known: dict[int, float] = {}
    before = list(case.base)
    found = np.empty(len(book))
    for i, dials in enumerate(book):
        plan = decode(case.p, case.arrays, case.basis, dials)
        length = np.inf
        for x in _shortest(before if plan is None else [*before, plan], descents(1)):
            if id(x) not in known:
                known[id(x)] = improved(case, x, _HASTE)[0]
            length = min(length, known[id(x)])
        if plan is not None:
            known.pop(id(plan), None)
        found[i] = min(length / case.unit, NO_ROOM)
    return found


def search(
    case: Case, settings: Iterable[FloatArray], stopped: Callable[[], bool] = lambda: False, *, annealing: bool = True
) -> Iterator[Found]:
    """Yield plans, each better than the one before: the base, those of the settings, of descent, of annealing.

    Args:
        case: the problem.
        settings: of the dials, (D,) each.
        stopped: whether to stop; asked before each decoding.
        annealing: whether it ends with that, for large problems without contention, which it would not see.
    """
    plans, settings = list(case.base), list(settings)
    best = min(plans, key=_length, default=None)
    if best is not None:
        yield best
    for dials in settings:
        if stopped():
            return
        found = decode(case.p, case.arrays, case.basis, dials)
        if found is not None:
            plans.append(found)
            if best is None or found[0] < best[0] * (1 - 1e-12):
                best = found
                yield best
    lower = []
    for plan in _shortest(plans, descents(len(settings))):
        if stopped():
            return
        found = improved(case, plan)
        lower.append(found)
        if best is None or found[0] < best[0] * (1 - 1e-12):
            best = found
            yield best
    if not annealing or case.p.contention or BUDGET_PER_OP * case.p.n <= BUDGET:
        return
    for seed, plan in enumerate(_shortest(lower, anneals(len(settings)))):
        if stopped():
            return
        found = annealed(case, plan, seed)
        if best is None or found[0] < best[0] * (1 - 1e-12):
            best = found
            yield best


def _length(found: Found) -> float:
    return found[0]


def _shortest(plans: list[Found], count: int) -> list[Found]:
    """Return the shortest plans, of equally long ones the first."""
    kept: dict[float, Found] = {}
    for plan in sorted(plans, key=_length):
        kept.setdefault(plan[0], plan)
    return list(kept.values())[:count]


def plan_of(case: Case, where: IntArray, start: FloatArray) -> StepPlan:
    """Return the plan with these devices of groups and this order of starts, timed as solvers do."""
    device = where[case.p.group_of].tolist()
    order = np.lexsort((case.arrays.topological, start)).tolist()
    times, _, sent = Decoder(case.p).times(device, order)
    return as_plan(case.p, device, times, sent)
