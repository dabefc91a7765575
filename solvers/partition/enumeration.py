"""Every assignment of ops to devices that keeps types, colocation and memory: what referees of tiny problems share."""

from __future__ import annotations

import numpy as np

from gangplan.instances import GraphProblem, InstanceError
from gangplan.instances.arrays import BoolArray, IntArray
from gangplan.instances.verify import TOLERANCE


def assignments(problem: GraphProblem, most: int) -> IntArray:
    """Return the devices of the ops in each assignment, int32 (assignments, n); a constraint is an array operation.

    Raises:
        InstanceError: if there are more than `most` before any is left out.
    """
    n, k = problem.graph.n_ops, problem.cluster.n_devices
    if k**n > most:
        raise InstanceError("instance", f"{k} devices to the power of {n} ops is more than {most} assignments")
    where = np.stack(np.unravel_index(np.arange(k**n), (k,) * n), axis=1).astype(np.int32)
    for keeps in (_supported, _colocated, _fitting):
        where = where[keeps(problem, where)]
    return where


def _supported(problem: GraphProblem, where: IntArray) -> BoolArray:
    kind = problem.cluster.type_of[where]
    return np.asarray(np.isfinite(problem.time()[kind, np.arange(where.shape[1])]).all(axis=1))


def _colocated(problem: GraphProblem, where: IntArray) -> BoolArray:
    colocation = problem.graph.colocation
    ok = np.ones(len(where), dtype=bool)
    for c in np.unique(colocation[colocation >= 0]):
        members = where[:, colocation == c]
        ok &= (members == members[:, :1]).all(axis=1)
    return ok


def _fitting(problem: GraphProblem, where: IntArray) -> BoolArray:
    ok = np.ones(len(where), dtype=bool)
    for d, limit in enumerate(problem.capacity().tolist()):
        ok &= (where == d) @ problem.graph.memory <= limit * (1 + TOLERANCE)
    return ok
