"""List scheduling under many settings, which are bred, and a moment of annealing for the best of the plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray

from ...run import Run
from .annealing import cool
from .heft import pack
from .list_scheduler import ListState, build
from .model import Prepared
from .moves import Annealing
from .settings import HEFT, TOGETHER, bred, clustered, draw, prices_of
from .timing import Workroom, placed, polish

DRAWN = 20
"""Settings that are drawn, HEFT's among them; others are bred from the best."""
_KEPT = 6
"""Settings, the best ones, that others are bred from."""
_VAIN = 15
"""Children in a row without a better plan after which breeding ends."""
_STARTS = 3
"""Plans, the shortest ones, that are annealed."""
_HOT = 1 / 400
"""Temperature at the beginning, relative to the makespan: the plans are good ones."""
_STEPS = 1200
"""Of annealing one plan."""
_CHOICE, _CHOICE_ON_LINKS = 5e-8, 2e-7
"""About what it takes to ask when an op would end on a device, seconds, without and with contention."""
_ROUNDS = 4
"""Of `polish`."""


class ListPlan(NamedTuple):
    """A plan: its makespan, the device of each group, a start for each op in their order, and its settings, if any."""

    length: float
    where: NDArray[np.int64]
    start: FloatArray
    settings: FloatArray | None = None


def plan_of(p: Prepared, room: Workroom, found: ListPlan) -> StepPlan:
    """Return the plan with these devices of groups and this order of starts."""
    return placed(p, room, found.where, np.lexsort((p.rank, found.start)))


def heft(run: Run, p: Prepared) -> None:
    """Offer everything on one device, HEFT's plan, and where memory leaves neither, a packing of it."""
    room, found = Workroom(p), alone(p)
    if found is not None and not run.stopped:
        run.offer(plan_of(p, room, found), "heft")
    if p.n * p.n_devices * (_CHOICE_ON_LINKS if p.contention else _CHOICE) > run.remaining():
        return
    found = decode(p, room, HEFT)
    if found is not None and not run.stopped:
        run.offer(plan_of(p, room, found), "heft")
    if run.plan is None and (where := pack(p, run.seed, lambda: run.stopped)) is not None:
        run.offer(placed(p, room, where, np.argsort(-np.asarray(p.arrays.rank), kind="stable")), "heft")


def list_schedule(run: Run, p: Prepared) -> None:
    """Offer the plans of ever more settings, then those that annealing the shortest of them leads to."""
    if run.stopped:
        return
    room = Workroom(p)
    for found in search(p, room, np.random.default_rng(run.seed), lambda: run.stopped):
        if run.stopped and run.plan is not None:
            return
        run.offer(plan_of(p, room, found), "list_schedule")


def search(p: Prepared, room: Workroom, rng: np.random.Generator, stopped: Callable[[], bool]) -> Iterator[ListPlan]:
    """Yield ever better plans: on one device, of settings drawn and then bred, annealed."""
    best, vain = np.inf, 0
    drawn, kept = [*(TOGETHER if p.contention else ()), HEFT, *draw(rng, DRAWN - 1)], list[ListPlan]()
    found = alone(p)
    while True:
        if found is not None:
            if found.length < best * (1 - 1e-12):
                best, vain = found.length, 0
                yield found
            if all(abs(found.length - other.length) > 1e-12 * found.length for other in kept):
                kept = sorted([*kept, found], key=lambda x: x.length)[:_KEPT]
        vain += not drawn
        if stopped():
            return
        parents = [x.settings for x in kept if x.settings is not None]
        if vain > _VAIN or not (drawn or parents):
            break
        found = decode(p, room, drawn.pop(0) if drawn else bred(rng, parents))
    for found in kept[:_STARTS]:
        s = Annealing(room, found.where, found.start)
        for _ in cool(p, s, _STEPS, _HOT, rng, stopped):
            if s.best < best * (1 - 1e-12):
                best = s.best
                yield ListPlan(best, np.array(s.best_where), np.argsort(s.best_order).astype(float))


def decode(p: Prepared, room: Workroom, settings: FloatArray) -> ListPlan | None:
    """Return the plan of settings, (D,); `None` if memory leads into a dead end."""
    a, label, bond = clustered(p, settings)
    state = ListState(room, a, prices_of(p.basis, settings), bond)
    if not build(state, p.memory_binds):
        return None
    where, start, finish = np.asarray(state.where), np.array(room.start), np.array(room.finish)
    where = where if label is None else where[label]
    return ListPlan(polish(room, where[p.group_of], start, finish, _ROUNDS), where, start, settings)


def alone(p: Prepared) -> ListPlan | None:
    """Return the plan with everything on the one device that is fastest; `None` if none takes it."""
    if p.alone is None:
        return None
    seconds = float(p.time.sum(axis=1)[p.type_of[p.alone]])
    return ListPlan(seconds, np.full(p.n_groups, p.alone), p.rank.astype(float))
