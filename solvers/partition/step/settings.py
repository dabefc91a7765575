"""Settings of the list scheduler: a few numbers for a whole problem, from which every op and edge gets its prices."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any, NamedTuple, cast

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ...compiled.kernel import Floats, Ints, lean_kernel
from .arrays import Arrays, neighbours
from .list_scheduler import COSTS, Prices
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
    """What the settings of a problem multiply: `ops`, float64 (n, U), see `URGENCY`, and `edges`, float64 (m, 2)."""

    ops: FloatArray
    edges: FloatArray


def basis_of(p: Prepared) -> Basis:
    """Return what the settings of a problem multiply."""
    a = p.arrays
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


def prices_of(basis: Basis, settings: FloatArray) -> Prices:
    """Return the prices that settings mean, (D,)."""
    worth, costs = settings[_WORTHS], np.empty((len(basis.ops), len(COSTS)))
    costs[:] = settings[: len(COSTS)]
    return Prices(basis.ops @ settings[_URGENCIES], costs, basis.edges @ worth[:2], basis.edges @ worth[2:])


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


def clustered(a: Arrays, p: Prepared, settings: FloatArray) -> tuple[Arrays, IntArray | None]:
    """Return the problem with groups joined and bonded, and the new group of each group, `None` if it is its own.

    The costliest edge first, as long as what it joins stays within its share of a device (edge zeroing: Sarkar 1989);
    and once more, for what is to stay in one zone of devices near one another.
    """
    ends = a.group[p.edges[0]], a.group[p.edges[1]]
    inside, zones, label = settings[_DEVICE], settings[_ZONE], None
    if inside[0] > 0:
        label = _joined(a, ends, inside, 1)
        a, ends = _coarse(a, ends, label), (label[ends[0]], label[ends[1]])
    if zones[0] > 0 and len(np.unique(a.zone)) < len(a.zone):
        a = a._replace(bond=_joined(a, ends, zones, int(np.bincount(a.zone).max())))
    return a, label


def _joined(a: Arrays, ends: tuple[IntArray, IntArray], limits: FloatArray, devices: int) -> IntArray:
    order = a.costliest[a.way[a.costliest] >= limits[0] * a.unit]
    least = float(a.room.min()) * devices * float(limits[1]) if limits[1] > 0 else 0.0
    work = np.where(np.isfinite(a.work), a.work, 0.0).max(axis=0)
    root = np.arange(len(work))
    union(root, *ends, order, a.need.copy(), work, least, float(limits[2] * a.even * devices))
    found: Any = np.unique(root, return_inverse=True)[1].astype(np.int64).ravel()
    return cast(IntArray, found)


@lean_kernel
def union(
    root: Ints, source: Ints, target: Ints, order: Ints, held: Floats, seconds: Floats, memory: float, load: float
) -> None:
    """Find a root for each group, those of the edges in `order` joined while they stay within the limits.

    Args:
        root: of each group, itself at first, int64 (G,).
        source, target: groups of the ends of each edge, int64 (m,).
        order: edges, int64.
        held, seconds: bytes and seconds of each group, then of all that have this root, float64 (G,).
        memory, load: what these may reach.
    """
    for e in order:
        x, y = source[e], target[e]
        while root[x] != x:
            root[x] = root[root[x]]
            x = root[x]
        while root[y] != y:
            root[y] = root[root[y]]
            y = root[y]
        if x != y and held[x] + held[y] <= memory and seconds[x] + seconds[y] <= load:
            root[y] = x
            held[x] += held[y]
            seconds[x] += seconds[y]
    for g in range(len(root)):
        x = g
        while root[x] != x:
            x = root[x]
        root[g] = x


def _coarse(a: Arrays, ends: tuple[IntArray, IntArray], label: IntArray) -> Arrays:
    count = int(label.max()) + 1
    by_label = np.argsort(label, kind="stable")
    first = np.searchsorted(label[by_label], np.arange(count))
    need = np.add.reduceat(a.need[by_label], first)
    edge_first, edge, other = neighbours(label[ends[0]], label[ends[1]], count)
    return a._replace(
        group=label[a.group],
        work=np.ascontiguousarray(np.add.reduceat(a.work[:, by_label], first, axis=1)),
        need=need,
        heavy=np.argsort(-need, kind="stable").astype(np.int64),
        edge_first=edge_first,
        edge=edge,
        other=other,
        bond=np.full(count, -1),
    )
