"""The dials of the list scheduler: a few numbers for a whole problem, from which every op and edge gets its scores."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.partition.step.improve.arrays import Arrays
from gangplan.solvers.partition.step.model import Prepared

from .cluster import LIMITS
from .decode import Scores
from .state import COSTS

WORTH = ("together", "together_far", "near", "near_far")
"""What it is worth that an edge's ends share a device, or are near: mean ops, and shares of how long it would be under
way between the devices farthest apart."""
URGENCY = ("backward", "far", "time", "readers", "group")
"""What an op's priority rises with: being backward, in longest paths; the time of its output on the farthest way; its
own; how many read it, in mean ops; the time of its group."""
JOINS = (*(f"device_{x}" for x in LIMITS), *(f"zone_{x}" for x in LIMITS))
"""What becomes one before, see `cluster`."""
DIALS = (*COSTS, *WORTH, *URGENCY, *JOINS)
"""All dials, in their order. With every one at zero the scheduler is HEFT."""
_FAR = 20.0
"""Ways longer than this many mean ops are as bad as this."""
_C, _W, _U = len(COSTS), len(WORTH), len(URGENCY)
_DEAR, _WORK = (log(0.03), log(10.0)), (log(0.1), log(4.0))
_SIZES = np.array([0.3, 1.0, 3.0, 10.0])
_SCALE = np.array([1.0] * _C + [1.0, 0.3, 1.0, 0.3] + [0.05, 0.3, 0.3, 0.5, 0.1])
"""Of each dial, by what a draw is multiplied."""


class Basis(NamedTuple):
    """What the dials multiply.

    Attributes:
        ops: float64 (n, U), see `URGENCY`.
        edges: float64 (m, 2): 1, and the time under way.
    """

    ops: FloatArray
    edges: FloatArray


def basis_of(p: Prepared, a: Arrays) -> Basis:
    """Return what the dials of a problem multiply."""
    way = p.delay[p.used_levels[-1]] if len(p.used_levels) else np.zeros(p.n)
    far = np.minimum(way / a.unit, _FAR)
    path = float(a.rank.max(initial=0.0)) / a.unit
    group = np.where(np.isfinite(p.group_time), p.group_time, 0.0).max(axis=0)
    u = p.edges[0]
    ops = (
        p.problem.graph.backward * path,
        far,
        np.where(np.isfinite(p.fastest), p.fastest, 0.0) / a.unit,
        np.bincount(u, minlength=p.n),
        group[p.group_of] / a.unit,
    )
    return Basis(np.stack(ops, axis=1).astype(float), np.stack([np.ones(len(u)), far[u]], axis=1))


def scores_of(basis: Basis, dials: FloatArray) -> Scores:
    """Return the scores that dials mean, (D,)."""
    worth, n = dials[_C : _C + _W], len(basis.ops)
    costs = np.empty((n, _C))
    costs[:] = dials[:_C]
    return Scores(basis.ops @ dials[_C + _W : _C + _W + _U], costs, basis.edges @ worth[:2], basis.edges @ worth[2:])


def joins_of(dials: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the limits of what is joined for a device and for a zone."""
    joins = dials[_C + _W + _U :]
    return joins[: len(LIMITS)], joins[len(LIMITS) :]


def draw(rng: np.random.Generator, count: int) -> FloatArray:
    """Return random settings of the dials, the first of them all zero, (count, D).

    Half of the prices, worths and urgencies are at zero, the others of very different sizes; each kind of joining is
    off in half of the settings.
    """
    shape = count, _C + _W + _U
    drawn = rng.standard_normal(shape) * _SIZES[rng.integers(0, len(_SIZES), shape)] * _SCALE
    drawn[rng.random(shape) < 0.5] = 0.0
    joins = []
    for _ in range(2):
        on = rng.random(count) < 0.5
        dear, work = np.exp(rng.uniform(*_DEAR, size=count)), np.exp(rng.uniform(*_WORK, size=count))
        joins += [dear * on, rng.uniform(0.2, 1.0, count), work]
    found = np.concatenate([drawn, np.stack(joins, axis=1)], axis=1)
    found[0] = 0.0
    return found
