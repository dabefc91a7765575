"""What the GPUs of gangs pay for being apart: the communication cost of TopDRL."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, sums
from .fleet import Fleet
from .problem import PlacementPlan, PlacementProblem

GIGABYTE = 1e9
"""Bytes whose transfer a pair of GPUs is charged for."""


def communication(problem: PlacementProblem, plan: PlacementPlan) -> FloatArray:
    """Return the communication cost of each job, float64 (J,): over its pairs of GPUs, the seconds of a gigabyte.

    Two GPUs pay 1e9 / B with B, in bytes/s, that of the slowest link between them: the links inside their node, or else
    the NICs and, up to the level at which they meet, the uplinks of their racks and so on. On the cluster of TopDRL
    (Ayadi et al., JPDC 204, 2025), with NVLink of 40 GB/s, InfiniBand of 4 and 2 between racks, these are its weights
    1/40, 1/4 and 1/2. A share of a GPU counts as a GPU of its node; parameter servers, and workers without a GPU, count
    nothing.
    """
    count, groups = len(problem.jobs), problem.fleet.topology.group
    each = np.array([job.worker.grants for job in problem.jobs])[plan.job]
    held = each * plan.workers
    inside, across = pair_seconds(problem.fleet)
    cost = sums(plan.job, inside[plan.node] * pairs(held), count)
    below = sums(plan.job, pairs(held), count)
    for seconds, group in zip(across, groups, strict=True):
        keys, index = np.unique(np.stack([plan.job, group[plan.node]]), axis=1, return_inverse=True)
        within = sums(keys[0], pairs(sums(index.ravel(), held, keys.shape[1])), count)
        cost += seconds * (within - below)
        below = within
    return cost


def pair_seconds(fleet: Fleet) -> tuple[FloatArray, FloatArray]:
    """Return the seconds of a gigabyte between GPUs of each node, (m,), and of nodes that meet at each level, (L,)."""
    slowest = np.minimum.accumulate([level.bandwidth for level in fleet.topology.levels])
    return GIGABYTE / fleet.link, GIGABYTE / slowest


def pairs(count: NDArray[Any]) -> FloatArray:
    """Return how many pairs so many make, elementwise."""
    return np.asarray(count * (count - 1) / 2, dtype=np.float64)
