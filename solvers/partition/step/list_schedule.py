"""List scheduling under many settings, of which the best plans are annealed for a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray

from ...run import Run
from .annealing import anneal, begin
from .arrays import Arrays, arrays_of, workroom
from .list_scheduler import build, empty_state
from .model import Prepared
from .schedule import Decoder, as_plan
from .settings import Basis, basis_of, clustered, draw, prices_of
from .timing import links_of, polish

DRAWN = 20
"""Settings that are tried, HEFT's first."""
STARTS = 3
"""Plans, the shortest ones, that are annealed."""
BUDGET, BUDGET_PER_OP = 60_000, 600
"""Ops that may be scheduled in annealing one plan, at most, and for each op of the problem."""
_HOT = 1 / 400
"""Temperature at the beginning, relative to the makespan: the plans are good ones."""
_STEPS = 2
"""Steps for each whole schedule in the budget: most are given up on the way."""
_ROUNDS = 4
"""Of `polish`."""

Found = tuple[float, IntArray, FloatArray]
"""A makespan, the device of each group, and a start for each op."""


def list_schedule(run: Run, p: Prepared) -> None:
    """Offer the plans of ever more settings, then those that annealing the shortest of them leads to.

    Devices are chosen as if links were free, and plans timed with their contention.
    """
    if run.stopped:
        return
    a = arrays_of(p)
    for _, where, start in search(p, a, draw(np.random.default_rng(run.seed), DRAWN), lambda: run.stopped):
        if run.stopped and run.plan is not None:
            return
        plan = plan_of(p, a, where, start)
        run.propose(plan)
        run.offer(plan, "list_schedule")


def search(p: Prepared, a: Arrays, settings: FloatArray, stopped: Callable[[], bool]) -> Iterator[Found]:
    """Yield plans, without contention each better than the one before: on one device, of settings (K, D), annealed."""
    basis, best, found = basis_of(p, a), np.inf, list[Found]()
    for row in [None, *settings]:
        plan = alone(p, a) if row is None else decode(p, a, basis, row)
        if plan is not None:
            found.append(plan)
            if plan[0] < best * (1 - 1e-12):
                best = plan[0]
                yield plan
        if stopped():
            return
    kept: dict[float, Found] = {}
    for plan in sorted(found, key=lambda x: x[0]):
        kept.setdefault(plan[0], plan)
    for plan in list(kept.values())[:STARTS]:
        if stopped():
            return
        lower = annealed(p, a, plan)
        if p.contention or lower[0] < best * (1 - 1e-12):
            best = lower[0]
            yield lower


def decode(p: Prepared, arrays: Arrays, basis: Basis, settings: FloatArray) -> Found | None:
    """Return the plan of settings, (D,); `None` if memory leads into a dead end."""
    a, label = clustered(arrays, p, settings)
    state = empty_state(a)
    if not build(a, prices_of(basis, settings), state, p.memory_binds):
        return None
    length = polish(a, workroom(a), state.where, state.start, state.finish, _ROUNDS)
    return float(length), state.where if label is None else state.where[label], state.start


def alone(p: Prepared, a: Arrays) -> Found | None:
    """Return the plan with everything on the one device that is fastest; `None` if none takes it."""
    fits = p.allowed.all(axis=0) & (p.group_memory.sum() <= p.room)
    seconds = np.where(fits, p.time.sum(axis=1)[p.type_of], np.inf)
    best = int(seconds.argmin())
    if not fits[best]:
        return None
    order = np.argsort(a.topological)
    took = a.seconds[best, order]
    start = np.empty(p.n)
    start[order] = np.concatenate([[0.0], np.cumsum(took)[:-1]])
    return float(seconds[best]), np.full(p.n_groups, best), start


def annealed(p: Prepared, a: Arrays, found: Found) -> Found:
    """Return the plan that a short annealing leads to; with contention its makespan counts that."""
    s = begin(a, links_of(p), found[1], found[2])
    budget = min(BUDGET, BUDGET_PER_OP * p.n)
    anneal(a, s, 0, _STEPS * budget // p.n, _HOT, budget, 0)
    return float(s.length[1]), s.best_where, np.argsort(s.best_order).astype(float)


def plan_of(p: Prepared, a: Arrays, where: IntArray, start: FloatArray) -> StepPlan:
    """Return the plan with these devices of groups and this order of starts, timed as solvers do."""
    device = where[p.group_of].tolist()
    times, _, sent = Decoder(p).times(device, np.lexsort((a.topological, start)).tolist())
    return as_plan(p, device, times, sent)
