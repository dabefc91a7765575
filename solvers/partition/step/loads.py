"""How long a placement keeps every device and link busy, kept up to date move by move, and what its makespan may be.

The estimate joins the longest path with the busiest devices and links. The path is linear between two looks at it: an
edge counts by the share of a random critical path that goes through it, its multiplier in the dual of the longest path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import IntArray

from ...compiled.kernel import Floats, Halves2, Ints, lean
from .arrays import Arrays, Links
from .model import Prepared

_PEAK = 16
"""Power by which the busy times of devices and links are joined: four squares."""
_SOFT = 0.03
"""Of a path, by how much shorter ones are still critical."""
_OVER = 2.0
"""A device above its memory counts as too busy by so many times the excess."""


class Traffic(NamedTuple):
    """Where a search is; n ops, e edges, k devices, m links, G groups.

    Attributes:
        where, device: of each group, int64 (G,), and of each op, int64 (n,).
        left: bytes left on each device, float64 (k,).
        member_first, member: ops of each group, CSR, int64.
        readers: of each op's output on each device, int32 (n, k).
        busy: seconds of each device, then of each link, float64 (k + m,).
        stamp: what met each device last, int64 (k,).
        edge, share: multiplier of each edge, and what the last look says, in the order of `Arrays.after`, float64 (e,).
        back: place in `edge` of each entry of `Arrays.before`, int64 (e,).
        flow, tail: of each op, its multiplier and the longest path from its start, float64 (n,).
        topological: ops in a topological order, int64 (n,).
        best: device of each group in the best placement, int64 (G,).
        value: path by the multipliers, estimate, and that of the best, float64 (3,).
    """

    where: Ints
    device: Ints
    left: Floats
    member_first: Ints
    member: Ints
    readers: Halves2
    busy: Floats
    stamp: Ints
    edge: Floats
    share: Floats
    back: Ints
    flow: Floats
    tail: Floats
    topological: Ints
    best: Ints
    value: Floats


def traffic_of(p: Prepared, links: Links, where: IntArray) -> Traffic:
    """Return a search that is at a placement of the groups."""
    a, n, k, edges = p.arrays, p.n, p.n_devices, len(p.edges[0])
    member = np.argsort(a.group, kind="stable")
    member_first = np.concatenate([[0], np.cumsum(np.bincount(p.group_of, minlength=p.n_groups))])
    by_reader = np.lexsort((p.edges[0], p.edges[1]))
    return Traffic(
        where.copy(), where[a.group], np.zeros(k), member_first, member, np.zeros((n, k), np.int32),
        np.zeros(k + len(links.busy)), np.zeros(k, np.int64), np.zeros(edges), np.zeros(edges), by_reader,
        np.zeros(n), np.zeros(n), p.order.astype(np.int64), where.copy(), np.zeros(3),
    )  # fmt: skip


@lean
def count(a: Arrays, links: Links, s: Traffic) -> None:
    """Go to the best placement, and count its loads."""
    k, n = len(a.room), len(s.device)
    for g in range(len(s.where)):
        s.where[g] = s.best[g]
    for d in range(k):
        s.left[d] = a.room[d]
    for g in range(len(s.where)):
        s.left[s.where[g]] -= a.need[g]
    for v in range(n):
        s.device[v] = s.where[a.group[v]]
        for d in range(k):
            s.readers[v, d] = 0
    for x in range(len(s.busy)):
        s.busy[x] = 0.0
    for v in range(n):
        d = s.device[v]
        s.busy[d] += a.seconds[d, v]
        for j in range(a.after_first[v], a.after_first[v + 1]):
            other = s.device[a.after[j]]
            if s.readers[v, other] == 0:
                _send(a, links, s, v, d, other, 1.0)
            s.readers[v, other] += 1


@lean
def _send(a: Arrays, links: Links, s: Traffic, v: int, here: int, there: int, sign: float) -> None:
    """Add the output of op v to the links between two devices, or take it off."""
    if here == there or len(links.busy) == 0:
        return
    took = sign * a.delay[a.level[here, there], v]
    if took != 0.0:
        for link in links.route[here, there]:
            if link >= 0:
                s.busy[len(a.room) + link] += took


@lean
def _shift(a: Arrays, links: Links, s: Traffic, v: int, y: int, mark: int) -> None:
    """Take op v to device y."""
    x, more = s.device[v], s.flow[v] * (a.seconds[y, v] - a.seconds[s.device[v], v])
    s.busy[x] -= a.seconds[x, v]
    s.busy[y] += a.seconds[y, v]
    for i in range(a.before_first[v], a.before_first[v + 1]):
        u = a.before[i]
        d = s.device[u]
        more += s.edge[s.back[i]] * (a.delay[a.level[y, d], u] - a.delay[a.level[x, d], u])
        s.readers[u, x] -= 1
        if s.readers[u, x] == 0:
            _send(a, links, s, u, d, x, -1.0)
        if s.readers[u, y] == 0:
            _send(a, links, s, u, d, y, 1.0)
        s.readers[u, y] += 1
    for j in range(a.after_first[v], a.after_first[v + 1]):
        d = s.device[a.after[j]]
        more += s.edge[j] * (a.delay[a.level[y, d], v] - a.delay[a.level[x, d], v])
        if s.stamp[d] != mark:
            s.stamp[d] = mark
            _send(a, links, s, v, x, d, -1.0)
            _send(a, links, s, v, y, d, 1.0)
    s.device[v] = y
    s.value[0] += more


@lean
def move(a: Arrays, links: Links, s: Traffic, g: int, d: int, mark: int) -> int:
    """Take a group to a device; return the next mark."""
    s.left[s.where[g]] += a.need[g]
    s.left[d] -= a.need[g]
    s.where[g] = d
    for i in range(s.member_first[g], s.member_first[g + 1]):
        _shift(a, links, s, s.member[i], d, mark)
        mark += 1
    return mark


@lean
def estimate(a: Arrays, s: Traffic, path: float, sharp: float) -> float:
    """Return the estimate of the makespan, with that path."""
    k, most, total = len(a.room), 0.0, 0.0
    over = 1.0
    for d in range(k):
        if s.left[d] < 0.0:
            over -= _OVER * s.left[d] / a.room[d]
    for x in s.busy:
        most = max(most, x)
    if most <= 0.0:
        return path * over
    for x in s.busy:
        y = x / most
        y *= y
        y *= y
        y *= y
        total += y * y
    load = most * total ** (1.0 / _PEAK)
    return float((path**sharp + load**sharp) ** (1.0 / sharp)) * over


@lean
def look(a: Arrays, s: Traffic, fresh: float) -> float:
    """Find the longest path, return its length, and renew such a share of the multipliers."""
    n, path = len(s.device), 0.0
    for i in range(n - 1, -1, -1):
        v = s.topological[i]
        d, rest = s.device[v], 0.0
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            rest = max(rest, s.tail[w] + a.delay[a.level[d, s.device[w]], v])
        s.tail[v] = rest + a.seconds[d, v]
        path = max(path, s.tail[v])
    soft, total = _SOFT * path + 1e-300, 0.0
    for v in range(n):
        s.flow[v] *= 1.0 - fresh
        if a.before_first[v] == a.before_first[v + 1]:
            total += np.exp((s.tail[v] - path) / soft)
    for j in range(len(s.edge)):
        s.edge[j] *= 1.0 - fresh
    for i in range(n):
        v = s.topological[i]
        through = 0.0
        if a.before_first[v] == a.before_first[v + 1]:
            through = fresh * np.exp((s.tail[v] - path) / soft) / total
        for e in range(a.before_first[v], a.before_first[v + 1]):
            through += s.share[s.back[e]]
        d = s.device[v]
        s.flow[v] += through
        rest, weight = s.tail[v] - a.seconds[d, v], 0.0
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            weight += np.exp((s.tail[w] + a.delay[a.level[d, s.device[w]], v] - rest) / soft)
        for j in range(a.after_first[v], a.after_first[v + 1]):
            w = a.after[j]
            s.share[j] = through * np.exp((s.tail[w] + a.delay[a.level[d, s.device[w]], v] - rest) / soft) / weight
            s.edge[j] += s.share[j]
    return path
