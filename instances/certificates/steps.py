"""Refute a threshold of step time by branching: which ops share a device, and which of two comes first."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import combinations, pairwise
from typing import Any, ClassVar

import numpy as np

from ..errors import InstanceError
from .classes import numbered
from .document import Certificate
from .exact import SLACK, Budget, exact
from .paths import early
from .rooms import Room, rooms_of

STEPS = 10**8
"""Arcs and pairs that any certificate may have looked at: minutes."""

Apart = frozenset[tuple[int, int]]
Arcs = tuple[tuple[int, int], ...]
View = tuple[tuple[int, ...], Apart]
Piece = tuple[tuple[int, ...], tuple[int, ...]]
Part = tuple[tuple[View, ...], Arcs]


@dataclass(frozen=True, slots=True)
class Together(Certificate):
    """Split the plans below a threshold until a path shows that there is none.

    Every op takes its fastest time. Two classes are together on a device, then their ops run one after the other; or
    apart, then what one sends the other takes at least the fastest link. The same holds of the nodes and racks of a
    tree, whose links are slower, and whose parts hold more. Of both ways out of a choice one is often too long, by the
    longest path; where neither is, both are looked at.

    Attributes:
        threshold: seconds.
        steps: arcs of paths that are looked at until the search is over, at most.
        parts: seconds that the parts of `series_of` take at least, the threshold in all; none: all ops are one part.
    """

    objectives: ClassVar[tuple[str, ...]] = ("step",)

    threshold: Fraction
    steps: int
    parts: tuple[Fraction, ...] = ()

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, less what starts may be early by."""
        if self.threshold <= 0:
            raise InstanceError("threshold", f"{self.threshold} is not above 0")
        size = problem.graph.output_bytes()

        def sent(latency: float, bandwidth: float) -> list[Any]:
            return exact(np.where(size > 0, latency + size / bandwidth, 0.0)[None])[0]

        search = Search(problem, self.threshold, min(self.steps, STEPS), sent)
        if not self.parts:
            search.refute(search.turns(problem))
        else:
            series = series_of(problem)
            if len(self.parts) != len(series):
                raise InstanceError("parts", f"has {len(self.parts)} entries where {len(series)} are expected")
            if sum(self.parts) < self.threshold:
                raise InstanceError("parts", f"have {sum(self.parts)} s in all, less than the threshold")
            for part, seconds in zip(series, self.parts, strict=True):
                search.part(part, seconds / self.threshold)
        return self.threshold / (1 + SLACK) / (1 + early(problem, 2 * len(search.took)))


class Search:
    """Seconds are whole numbers, rounded down.

    A part of the search has a group for each class on each level of the tree, pairs that are apart, and arcs of order.
    """

    def __init__(
        self, problem: Any, threshold: Fraction, steps: int, sent: Callable[[float, float], list[Any]]
    ) -> None:
        """Take what it takes to send what each op makes, at a latency and a bandwidth, from `sent`."""
        graph, cluster = problem.graph, problem.cluster
        self.steps, n, self.goal = Budget(steps), graph.n_ops, 1 << 50
        scale = self.goal / threshold
        rows = [row for row, count in zip(exact(problem.time()), cluster.counts().tolist(), strict=True) if count]
        self.took = [int(Fraction(min(threshold, *(row[v] for row in rows))) * scale) for v in range(n)]
        # what is shorter may be within something else, as far as the verifier can tell
        self.busy = [x > self.goal * 2 * (n + 2) * SLACK for x in self.took]
        self.of = numbered(graph.colocation.tolist())
        self.edges = sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
        byte = Fraction(max(graph.memory.sum().item(), 1e-300)) / self.goal
        self.bytes = [int(Fraction(x) / byte) for x in graph.memory.tolist()]
        kinds = [cluster.device_types[t].memory for t in cluster.type_of.tolist()]
        room = [2 * self.goal if x is None else Fraction(x) * (1 + SLACK) / byte for x in kinds]
        found = rooms_of(problem, sent, room) if cluster.n_devices > 1 else [Room([threshold] * n, room[0], 1, 1)]
        # devices that are busy half of the time: what is where decides more than what is first
        self.crowded = 2 * sum(self.took) >= self.goal * cluster.n_devices
        self.rooms = [x._replace(delay=[int(Fraction(min(threshold, y)) * scale) for y in x.delay]) for x in found]

    def refute(self, arcs: Arcs) -> None:
        """Raise unless no plan has all these arcs and ends before the goal."""
        todo: list[Part] = [(tuple((self.of, frozenset[tuple[int, int]]()) for _ in self.rooms), arcs)]
        while todo:
            todo += self.split(*todo.pop())

    def part(self, pieces: list[Piece], share: Fraction) -> None:
        """Raise unless pieces take as long in all as a share of the threshold; each begins when its first op ends."""
        ops, arcs, own = list[int](), list[tuple[int, int]](), copy(self)
        own.edges, own.took, own.busy = [], [], []
        for begin, rest in pieces:
            at = {v: len(ops) + i for i, v in enumerate((*begin, *rest))}
            arcs += [(len(ops) - 1, v) for v in at.values() if ops]
            own.edges += [(at[u], at[v]) for u, v in self.edges if u in at and v in at]
            own.took += [*(0 for _ in begin), *(self.took[v] for v in rest)]
            own.busy += [*(False for _ in begin), *(self.busy[v] for v in rest)]
            ops += at
        # an op that ends one piece and begins another holds its bytes once
        own.bytes = [self.bytes[v] if v not in ops[:i] else 0 for i, v in enumerate(ops)]
        own.of, own.goal = tuple(self.of[v] for v in ops), int(share * self.goal)
        own.rooms = [x._replace(delay=[x.delay[v] for v in ops]) for x in self.rooms]
        own.refute(tuple(arcs))

    def turns(self, problem: Any) -> Arcs:
        """Return arcs by which like copies, as of batches, take turns.

        Let copies have the same classes, seconds, outputs and inputs op by op, and no edges between them. In any plan
        give the i-th earliest of like ops to the i-th copy. Each device is as busy as before; and where the starts of
        v are no earlier than the ends of u plus a delay copy by copy, that is so of the i-th earliest ones too.
        """
        size, time = problem.graph.output_bytes().tolist(), problem.time().T.tolist()
        part, copies = list(range(len(self.took))), dict[Any, list[list[int]]]()
        for u, v in self.edges:
            part = [part[u] if x == part[v] else x for x in part] if part[u] != part[v] else part
        for ops in self.groups(tuple(part)).values():
            at = {v: i for i, v in enumerate(ops)}
            own = tuple((at[u], at[v]) for u, v in self.edges if u in at)
            like = tuple((self.of[v], tuple(time[v]), size[v]) for v in ops)
            copies.setdefault((own, like), []).append(ops)
        pairs = [x for same in copies.values() for x in pairwise(same)]
        return tuple((u, v) for one, two in pairs for u, v in zip(one, two, strict=True) if self.busy[u])

    def groups(self, of: tuple[int, ...]) -> dict[int, list[int]]:
        """Return the ops of each group."""
        groups: dict[int, list[int]] = {}
        for v, g in enumerate(of):
            groups.setdefault(g, []).append(v)
        return groups

    def full(self, groups: dict[int, list[int]]) -> bool:
        """Return whether a group has more memory than a device."""
        return any(sum(self.bytes[v] for v in ops) > self.rooms[0].size for ops in groups.values())

    def split(self, views: tuple[View, ...], arcs: Arcs) -> list[Part]:
        """Return the parts that a part is split into, none if it has no plan: first do what there is no choice of."""
        while True:
            groups, paths = [self.groups(of) for of, _ in views], self.paths(views, arcs)
            if paths is None or any(a == b for _, apart in views for a, b in apart):
                return []
            size = [{g: sum(self.bytes[v] for v in ops) for g, ops in x.items()} for x in groups]
            if any(max(x.values()) > room.size for x, room in zip(size, self.rooms, strict=True)):
                return []
            before, (views, choice, longest) = views, self.join(views, size, *paths[:2])
            if views != before:
                continue
            orders = self.order(groups[0], *paths)
            if orders is None:
                return []
            known, pair, length = orders
            if known:
                arcs += tuple(known)
                continue
            if pair and length > longest and not self.crowded:
                return [(views, (*arcs, pair)), (views, (*arcs, pair[::-1]))]
            for level in reversed(range(len(views))):
                of, apart = views[level]
                above = views[level + 1][0] if level + 1 < len(views) else (0,) * len(of)
                within = [{g: x for g, x in groups[level].items() if above[x[0]] == h} for h in {*above}]
                for most, some in ((self.rooms[level].parts, groups[level]), *((self.rooms[level].fan, x) for x in within)):
                    clique, near = self.clique(some, apart)
                    if len(clique) > most:
                        return []
                    if near and (self.crowded or choice is None):
                        choice = (level, *near)
            if choice is None and pair:
                return [(views, (*arcs, pair)), (views, (*arcs, pair[::-1]))]
            if choice is None:
                raise InstanceError("threshold", "no path shows that a plan takes no less")
            level, a, b = choice
            of, apart = views[level]
            return [
                ((*views[:level], (of, apart | {pair_of(a, b)}), *views[level + 1 :]), arcs),
                (self.near(views, level, of.index(a), of.index(b)), arcs),
            ]

    def near(self, views: tuple[View, ...], level: int, u: int, v: int) -> tuple[View, ...]:
        """Return the views with two ops in one part of a level, and so in one part of each above."""
        return *views[:level], *(joined(of, apart, of[u], of[v]) for of, apart in views[level:])

    def join(
        self, views: tuple[View, ...], size: list[dict[int, int]], head: list[int], tail: list[int]
    ) -> tuple[tuple[View, ...], tuple[int, int, int] | None, int]:
        """Join groups that are too long apart; return of the others those that are the longest, and how long."""
        choice, longest = None, -1
        for u, v in self.edges:
            base = head[u] + self.took[u] + self.took[v] + tail[v]
            for level in reversed(range(len(views))):
                of, apart = views[level]
                a, b, delay = of[u], of[v], self.rooms[level].delay[u]
                if a == b:
                    continue
                if pair_of(a, b) in apart:
                    break
                if size[level].get(a, 0) + size[level].get(b, 0) > self.rooms[level].size:
                    views = *views[:level], (of, apart | {pair_of(a, b)}), *views[level + 1 :]
                    break
                if base + delay >= self.goal:
                    views = self.near(views, level, u, v)
                elif base + delay > longest and delay:
                    longest, choice = base + delay, (level, a, b)
        return views, choice, longest

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

    def paths(self, views: tuple[View, ...], arcs: Arcs) -> tuple[list[int], list[int], list[int]] | None:
        """Return the longest way to the start of each op and from its end, and what comes after it, as bits.

        `None` if one is too long, or runs in a circle.
        """
        n = len(self.took)
        ways: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        waits = [0] * n
        for u, v in (*self.edges, *arcs):
            far = [x.delay[u] for (of, apart), x in zip(views, self.rooms, strict=True) if pair_of(of[u], of[v]) in apart]
            ways[u].append((v, far[-1] if far else 0))
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


def series_of(problem: Any) -> list[list[Piece]]:
    """Return the pieces between ops that all others are before or after, those that share classes in one part.

    A piece is what it begins after, the last op of the piece before, and its ops in order.
    """
    graph, of = problem.graph, numbered(problem.graph.colocation.tolist())
    order, edges = graph.topological_order().tolist(), list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    around, rank = [0] * len(of), {v: i for i, v in enumerate(order)}
    for way, step in ((sorted(edges, key=lambda x: rank[x[0]]), 1), (sorted(edges, key=lambda x: -rank[x[1]]), -1)):
        reach = [0] * len(of)
        for u, v in (x[::step] for x in way):
            reach[v] |= reach[u] | 1 << u
        around = [x + y.bit_count() for x, y in zip(around, reach, strict=True)]
    pieces, begin, rest = list[Piece](), (), list[int]()
    for v in order:
        rest.append(v)
        if around[v] == len(of) - 1 or v == order[-1]:
            pieces.append((begin, tuple(rest)))
            begin, rest = (v,), []
    parts: list[tuple[set[int], list[Piece]]] = []
    for piece in pieces:
        inside = {of[v] for v in piece[1][:-1]}
        like = [x for x in parts if x[0] & inside]
        parts = [x for x in parts if not x[0] & inside]
        parts.append((inside.union(*(x[0] for x in like)), [p for x in like for p in x[1]] + [piece]))
    return [sorted(x, key=lambda piece: rank[piece[1][0]]) for _, x in parts]


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
