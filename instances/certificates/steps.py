"""Refute a threshold of step time by branching: which ops share a device, and which of two comes first."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import combinations
from math import inf
from typing import Any, ClassVar

import numpy as np

from ..errors import InstanceError
from .classes import numbered
from .document import Certificate
from .exact import SLACK, exact

_STEPS = 10**8
"""Arcs and pairs that any certificate may have looked at: minutes."""

Apart = frozenset[tuple[int, int]]
Arcs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Together(Certificate):
    """Split the plans below a threshold until a path shows that there is none.

    Every op takes its fastest time. Two classes are together on a device, then their ops run one after the other; or
    apart, then what one sends the other takes at least the fastest link. Of both ways out of a choice one is often too
    long, by the longest path; where neither is, both are looked at.

    Attributes:
        threshold: seconds.
        steps: arcs of paths that are looked at until the search is over, at most.
    """

    argument: ClassVar[str] = "together"
    objectives: ClassVar[tuple[str, ...]] = ("step",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, less what starts may be early by."""
        if self.threshold <= 0:
            raise InstanceError("threshold", f"{self.threshold} is not above 0")
        search = _Search(problem, self.threshold, min(self.steps, _STEPS))
        todo: list[tuple[tuple[int, ...], Apart, Arcs]] = [(search.of, frozenset(), ())]
        while todo:
            todo += search.split(*todo.pop())
        return self.threshold / (1 + SLACK) / (1 + (len(search.took) + 1) * SLACK)


class _Search:
    """Seconds are whole numbers, rounded down; a part of the search has a group for each class, and arcs of order."""

    def __init__(self, problem: Any, threshold: Fraction, steps: int) -> None:
        graph, cluster = problem.graph, problem.cluster
        self.left, n, self.goal = steps, graph.n_ops, 1 << 50
        scale = self.goal / threshold
        rows = [row for row, count in zip(exact(problem.time()), cluster.counts().tolist(), strict=True) if count]
        self.took = [int(Fraction(min(threshold, *(row[v] for row in rows))) * scale) for v in range(n)]
        # what is shorter may be within something else, as far as the verifier can tell
        self.busy = [x > self.goal * 2 * (n + 2) * SLACK for x in self.took]
        self.of = numbered(graph.colocation.tolist())
        self.devices = cluster.n_devices
        pairs = np.triu_indices(cluster.n_devices, 1)
        least: list[Any] = [inf] * n
        if self.devices > 1:
            a, b = np.concatenate([pairs[0], pairs[1]]), np.concatenate([pairs[1], pairs[0]])
            kinds = np.unique([problem.delay(np.full(len(a), v), a, b).min() for v in range(n)], return_inverse=True)
            least = [Fraction(kinds[0][k]) for k in kinds[1].tolist()]
        self.delay = [int(Fraction(min(threshold, x)) * scale) for x in least]
        self.edges = sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
        room: Any = max(inf if x.memory is None else Fraction(x.memory) * (1 + SLACK) for x in cluster.device_types)
        self.room, self.bytes = room, [Fraction(x) for x in graph.memory.tolist()]

    def split(self, of: tuple[int, ...], apart: Apart, arcs: Arcs) -> list[tuple[tuple[int, ...], Apart, Arcs]]:
        """Return the parts that a part is split into, none if it has no plan: first do what there is no choice of."""
        while True:
            groups: dict[int, list[int]] = {}
            for v, g in enumerate(of):
                groups.setdefault(g, []).append(v)
            paths = self.paths(of, apart, arcs)
            full = any(sum(self.bytes[v] for v in ops) > self.room for ops in groups.values())
            if full or paths is None or any(a == b for a, b in apart):
                return []
            before, (of, apart, choice, longest) = of, self.join(of, apart, *paths[:2])
            if of != before:
                continue
            orders = self.order(groups, *paths)
            if orders is None:
                return []
            known, pair, length = orders
            if known:
                arcs += tuple(known)
                continue
            if pair and length > longest:
                return [(of, apart, (*arcs, pair)), (of, apart, (*arcs, pair[::-1]))]
            clique, near = self.clique(groups, apart)
            if len(clique) > self.devices:
                return []
            choice = choice or near
            if choice is None:
                raise InstanceError("threshold", "no path shows that a plan takes no less")
            return [(of, apart | {_pair(*choice)}, arcs), (*_joined(of, apart, *choice), arcs)]

    def join(
        self, of: tuple[int, ...], apart: Apart, head: list[int], tail: list[int]
    ) -> tuple[tuple[int, ...], Apart, tuple[int, int] | None, int]:
        """Join groups that are too long apart; return of the others those that are the longest, and how long."""
        choice, longest = None, -1
        for u, v in self.edges:
            a, b = of[u], of[v]
            if a == b or _pair(a, b) in apart:
                continue
            length = head[u] + self.took[u] + self.delay[u] + self.took[v] + tail[v]
            if length >= self.goal:
                of, apart = _joined(of, apart, a, b)
            elif length > longest and self.delay[u]:
                longest, choice = length, (a, b)
        return of, apart, choice, longest

    def order(
        self, groups: dict[int, list[int]], head: list[int], tail: list[int], after: list[int]
    ) -> tuple[list[tuple[int, int]], tuple[int, int] | None, int] | None:
        """Return which ops come first for certain, and the pair that is longest both ways; `None` if none can."""
        orders, pair, longest = list[tuple[int, int]](), None, -1
        for ops in groups.values():
            jobs = [v for v in ops if self.busy[v]]
            self.left -= len(jobs) ** 2 // 2
            if _machine([(head[v], self.took[v], tail[v]) for v in jobs]) >= self.goal:
                return None
            for u, v in combinations(jobs, 2):
                if after[u] >> v & 1 or after[v] >> u & 1:
                    continue
                both = self.took[u] + self.took[v]
                forth, back = head[u] + both + tail[v], head[v] + both + tail[u]
                if min(forth, back) >= self.goal:
                    return None
                if max(forth, back) >= self.goal:
                    orders.append((v, u) if forth >= self.goal else (u, v))
                elif min(forth, back) > longest:
                    longest, pair = min(forth, back), (u, v)
        return orders, pair, longest

    def clique(self, groups: dict[int, list[int]], apart: Apart) -> tuple[list[int], tuple[int, int] | None]:
        """Return groups that are on a device each, busiest first, and the first two of which that is not certain."""
        found = list[int]()
        work = {g: sum(self.took[v] for v in ops if self.busy[v]) for g, ops in groups.items()}
        for g in sorted(work, key=lambda g: (-work[g], g)):
            near = [h for h in found if _pair(g, h) not in apart]
            if near:
                return found, (near[0], g)
            found.append(g)
        return found, None

    def paths(self, of: tuple[int, ...], apart: Apart, arcs: Arcs) -> tuple[list[int], list[int], list[int]] | None:
        """Return the longest way to the start of each op and from its end, and what comes after it, as bits.

        `None` if one is too long, or runs in a circle.
        """
        n = len(of)
        ways: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        waits = [0] * n
        for u, v in (*self.edges, *arcs):
            sent = _pair(of[u], of[v]) in apart
            ways[u].append((v, self.delay[u] if sent else 0))
            waits[v] += 1
        self.left -= len(self.edges) + len(arcs)
        if self.left < 0:
            raise InstanceError("steps", "the search is not over in so many")
        head, tail, after = [0] * n, [0] * n, [0] * n
        order = [v for v in range(n) if not waits[v]]
        for u in order:
            done = head[u] + self.took[u]
            for v, more in ways[u]:
                head[v] = max(head[v], done + more)
                waits[v] -= 1
                if not waits[v]:
                    order.append(v)
        for u in reversed(order):
            for v, more in ways[u]:
                tail[u] = max(tail[u], more + self.took[v] + tail[v])
                after[u] |= after[v] | 1 << v
        if len(order) < n or max(map(sum, zip(head, self.took, tail, strict=True))) >= self.goal:
            return None
        return head, tail, after


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _joined(of: tuple[int, ...], apart: Apart, a: int, b: int) -> tuple[tuple[int, ...], Apart]:
    """Return the groups with b made a part of a; a pair that was apart and is not any more has twice the same."""
    pairs = (_pair(*(a if g == b else g for g in pair)) for pair in apart)
    return tuple(a if g == b else g for g in of), frozenset(pairs)


def _machine(jobs: list[tuple[int, int, int]]) -> int:
    """Return the least time by which one device ends (head, time, tail) jobs if it may interrupt them (Jackson)."""
    jobs, ready = sorted(jobs), list[tuple[int, int]]()
    now, best, i = 0, 0, 0
    while i < len(jobs) or ready:
        now = now if ready else max(now, jobs[i][0])
        while i < len(jobs) and jobs[i][0] <= now:
            heappush(ready, (-jobs[i][2], jobs[i][1]))
            i += 1
        tail, left = heappop(ready)
        until = min(now + left, jobs[i][0] if i < len(jobs) else now + left)
        if until < now + left:
            heappush(ready, (tail, now + left - until))
        else:
            best = max(best, until - tail)
        now = until
    return best
