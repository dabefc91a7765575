"""A step-time problem as flat arrays, which compiled code reads; their types are in arrays.pxd."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, final
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from .. import ragged
from .schedule import mean_rank

if not cython.compiled:
    from ...native import Int, Ints


@final
@cclass
class StepArrays:
    """n ops, k devices, G groups, L levels.

    Attributes:
        ops, devices, groups: n, k and G.
        before_first, before: ops that each op reads, CSR.
        after_first, after: ops that read it.
        place: of each op in a topological order, (n,).
        seconds: of each op on each device, (k, n).
        delay: of each op's output by level, the last row is 0 for one device, (L + 1, n).
        level: that joins two devices, L for one device, (k, k).
        near: whether two devices are joined by a lower level than the highest, (k, k).
        group: of each op, (n,).
        work: seconds of each group on each device, infinite where it cannot run or is too large, (k, G).
        need, room: bytes of each group, (G,), and device, (k,), infinite where all fits.
        twin: class of each device, see `Prepared.twins`, (k,).
        edge_first, edge, other: edges of each group to other groups, CSR: number of the edge in `Prepared.edges`, and
            the group at its other end.
        heavy: groups by falling bytes, (G,).
        zone: of each device, those that are near one another share one, (k,).
        rank: upward rank of each op, the priority of HEFT, seconds, (n,).
        unit, even: mean time of an op, and an even load, seconds.
    """

    def __init__(self, p: Any) -> None:
        """Copy the arrays of a `Prepared`."""
        fastest = p.fastest[np.isfinite(p.fastest)]
        busy, total, top = fastest[fastest > 0], float(fastest.sum()), int(p.used_levels.max(initial=0))
        near = (p.level < top) & (len(p.used_levels) > 1)
        self.ops, self.devices = p.n, p.n_devices
        self.before_first, self.before = map(_int, p.predecessors)
        self.after_first, self.after = map(_int, p.successors)
        self.place, self.twin = _int(p.rank), _int(p.twins)
        self.seconds = _float(p.time[p.type_of])
        self.delay, self.level = _float([*p.delay, np.zeros(p.n)]), _int(np.where(p.level < 0, len(p.delay), p.level))
        self.near, self.room, self.rank = near.astype(np.uint8), _float(p.room), _float(mean_rank(p))
        # that of the first device near it, its own if it is far from all
        self.zone = _int((near | np.eye(p.n_devices, dtype=bool)).argmax(axis=1))
        self.unit = float(busy.mean()) if len(busy) else 1.0
        self.even = total / p.n_devices if total > 0 else 1.0
        # sums of bytes that had what is too large, and have it no longer, would have lost smaller amounts
        work = np.where(p.allowed.T, p.group_time[p.type_of], np.inf)
        self._by_group(p.group_of, work, p.group_memory, p.group_of[p.edges[0]], p.group_of[p.edges[1]])

    def joined(self, label: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64]) -> StepArrays:
        """Return the problem with groups joined, given the new group of each, and of both ends of each edge."""
        a: StepArrays = StepArrays.__new__(StepArrays)
        a.ops, a.devices, a.unit, a.even = self.ops, self.devices, self.unit, self.even
        a.before_first, a.before, a.after_first, a.after = self.before_first, self.before, self.after_first, self.after
        a.place, a.twin, a.zone, a.level, a.near = self.place, self.twin, self.zone, self.level, self.near
        a.seconds, a.delay, a.room, a.rank = self.seconds, self.delay, self.room, self.rank
        by_label = np.argsort(label, kind="stable")
        first = np.searchsorted(label[by_label], np.arange(label.max() + 1))
        need, work = np.asarray(self.need)[by_label], np.asarray(self.work)[:, by_label]
        need, work = np.add.reduceat(need, first), np.add.reduceat(work, first, axis=1)
        a._by_group(label[np.asarray(self.group)], work, need, source, target)
        return a

    def _by_group(self, group: Any, work: FloatArray, need: FloatArray, source: Any, target: Any) -> None:
        self.groups, self.group, self.work, self.need = len(need), _int(group), _float(work), _float(need)
        self.heavy = _int(np.argsort(-need, kind="stable"))
        across = np.flatnonzero(source != target)
        both = np.stack([np.tile(across, 2), np.concatenate([target[across], source[across]])])
        by_group, self.edge_first = ragged(np.concatenate([source[across], target[across]]), both.T, self.groups)
        self.edge, self.other = _int(by_group[:, 0]), _int(by_group[:, 1])


def within(x: Ints, most: Int) -> bool:
    """Return whether all are indices of something with so many entries."""
    fits: bint = True
    for i in range(len(x)):
        fits = fits and 0 <= x[i] < most
    return fits


def _int(x: Any) -> NDArray[np.int64]:
    # a copy: compiled code takes 64 bits, and no array that is read-only
    return np.array(x, dtype=np.int64, order="C")


def _float(x: Any) -> FloatArray:
    return np.array(x, dtype=np.float64, order="C")
