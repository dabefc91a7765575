"""Refute a threshold of latency by branching: which classes of ops are in a call together, and which are not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf
from typing import Any, ClassVar

from ..errors import InstanceError
from .classes import numbered
from .document import Certificate
from .exact import SLACK, exact
from .steps import Apart, _joined, _pair

_STEPS = 10**8
"""Edges and pairs that any certificate may have looked at: minutes."""


@dataclass(frozen=True, slots=True)
class Grouped(Certificate):
    """Split the plans below a threshold until a path of calls shows that there is none.

    All devices are accelerators: each runs its ops in one call, which takes its inputs in first and sends its outputs
    last. Two classes are in one call or in two. What is in one call is one group; groups that wait for one another in a
    circle are in one call, for no call waits for itself. A call takes the compute of its groups, each op at its
    fastest, and the transfers that are certain: what one sends to a group that is not in its call. The groups of a path
    run one after the other, in one call or in several; a transfer counts once in what may be one call.

    Attributes:
        threshold: seconds.
        steps: edges and pairs that are looked at until the search is over, at most.
    """

    argument: ClassVar[str] = "grouped"
    objectives: ClassVar[tuple[str, ...]] = ("latency",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, less what sums of floats may be off by."""
        if self.threshold <= 0:
            raise InstanceError("threshold", f"{self.threshold} is not above 0")
        if problem.hosts().any():
            raise InstanceError("argument", "'grouped' is about devices that are no hosts")
        search = _Search(problem, self.threshold, min(self.steps, _STEPS))
        todo: list[tuple[tuple[int, ...], Apart]] = [(search.of, frozenset())]
        while todo:
            todo += search.split(*todo.pop())
        return self.threshold / (1 + SLACK) ** 2


class _Search:
    """Seconds are whole numbers, rounded down; a part of the search has a group for each class, and pairs apart."""

    def __init__(self, problem: Any, threshold: Fraction, steps: int) -> None:
        graph, cluster, self.left, self.goal = problem.graph, problem.cluster, steps, 1 << 50
        scale = self.goal / threshold
        rows = [row for row, count in zip(exact(problem.time()), cluster.counts().tolist(), strict=True) if count]
        self.own = [int(min(threshold, *(Fraction(x) if x < inf else threshold for x in v)) * scale)
                    for v in zip(*rows, strict=True)]  # fmt: skip
        self.of = numbered(graph.colocation.tolist())
        self.devices = cluster.n_devices
        self.edges = sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
        self.sent = [int(min(threshold, Fraction(x)) * scale) for x in problem.transfer().tolist()]
        room: Any = max(inf if x.memory is None else Fraction(x.memory) * (1 + SLACK) for x in cluster.device_types)
        self.room, self.bytes = room, [Fraction(x) for x in graph.memory.tolist()]

    def split(self, of: tuple[int, ...], apart: Apart) -> list[tuple[tuple[int, ...], Apart]]:
        """Return the parts that a part is split into, none if it has no plan: first do what there is no choice of."""
        while True:
            if any(a == b for a, b in apart):
                return []
            look = _Look(self, of, apart)
            if look.circle:
                for g in look.circle[1:]:
                    of, apart = _joined(of, apart, look.circle[0], g)
                continue
            if look.longest >= self.goal or max(look.size.values()) > self.room:
                return []
            together, choice, new = look.pairs(apart)
            if together or new:
                apart |= new
                for a, b in together:
                    a, b = (of[look.first[g]] for g in (a, b))
                    if a != b:
                        of, apart = _joined(of, apart, a, b)
                continue
            clique, near = look.clique(apart)
            if len(clique) > self.devices:
                return []
            choice = choice or near
            if choice is None:
                raise InstanceError("threshold", "no path shows that a plan takes no less")
            return [(of, apart | {_pair(*choice)}), _joined(of, apart, *choice)]


class _Look:
    """What a part of the search is: the groups in an order, what each takes, the longest way to and from each."""

    def __init__(self, search: _Search, of: tuple[int, ...], apart: Apart) -> None:
        self.search = search
        self.first, self.size = dict[int, int](), dict[int, Fraction]()
        self.takes: dict[int, int] = {}
        for v, g in enumerate(of):
            self.first.setdefault(g, v)
            self.size[g] = self.size.get(g, Fraction(0)) + search.bytes[v]
            self.takes[g] = self.takes.get(g, 0) + search.own[v]
        self.own = dict(self.takes)
        self.after: dict[int, set[int]] = {g: set() for g in self.first}
        before: dict[int, set[int]] = {g: set() for g in self.first}
        for u, v in search.edges:
            if of[u] != of[v]:
                self.after[of[u]].add(of[v])
                before[of[v]].add(of[u])
        search.left -= len(search.edges) + len(of)
        if search.left < 0:
            raise InstanceError("steps", "the search is not over in so many")
        waits = {g: len(x) for g, x in before.items()}
        self.order = [g for g, x in waits.items() if not x]
        for g in self.order:
            for h in self.after[g]:
                waits[h] -= 1
                if not waits[h]:
                    self.order.append(h)
        self.circle: list[int] = []
        if len(self.order) < len(before):
            g = next(g for g, x in waits.items() if x)
            while g not in self.circle:
                self.circle.append(g)
                g = next(h for h in before[g] if waits[h])
            del self.circle[: self.circle.index(g)]
            return
        place = {g: i for i, g in enumerate(self.order)}
        self.reach = dict[int, int]()
        for g in reversed(self.order):
            self.reach[g] = 1 << place[g]
            for h in self.after[g]:
                self.reach[g] |= self.reach[h]
        self.place = place
        self.more: dict[tuple[int, int], int] = {}
        self._transfers(of, apart)
        self.head = dict.fromkeys(self.order, 0)
        self.tail = dict.fromkeys(self.order, 0)
        for g in self.order:
            for h in self.after[g]:
                self.head[h] = max(self.head[h], self.head[g] + self.takes[g])
        for g in reversed(self.order):
            self.tail[g] = max((self.takes[h] + self.tail[h] for h in self.after[g]), default=0)
        self.longest = max(self.head[g] + self.takes[g] + self.tail[g] for g in self.order)

    def ordered(self, a: int, b: int) -> bool:
        """Return whether a path leads from one group to the other."""
        return bool(self.reach[a] >> self.place[b] & 1 or self.reach[b] >> self.place[a] & 1)

    def _transfers(self, of: tuple[int, ...], apart: Apart) -> None:
        """Add the transfers that are certain to what groups take; `more`: what two take in addition if apart."""
        users: dict[int, set[int]] = {}
        for u, v in self.search.edges:
            if of[u] != of[v] and self.search.sent[u]:
                users.setdefault(u, set()).add(of[v])
        for u, groups in users.items():
            a, cost = of[u], self.search.sent[u]
            away = [g for g in groups if _pair(a, g) in apart]
            certain = bool(away) or any(_pair(*x) in apart for x in combinations(groups, 2))
            self.takes[a] += cost if certain else 0
            for g in groups:
                # of those that may be in one call, on a path, only one pays
                near = [h for h in away if h != g and _pair(g, h) not in apart and self.ordered(g, h)]
                if g not in away:
                    key = a, g
                    self.more[key] = self.more.get(key, 0) + (0 if certain else cost) + (0 if near else cost)
                elif not any(self.place[h] < self.place[g] for h in near):
                    self.takes[g] += cost

    def pairs(self, apart: Apart) -> tuple[list[tuple[int, int]], tuple[int, int] | None, Apart]:
        """Return groups that cannot be apart, of others those that are the longest apart, and what cannot be one."""
        together, choice, longest, goal = [], None, -1, self.search.goal
        for a in self.order:
            for b in self.after[a]:
                if _pair(a, b) in apart:
                    continue
                length = self.head[a] + self.takes[a] + self.more.get((a, b), 0) + self.takes[b] + self.tail[b]
                if length >= goal:
                    together.append((a, b))
                elif length > longest:
                    longest, choice = length, (a, b)
        new = set()
        self.search.left -= len(self.order) ** 2 // 2
        through = {g: self.head[g] + self.takes[g] + self.tail[g] for g in self.order}
        for a, b in combinations(self.order, 2) if not together else ():
            much = max(through[a] + self.own[b], through[b] + self.own[a]) >= goal and not self.ordered(a, b)
            if (much or self.size[a] + self.size[b] > self.search.room) and _pair(a, b) not in apart:
                new.add(_pair(a, b))
        return together, choice, frozenset(new)

    def clique(self, apart: Apart) -> tuple[list[int], tuple[int, int] | None]:
        """Return groups that are in a call each, the longest first, and the first two of which that is not certain."""
        found = list[int]()
        for g in sorted(self.order, key=lambda g: (-self.own[g], g)):
            near = [h for h in found if _pair(g, h) not in apart]
            if near:
                return found, (near[0], g)
            found.append(g)
        return found, None
