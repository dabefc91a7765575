"""A step-time problem as flat arrays, which compiled code reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ...compiled.kernel import Bools2, Floats, Floats2, Ints, Ints2, Ints3
from ...compiled.routines import ints
from .. import ragged
from .model import Prepared
from .schedule import mean_rank


class Arrays(NamedTuple):
    """n ops, e edges, k devices, G groups, L levels.

    Attributes:
        before_first, before: ops that each op reads, CSR, int64.
        after_first, after: ops that read it.
        topological: place of each op in a topological order, int64 (n,).
        seconds: of each op on each device, float64 (k, n).
        delay: of each op's output by level, the last row is 0 for level -1, float64 (L + 1, n).
        level: that joins two devices, -1 for one device, int64 (k, k).
        near: whether two devices are joined by a lower level than the highest, bool (k, k).
        group: of each op, int64 (n,).
        work: seconds of each group on each device, infinite where it cannot run or is too large, float64 (k, G).
        need, room: bytes of each group, float64 (G,), and device, float64 (k,), infinite where all fits.
        twin: class of each device, see `Prepared.twins`, int64 (k,).
        edge_first, edge, other: edges of each group to other groups, CSR: number of the edge in `Prepared.edges`, and
            the group at its other end.
        heavy: groups by falling bytes, int64 (G,).
        zone: of each device, those that are near one another share one, int64 (k,).
        bond: groups of one bond, if it is not -1, go to one zone if they can, int64 (G,).
        way, costliest: longest time under way of each edge, seconds, float64 (m,); edges by falling `way`, int64 (m,).
        rank: upward rank of each op, the priority of HEFT, seconds, float64 (n,).
        unit, even: mean time of an op, and an even load, seconds.
    """

    before_first: Ints
    before: Ints
    after_first: Ints
    after: Ints
    topological: Ints
    seconds: Floats2
    delay: Floats2
    level: Ints2
    near: Bools2
    group: Ints
    work: Floats2
    need: Floats
    room: Floats
    twin: Ints
    edge_first: Ints
    edge: Ints
    other: Ints
    heavy: Ints
    zone: Ints
    bond: Ints
    way: Floats
    costliest: Ints
    rank: Floats
    unit: float
    even: float


def arrays_of(p: Prepared) -> Arrays:
    """Return the arrays of a problem."""
    u, v = p.edges
    first, edge, other = neighbours(p.group_of[u], p.group_of[v], p.n_groups)
    fastest = p.fastest[np.isfinite(p.fastest)]
    busy = fastest[fastest > 0]
    total = float(fastest.sum())
    top = int(p.used_levels.max(initial=0))
    way = p.delay[top, u]
    near = (p.level < top) & (len(p.used_levels) > 1)
    return Arrays(
        before_first=_int(p.predecessors[0]),
        before=_int(p.predecessors[1]),
        after_first=_int(p.successors[0]),
        after=_int(p.successors[1]),
        topological=_int(p.rank),
        seconds=_float(p.time[p.type_of]),
        delay=_float(np.concatenate([p.delay, np.zeros((1, p.n))])),
        level=_int(p.level),
        near=np.ascontiguousarray(near),
        group=_int(p.group_of),
        # sums of bytes that had what is too large, and have it no longer, would have lost smaller amounts
        work=_float(np.where(p.allowed.T, p.group_time[p.type_of], np.inf)),
        need=_float(p.group_memory),
        room=_float(p.room),
        twin=_int(p.twins),
        edge_first=first,
        edge=edge,
        other=other,
        heavy=_int(np.argsort(-p.group_memory, kind="stable")),
        # that of the first device near it, its own if it is far from all
        zone=_int((near | np.eye(p.n_devices, dtype=bool)).argmax(axis=1)),
        bond=np.full(p.n_groups, -1),
        way=way,
        costliest=_int(np.argsort(-way, kind="stable")),
        rank=_float(mean_rank(p)),
        unit=float(busy.mean()) if len(busy) else 1.0,
        even=total / p.n_devices if total > 0 else 1.0,
    )


def neighbours(a: IntArray, b: IntArray, count: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the edges of each group to other groups, see `Arrays`, given the groups of the ends of each edge."""
    across = np.flatnonzero(a != b)
    both = np.stack([np.tile(across, 2), np.concatenate([b[across], a[across]])], axis=1)
    ends, first = ragged(np.concatenate([a[across], b[across]]), both, count)
    return _int(first), _int(ends[:, 0]), _int(ends[:, 1])


def _int(x: Any) -> IntArray:
    # a copy: compiled code takes 64 bits, and no array that is read-only
    return np.array(x, dtype=np.int64, order="C")


def _float(x: Any) -> FloatArray:
    return np.array(x, dtype=np.float64, order="C")


class Links(NamedTuple):
    """The links of a cluster and what they do when; n ops, k devices, m links; nothing without contention.

    Attributes:
        route: links between two devices, int64 (k, k, most), -1 behind the last.
        low, high, busy: stretches of each link, see `timing.first_gap`; float64 (m, transfers) twice, int64 (m,).
        sent, made: when the output of each op begins to be sent to each device, float64 (n, k), and by which schedule,
            int64 (n, k).
        schedule: number of the schedule, int64 (1,).
        reads: what an op reads, in the order in which it is made, int64 (n,).
    """

    route: Ints3
    low: Floats2
    high: Floats2
    busy: Ints
    sent: Floats2
    made: Ints2
    schedule: Ints
    reads: Ints


def _links(p: Prepared) -> Links:
    n, k, m, transfers = (p.n, p.n_devices, len(p.links.names), len(p.edges[0])) if p.contention else (0, 0, 0, 0)
    return Links(
        p.links.table() if p.contention else np.full((k, k, 1), -1), np.zeros((m, transfers)), np.zeros((m, transfers)),
        np.zeros(m, np.int64), np.zeros((n, k)), np.zeros((n, k), np.int64), np.zeros(1, np.int64),
        np.zeros(n, np.int64),
    )  # fmt: skip


class Workroom(NamedTuple):
    """Where a schedule is made; n ops, k devices.

    Attributes:
        device: of each op, int64 (n,).
        order: in which ops are scheduled, int64 (n,); nearly that of the schedule before.
        topological: ops in a topological order, int64 (n,).
        tail: longest way from the start of each op to the end, float64 (n,).
        start, finish: of each op, float64 (n,).
        low, high, busy: busy stretches of each device and how many, see `timing.first_gap`; float64 (k, n) twice, int64
            (k,).
        key, heap: what ops are sorted by, float64 (n,), and how far that is, int64 (n,).
        links: of the cluster; none where transfers do not wait for one another.
    """

    device: Ints
    order: Ints
    topological: Ints
    tail: Floats
    start: Floats
    finish: Floats
    low: Floats2
    high: Floats2
    busy: Ints
    key: Floats
    heap: Ints
    links: Links


def workroom(p: Prepared) -> Workroom:
    """Return an empty workroom for a problem."""
    n, k, order = p.n, p.n_devices, p.order.astype(np.int64)

    return Workroom(
        ints(n), order, order.copy(), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((k, n)), np.zeros((k, n)),
        ints(k), np.zeros(n), ints(n), _links(p),
    )  # fmt: skip
