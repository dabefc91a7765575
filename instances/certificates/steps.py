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
from .exact import SLACK, Budget, exact
from .paths import early

STEPS = 10**8
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

    objectives: ClassVar[tuple[str, ...]] = ("step",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, less what starts may be early by."""
        if self.threshold <= 0:
            raise InstanceError("threshold", f"{self.threshold} is not above 0")
        search = Search(problem, self.threshold, min(self.steps, STEPS), _delays(problem))
        todo: list[tuple[tuple[int, ...], Apart, Arcs]] = [(search.of, frozenset(), ())]
        while todo:
            todo += search.split(*todo.pop())
        return self.threshold / (1 + SLACK) / (1 + early(problem, len(search.took)))


def _delays(problem: Any) -> list[Any]:
    """Return the seconds that what each op makes is on its way at least, from one device to another."""
    n = problem.graph.n_ops
    if problem.cluster.n_devices == 1:
        return [inf] * n
    a, b = np.triu_indices(problem.cluster.n_devices, 1)
    a, b = np.concatenate([a, b]), np.concatenate([b, a])
    return [Fraction(problem.delay(np.full(len(a), v), a, b).min().item()) for v in range(n)]


class Search:
    """Seconds are whole numbers, rounded down; a part of the search has a group for each class, and arcs of order."""

    def __init__(self, problem: Any, threshold: Fraction, steps: int, least: list[Any]) -> None:
        """Take what it takes at `least` to send what each op makes."""
        graph, cluster = problem.graph, problem.cluster
        self.steps, n, self.goal = Budget(steps), graph.n_ops, 1 << 50
        scale = self.goal / threshold
        rows = [row for row, count in zip(exact(problem.time()), cluster.counts().tolist(), strict=True) if count]
        self.took = [int(Fraction(min(threshold, *(row[v] for row in rows))) * scale) for v in range(n)]
        # what is shorter may be within something else, as far as the verifier can tell
        self.busy = [x > self.goal * 2 * (n + 2) * SLACK for x in self.took]
        self.of = numbered(graph.colocation.tolist())
        self.devices = cluster.n_devices
        self.delay = [int(Fraction(min(threshold, x)) * scale) for x in least]
        self.edges = sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
        room: Any = max(inf if x.memory is None else Fraction(x.memory) * (1 + SLACK) for x in cluster.device_types)
        self.room, self.bytes = room, [Fraction(x) for x in graph.memory.tolist()]

    def groups(self, of: tuple[int, ...]) -> dict[int, list[int]]:
        """Return the ops of each group."""
        groups: dict[int, list[int]] = {}
        for v, g in enumerate(of):
            groups.setdefault(g, []).append(v)
        return groups

    def full(self, groups: dict[int, list[int]]) -> bool:
        """Return whether a group has more memory than a device."""
        return any(sum(self.bytes[v] for v in ops) > self.room for ops in groups.values())

    def split(self, of: tuple[int, ...], apart: Apart, arcs: Arcs) -> list[tuple[tuple[int, ...], Apart, Arcs]]:
        """Return the parts that a part is split into, none if it has no plan: first do what there is no choice of."""
        while True:
            groups, paths = self.groups(of), self.paths(of, apart, arcs)
            if self.full(groups) or paths is None or any(a == b for a, b in apart):
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
            return [(of, apart | {pair_of(*choice)}, arcs), (*joined(of, apart, *choice), arcs)]

    def join(
        self, of: tuple[int, ...], apart: Apart, head: list[int], tail: list[int]
    ) -> tuple[tuple[int, ...], Apart, tuple[int, int] | None, int]:
        """Join groups that are too long apart; return of the others those that are the longest, and how long."""
        choice, longest = None, -1
        for u, v in self.edges:
            a, b = of[u], of[v]
            if a == b or pair_of(a, b) in apart:
                continue
            length = head[u] + self.took[u] + self.delay[u] + self.took[v] + tail[v]
            if length >= self.goal:
                of, apart = joined(of, apart, a, b)
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
            self.steps.left -= len(jobs) ** 2 // 2
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
            near = [h for h in found if pair_of(g, h) not in apart]
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
            sent = pair_of(of[u], of[v]) in apart
            ways[u].append((v, self.delay[u] if sent else 0))
            waits[v] += 1
        self.steps.take(len(self.edges) + len(arcs))
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


def pair_of(a: int, b: int) -> tuple[int, int]:
    """Return two groups, the lesser first."""
    return (a, b) if a < b else (b, a)


def joined(of: tuple[int, ...], apart: Apart, a: int, b: int) -> tuple[tuple[int, ...], Apart]:
    """Return the groups with b made a part of a; a pair that was apart and is not any more has twice the same."""
    pairs = (pair_of(*(a if g == b else g for g in pair)) for pair in apart)
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
