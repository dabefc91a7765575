"""Settings of the list scheduler: a few numbers for a whole problem, from which every op and edge gets its prices."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from .arrays import StepArrays
from .list_scheduler import COSTS, union
from .model import Prepared

WORTH = ("together", "together_far", "near", "near_far")
"""What it is worth that an edge's ends share a device, or are near: mean ops, and shares of how long it would be under
way between the devices farthest apart."""
URGENCY = ("backward", "far", "time", "readers", "group")
"""What an op's priority rises with: being backward, in longest paths; the time of its output on the farthest way; its
own; how many read it, in mean ops; the time of its group."""
LIMITS = ("costly", "memory", "work")
"""From which time under way an edge counts, in mean ops; bytes of what is joined, as a share of the least device or
zone; its work, in even loads of these. With 0 for the first nothing is joined."""
SETTINGS = (*COSTS, *WORTH, *URGENCY, *(f"device_{x}" for x in LIMITS), *(f"zone_{x}" for x in LIMITS))
"""All settings, in their order. With every one at zero the scheduler is HEFT."""
_FAR = 20.0
"""Ways longer than this many mean ops are as bad as this."""
_WORTHS = slice(len(COSTS), len(COSTS) + len(WORTH))
_URGENCIES = slice(_WORTHS.stop, _WORTHS.stop + len(URGENCY))
_DEVICE, _ZONE = slice(-2 * len(LIMITS), -len(LIMITS)), slice(-len(LIMITS), None)
_COSTLY, _WORK = (log(0.03), log(10.0)), (log(0.1), log(4.0))
_SIZES = np.array([0.3, 1.0, 3.0, 10.0])
_SCALE = np.array([1.0] * len(COSTS) + [1.0, 0.3, 1.0, 0.3] + [0.05, 0.3, 0.3, 0.5, 0.1])
"""By what a draw of each setting is multiplied."""


Labels = NDArray[np.int64]


def _given(**settings: float) -> FloatArray:
    return np.array([settings.get(name, 0.0) for name in SETTINGS])


_ZONE_OF_ALL = {"zone_costly": 0.03, "zone_memory": 1.0}
_NEAR_TOGETHER = {"device_costly": 0.03, "device_memory": 1.0, "device_work": 1.0, "near_far": 1.0, **_ZONE_OF_ALL}
HEFT = _given()
"""The settings at which the scheduler is HEFT."""
TOGETHER = (
    _given(**_NEAR_TOGETHER, zone_work=3.0),
    _given(**_ZONE_OF_ALL, zone_work=100.0),
    _given(**_NEAR_TOGETHER, zone_work=10.0),
)
"""Settings that put what talks to one another onto one device or into one zone, or into few: the first to try where
links are shared. With what is joined by device there is less to choose, so that the first takes a third of the time."""


class Basis(NamedTuple):
    """What the settings of a problem multiply, or are compared with.

    Attributes:
        ops: see `URGENCY`, float64 (n, U).
        edges: 1, and how far the ends may be apart, in mean ops, float64 (m, 2).
        way, costliest: longest time under way of each edge, seconds, float64 (m,); edges by falling `way`.
    """

    ops: FloatArray
    edges: FloatArray
    way: FloatArray
    costliest: NDArray[np.int64]


def basis_of(p: Prepared) -> Basis:
    """Return what the settings of a problem multiply."""
    a, u = p.arrays, p.edges[0]
    top = int(p.used_levels.max(initial=0))
    far = np.minimum(p.delay[top] / a.unit, _FAR) if len(p.used_levels) else np.zeros(p.n)
    group = np.where(np.isfinite(p.group_time), p.group_time, 0.0).max(axis=0)
    ops = (
        p.problem.graph.backward * (float(np.max(a.rank, initial=0.0)) / a.unit),
        far,
        np.where(np.isfinite(p.fastest), p.fastest, 0.0) / a.unit,
        np.bincount(u, minlength=p.n),
        group[p.group_of] / a.unit,
    )
    edges, way = np.stack([np.ones(len(u)), far[u]], axis=1), p.delay[top, u]
    return Basis(np.stack(ops, axis=1).astype(float), edges, way, np.argsort(-way, kind="stable").astype(np.int64))


def prices_of(basis: Basis, settings: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the prices that settings mean, (D,): the last four attributes of `ListState`."""
    worth, costs = settings[_WORTHS], settings[: len(COSTS)].copy()
    return basis.ops @ settings[_URGENCIES], costs, basis.edges @ worth[:2], basis.edges @ worth[2:]


def draw(rng: np.random.Generator, count: int) -> FloatArray:
    """Return random settings, (count, D): half of the prices, worths and urgencies zero, half of the joinings off."""
    shape = count, _URGENCIES.stop
    drawn = rng.standard_normal(shape) * _SIZES[rng.integers(0, len(_SIZES), shape)] * _SCALE
    drawn[rng.random(shape) < 0.5] = 0.0
    joins = []
    for _ in range(2):
        on = rng.random(count) < 0.5
        costly, work = np.exp(rng.uniform(*_COSTLY, size=count)), np.exp(rng.uniform(*_WORK, size=count))
        joins += [costly * on, rng.uniform(0.2, 1.0, count), work]
    return np.concatenate([drawn, np.stack(joins, axis=1)], axis=1)


def bred(rng: np.random.Generator, parents: Sequence[FloatArray]) -> FloatArray:
    """Return settings like those of a parent, (D,), the better ones more often; some crossed, redrawn or scaled."""
    child = parents[min(int(rng.exponential(1.2)), len(parents) - 1)].copy()
    if rng.random() < 0.3:
        other, half = parents[int(rng.integers(len(parents)))], rng.random(len(child)) < 0.5
        child[half] = other[half]
    fresh, scaled = rng.random(len(child)) < 0.12, rng.random(len(child)) < 0.3
    child[fresh] = draw(rng, 1)[0][fresh]
    child[scaled] *= np.exp(rng.normal(0.0, 0.4, int(scaled.sum())))
    return child


def clustered(p: Prepared, settings: FloatArray) -> tuple[StepArrays, Labels | None, Labels | None]:
    """Return the problem with groups joined, the new group of each group, and bonds; `None` where there are none.

    The costliest edge first, as long as what it joins stays within its share of a device (edge zeroing: Sarkar 1989);
    and once more, for what is to stay in one zone of devices near one another.
    """
    a, label, bond = p.arrays, None, None
    group = np.asarray(a.group)
    ends = group[p.edges[0]], group[p.edges[1]]
    inside, zones = settings[_DEVICE], settings[_ZONE]
    if inside[0] > 0:
        label = _joined(p, a, ends, inside, 1)
        ends = label[ends[0]], label[ends[1]]
        a = a.joined(label, *ends)
    if zones[0] > 0 and (near := int(np.bincount(a.zone).max())) > 1:
        bond = _joined(p, a, ends, zones, near)
    return a, label, bond


def _joined(p: Prepared, a: StepArrays, ends: tuple[Labels, Labels], limits: FloatArray, devices: int) -> Labels:
    basis, seconds = p.basis, np.asarray(a.work)
    order = basis.costliest[basis.way[basis.costliest] >= limits[0] * a.unit]
    least = float(p.room.min()) * devices * float(limits[1]) if limits[1] > 0 else 0.0
    seconds = np.where(np.isfinite(seconds), seconds, 0.0).max(axis=0)
    root = union(*ends, order, np.array(a.need), seconds, least, limits[2] * a.even * devices)
    return np.unique(root, return_inverse=True)[1].astype(np.int64).ravel()
