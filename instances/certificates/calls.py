"""Bounds of latency by order: a path is cut into calls, each no shorter than a minimum cut around it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np

from .classes import numbered
from .cuts import cheapest
from .document import Certificate
from .exact import SLACK, exact

_STEPS = 10**8
"""Arcs that any certificate may have looked at: minutes."""
_LEAVES = 24
"""Cuts that a call may take until its memory is respected."""
_ENDLESS = 1 << 47
"""More than anything takes that can be done, a power of two more than all together."""


@dataclass(frozen=True, slots=True)
class CallsCertificate(Certificate):
    """The ops of a path are in calls of accelerators, one interval each, or on hosts, one after the other.

    A call that has p[i..j] of a path p and no more of it holds all that is between these two, the hull, and nothing
    that is before p[i-1] or after p[j+1]: no call waits for itself. So it takes at least the compute and the transfers
    of the cheapest set with the one and without the other, a minimum cut. The least sum of intervals is a bound. Cuts
    are found of the intervals that it has, until there is none without or the steps are used up.

    Attributes:
        ops: of a path, each the source of an edge to the next.
        steps: arcs of cuts to look at, about.
    """

    objectives: ClassVar[tuple[str, ...]] = ("latency",)

    ops: tuple[int, ...]
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the least sum over the intervals of the path."""
        from .paths import PathCertificate

        if not self.ops or PathCertificate(self.ops).bound(problem) == inf:
            return 0 if not self.ops else inf
        path, known = _CallPath(problem, self.ops), set[tuple[int, int]]()
        while path.looked <= min(self.steps, _STEPS):
            value, used = path.intervals()
            dull = [x for x in used if x not in known]
            if not dull or value >= _ENDLESS:
                break
            for i, j in dull:
                path.least[i, j] = max(int(path.least[i, j]), path.cut(i, j))
            known.update(dull)
        value, _ = path.intervals()
        # sums of floats are off by less, first those of each call and then those of all
        return inf if value >= _ENDLESS else Fraction(value) / path.scale / (1 + SLACK) ** 2


class _CallPath:
    """A path and what calls on it take, in whole numbers rounded down."""

    def __init__(self, problem: Any, ops: tuple[int, ...]) -> None:
        graph, cluster = problem.graph, problem.cluster
        self.of, self.looked, m = numbered(graph.colocation.tolist()), 0, len(ops)
        kinds = [
            (t, kind)
            for t, (kind, n) in enumerate(zip(cluster.device_types, cluster.counts().tolist(), strict=True))
            if n
        ]
        rows = exact(problem.time())
        calls, hosts = ([rows[t] for t, kind in kinds if kind.host is host] for host in (False, True))
        self.calls = sum(
            int(n) for kind, n in zip(cluster.device_types, cluster.counts(), strict=True) if not kind.host
        )
        nothing: list[Any] = [inf] * graph.n_ops
        own = [min(x) for x in zip(nothing, *calls, strict=True)]
        host = [min(x) for x in zip(nothing, *hosts, strict=True)]
        cost = exact(problem.transfer()[None])[0]
        pins: dict[int, set[int]] = {}
        for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
            pins.setdefault(u, {u}).add(v)
        # each call and host takes part in an op once, and in a transfer no more often than it has ends
        most = sum(x for x in (*own, *host) if x < inf) + sum(len(x) * cost[u] for u, x in pins.items())
        self.scale = Fraction(_ENDLESS // 2) / (most or 1)
        self.own, self.host = ([self.whole(x) for x in row] for row in (own, host))
        self.every, self.host = self.host, [self.host[v] for v in ops]
        self.nets = [({self.of[v] for v in x}, self.whole(cost[u])) for u, x in pins.items() if cost[u]]
        self.classes = [0] * (max(self.of) + 1)
        for g, takes in zip(self.of, self.own, strict=True):
            self.classes[g] += takes
        first, last = {v: i for i, v in enumerate(ops)}, {v: i for i, v in enumerate(ops)}
        order = graph.topological_order().tolist()
        for v in order:
            first.setdefault(v, -1)
            for w in pins.get(v, {v}) - {v}:
                first[w] = max(first.get(w, -1), first[v])
        for v in reversed(order):
            after = min((last[w] for w in pins.get(v, {v}) - {v}), default=m)
            last[v] = min(last.get(v, m), after)
        # the last place of the path at or before each op, the first at or after it
        self.lo, self.hi = (np.array([x[v] for v in range(graph.n_ops)]) for x in (first, last))
        self.order: list[int] = order
        self.sources: list[list[int]] = [[] for _ in order]
        for u, targets in pins.items():
            for v in targets - {u}:
                self.sources[v].append(u)
        room = max((inf if x.memory is None else Fraction(x.memory) for _, x in kinds if not x.host), default=inf)
        # bytes in parts of what a device has
        part = Fraction(0) if room == inf else _ENDLESS // 2 / (room * (1 + SLACK) or 1)
        self.room = _ENDLESS // 2 if room else 0
        self.bytes = [min(int(Fraction(x) * part), _ENDLESS) for x in graph.memory.tolist()]
        self.least = self._hulls(ops, [self.whole(cost[v]) for v in ops])

    def _hulls(self, ops: tuple[int, ...], sent: list[int]) -> Any:
        """Return what a call on each interval takes at least: its hull, and what the path moves in and out."""
        m, inner, home = len(ops), (self.lo >= 0) & (self.hi < len(ops)), dict[int, int]()
        for v in np.flatnonzero(inner).tolist():
            home.setdefault(self.of[v], v)
        # what is in a class with an op of the hull is in the call too
        at = np.array([v if inner[v] else home.get(g, -1) for v, g in enumerate(self.of)])
        held = at >= 0
        place = self.lo[at[held]], self.hi[at[held]]
        least, size = (np.zeros((m, m), dtype=np.int64) for _ in range(2))
        for total, amounts in ((least, self.own), (size, self.bytes)):
            np.add.at(total, place, np.array(amounts)[held])
            total[:] = total[::-1].cumsum(axis=0)[::-1].cumsum(axis=1)
        least += np.array([0, *sent[:-1]])[:, None] + np.array([*sent[:-1], 0])
        least[(size > self.room) | (least > _ENDLESS)] = _ENDLESS
        least[np.tril_indices(m, -1)] = _ENDLESS
        first: dict[int, int] = {}
        for b, v in enumerate(ops):
            a = first.setdefault(self.of[v], b)
            if a < b:  # both are in a call, or neither
                least[: a + 1, a:b] = least[a + 1 : b + 1, b:] = _ENDLESS
        return least

    def intervals(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the least sum of intervals in no more calls than there are devices, and those that it has."""
        m, hosts = len(self.host), np.cumsum([0, *self.host])
        least, begins = np.minimum(hosts, _ENDLESS), []
        for _ in range(self.calls):
            fewer, ways = least, least[:-1, None] + self.least
            begin = ways.argmin(axis=0)
            through = ways[begin, np.arange(m)]
            least = np.minimum(
                np.append(0, hosts[1:] + np.minimum.accumulate(np.minimum(through - hosts[1:], 0))), _ENDLESS
            )
            begins.append([0, *np.where(through < least[:-1] + self.host, begin, -1).tolist()])
            if (least == fewer).all():
                break
        used, j = [], m
        while j > 0 and begins:
            i = begins[-1][j]
            used += [(i, j - 1)] if i >= 0 else []
            j = i if i >= 0 else j - 1
            if i >= 0:
                begins.pop()
        return int(least[m]), used

    def whole(self, amount: Fraction | float) -> int:
        """Return seconds in small units, rounded down."""
        return _ENDLESS if amount == inf else int(amount * self.scale)

    def _aside(self, i: int, j: int, chosen: set[int]) -> tuple[list[int], int]:
        """Return what classes take in a call on p[i..j] beyond what they take anyhow, in it or before or after it.

        Nothing is before p[0]: what leads to its call and is not in it is done before, and so are the ops of a way
        there, one after the other; likewise behind the end. The ways are the longest outside of the `chosen` classes.
        """
        takes, more, m = list(self.classes), 0, len(self.host)
        upper, lower = (self.lo < 0) & (self.hi <= j), (self.lo >= i) & (self.hi == m)
        for near, wanted in ((i == 0, upper), (j == m - 1, lower)):
            length, came, end = {-1: 0}, dict[int, int](), -1
            for v in self.order if near else ():
                if wanted[v] and self.of[v] not in chosen:
                    came[v] = max((u for u in self.sources[v] if u in length), key=lambda u: length[u], default=-1)
                    length[v] = length[came[v]] + min(self.own[v], self.every[v])
                    end = v if length[v] > length[end] else end
            more += length[end]
            while end >= 0:
                takes[self.of[end]] -= min(self.own[end], self.every[end])
                end = came[end]
        return takes, more

    def cut(self, i: int, j: int) -> int:
        """Return the least that a call takes which has p[i..j], and so its hull, and not what is out."""
        node = dict[int, int]()
        for side, members in enumerate(((self.lo >= i) & (self.hi <= j), (self.hi < i) | (self.lo > j))):
            for v in np.flatnonzero(members).tolist():
                if node.setdefault(self.of[v], side) != side:
                    return _ENDLESS
        best, todo = _ENDLESS, [node]
        # where the cheapest set is too large, its largest class is in it or not
        for k, node in enumerate(todo):
            value, chosen, looked = cheapest(self.classes, self.nets, node, _ENDLESS)
            takes, more = self._aside(i, j, chosen)
            if more:
                value = max(value, more + cheapest(takes, self.nets, node, _ENDLESS)[0])
            self.looked += 2 * looked
            size: dict[int, int] = {}
            for v, x in enumerate(self.bytes):
                size[self.of[v]] = size.get(self.of[v], 0) + (
                    x if node.get(self.of[v]) == 0 or self.of[v] in chosen else 0
                )
            open_ = [g for g in chosen if g not in node]
            if value >= best or (not open_ and sum(size.values()) > self.room):
                continue
            if sum(size.values()) <= self.room or k >= _LEAVES:
                best = value
                continue
            g = max(open_, key=lambda g: (size[g], -g))
            todo += [node | {g: 1}, node | {g: 0}]
        return best
