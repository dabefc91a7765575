"""A plan from a setting of the dials."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.solvers.partition.step.improve.arrays import Arrays
from gangplan.solvers.partition.step.improve.polish import polish
from gangplan.solvers.partition.step.improve.workroom import workroom
from gangplan.solvers.partition.step.model import Prepared

from .cluster import clustered
from .decode import build
from .dials import Basis, joins_of, scores_of
from .state import empty

ROUNDS = 4
"""Of `polish`."""

Found = tuple[float, IntArray, FloatArray]
"""A makespan, the device of each group, and a start for each op."""


def decode(p: Prepared, arrays: Arrays, basis: Basis, dials: FloatArray) -> Found | None:
    """Return the plan of one setting of the dials, (D,); `None` if memory leads into a dead end."""
    u, v = p.edges
    ends = arrays.group[u], arrays.group[v]
    a, label = clustered(arrays, ends, *joins_of(dials))
    state = empty(a)
    if not build(a, scores_of(basis, dials), state, p.memory_binds):
        return None
    length = polish(a, workroom(a), state.where, state.start, state.finish, ROUNDS)
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
