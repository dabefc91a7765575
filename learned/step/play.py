"""From settings of the dials to plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.solvers.partition.step.schedule import Decoder, as_plan

from .cluster import clustered
from .decode import build
from .dials import joins_of, scores_of
from .features import Case
from .polish import polish

ROUNDS = 4
"""Of `polish`."""
NO_ROOM = 3.0
"""What a dead end counts, in units of the case."""

Found = tuple[float, IntArray, FloatArray]
"""A makespan, the device of each group, and a start for each op."""


def decode(case: Case, dials: FloatArray) -> Found | None:
    """Return the plan of one setting of the dials, (D,); `None` if memory leads into a dead end."""
    u, v = case.p.edges
    ends = case.arrays.group[u], case.arrays.group[v]
    a, label = clustered(case.arrays, ends, *joins_of(dials))
    state, _, fits = build(a, scores_of(case.basis, dials), case.p.memory_binds)
    if not fits:
        return None
    length = polish(a, state.where, state.start, state.finish, ROUNDS)
    return length, state.where if label is None else state.where[label], state.start


def costs(case: Case, book: FloatArray) -> FloatArray:
    """Return the makespan of each setting, (K, D), in units of the case, float64 (K,); a plan shown is there too."""
    found = [decode(case, dials) for dials in book]
    best = shown(case)
    most = best[0] / case.unit if best else NO_ROOM
    return np.array([min(x[0] / case.unit if x else NO_ROOM, most) for x in found])


def shown(case: Case) -> Found | None:
    """Return the better of the plans that the features show, HEFT's and everything alone; `None` if neither fits."""
    if np.isfinite(case.alone[0]) and case.alone[0] <= case.heft:
        where = np.full_like(case.where, case.alone[1])
        return float(case.alone[0]), where, np.asarray(case.arrays.topological, dtype=float)
    return (case.heft, case.where, case.start) if np.isfinite(case.heft) else None


def search(case: Case, settings: Iterable[FloatArray], stopped: Callable[[], bool] = lambda: False) -> Iterator[Found]:
    """Yield plans, each better than the one before: that which is shown, then those of the settings in their order.

    Args:
        case: the problem.
        settings: of the dials, (D,) each.
        stopped: whether to stop; asked before each decoding.
    """
    best = shown(case)
    if best is not None:
        yield best
    for dials in settings:
        if stopped():
            return
        found = decode(case, dials)
        if found is not None and (best is None or found[0] < best[0] * (1 - 1e-12)):
            best = found
            yield best


def plan_of(case: Case, where: IntArray, start: FloatArray) -> StepPlan:
    """Return the plan with these devices of groups and this order of starts, timed as solvers do."""
    device = where[case.p.group_of].tolist()
    order = np.lexsort((case.arrays.topological, start)).tolist()
    times, _, sent = Decoder(case.p).times(device, order)
    return as_plan(case.p, device, times, sent)
