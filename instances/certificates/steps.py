"""Refute a threshold of step time by branching: which ops share a device, and which of two comes first."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any, ClassVar

import numpy as np

from ..errors import InstanceError
from ..graph import connected, grouped, one_machine
from .classes import numbered
from .document import Certificate
from .exact import SLACK, Budget, exact
from .paths import early
from .rooms import LevelRoom, rooms_of

STEPS = 10**8
"""Arcs and pairs that any certificate may have looked at: minutes."""

Apart = frozenset[tuple[int, int]]
Arcs = tuple[tuple[int, int], ...]
View = tuple[tuple[int, ...], Apart]
Piece = tuple[tuple[int, ...], tuple[int, ...]]
Branch = tuple[tuple[View, ...], Arcs]


@dataclass(frozen=True, slots=True)
class TogetherCertificate(Certificate):
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
        search = StepSearch(problem, self.threshold, min(self.steps, STEPS))
        if self.parts:
            series = series_of(problem)
            if len(self.parts) != len(series) or sum(self.parts) < self.threshold:
                raise InstanceError("parts", f"they are {len(series)}, the threshold in all")
            for part, seconds in zip(series, self.parts, strict=True):
                search.part(part, seconds / self.threshold)
        else:
            search.refute(search.turns(problem))
        return self.threshold / (1 + SLACK) / (1 + early(problem, len(search.took)))


class StepSearch:
    """Seconds are whole numbers, rounded down.

    A branch has a group for each class at each level of the tree, pairs that are apart there, and arcs of order.
    """

    def __init__(self, problem: Any, threshold: Fraction, steps: int, delay: list[Any] | None = None) -> None:
        """Take what it takes to send what each op makes from the links, or from `delay` whatever the links."""
        graph, cluster = problem.graph, problem.cluster
        self.steps, n, self.goal = Budget(steps), graph.n_ops, 1 << 50
        scale = self.goal / threshold
        rows = [row for row, count in zip(exact(problem.time()), cluster.counts().tolist(), strict=True) if count]
        self.took = [int(Fraction(min(threshold, *(row[v] for row in rows))) * scale) for v in range(n)]
        # what is shorter may be within something else, as far as the verifier can tell
        self.busy = [x > self.goal * 2 * (n + 2) * SLACK for x in self.took]
        able = np.isfinite(problem.time())[cluster.type_of]
        self.device = [int(d[0]) if len(d) == 1 else None for d in map(np.flatnonzero, able.T)]
        self.of = numbered(graph.colocation.tolist())
        self.edges = sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
        self.outputs = grouped(self.edges, n)
        byte = (sum(map(Fraction, graph.memory.tolist())) or Fraction(1)) / self.goal
        self.bytes = [int(Fraction(x) / byte) for x in graph.memory.tolist()]
        kinds = [cluster.device_types[t].memory for t in cluster.type_of.tolist()]
        room = [2 * self.goal if x is None else Fraction(x) * (1 + SLACK) / byte for x in kinds]
        self.devices = cluster.n_devices
        # devices that are busy half of the time: what is where decides more than what is first
        self.crowded = 2 * sum(self.took) >= self.goal * self.devices
        one = LevelRoom(delay or [threshold] * n, max(room), self.devices)
        self.rooms = [
            LevelRoom([int(Fraction(min(threshold, y)) * scale) for y in x.delay], int(x.size), x.fan)
            for x in ([one] if delay or self.devices == 1 else rooms_of(problem, room))
        ]

    def refute(self, arcs: Arcs) -> None:
        """Raise unless no plan has all these arcs and ends before the goal."""
        todo: list[Branch] = [(self.settled(), arcs)]
        while todo:
            todo += self.split(*todo.pop())

    def settled(self) -> tuple[View, ...]:
        """Return the views before any choice: classes with an op that one device alone runs are there."""
        home, first = dict[int, int](), dict[int, int]()
        for g, device in zip(self.of, self.device, strict=True):
            if device is not None:
                home.setdefault(g, first.setdefault(device, g))
        self.steps.take(len(first) ** 2)
        of = tuple(home.get(g, g) for g in self.of)
        apart = frozenset(pair_of(a, b) for a, b in combinations([home[g] for g in first.values()], 2))
        return (of, apart), *((of, Apart()) for _ in self.rooms[1:])

    def part(self, pieces: list[Piece], share: Fraction) -> None:
        """Raise unless pieces take a share of the threshold in all: each on its own, from the end of its first op."""
        ops, chain, own, first = list[int](), list[tuple[int, int]](), copy(self), dict[int, int]()
        own.edges, own.took = [], []
        for begin, rest in pieces:
            at = {v: len(ops) + i for i, v in enumerate((*begin, *rest))}
            chain += [(len(ops) - 1, v) for v in at.values() if ops]
            own.edges += [(at[u], at[v]) for u in at for v in self.outputs[u] if v in at]
            own.took += [0 if v in begin else self.took[v] for v in at]
            ops += at
        own.busy = [self.busy[v] and x > 0 for v, x in zip(ops, own.took, strict=True)]
        # what ends a piece and begins another has its bytes once
        own.bytes = [self.bytes[v] if first.setdefault(v, i) == i else 0 for i, v in enumerate(ops)]
        own.device = [self.device[v] for v in ops]
        own.of, own.goal = tuple(self.of[v] for v in ops), int(share * self.goal)
        own.rooms = [x._replace(delay=[x.delay[v] for v in ops]) for x in self.rooms]
        own.refute(tuple(chain))

    def turns(self, problem: Any) -> Arcs:
        """Return arcs by which like copies, as of batches, take turns.

        Let copies have the same classes, seconds, outputs and inputs op by op, and no edges between them. In any plan
        give the i-th earliest of like ops to the i-th copy. Each device is as busy as before; and where the starts of
        v are no earlier than the ends of u plus a delay copy by copy, that is so of the i-th earliest ones too.
        """
        size, time = problem.graph.output_bytes().tolist(), problem.time().T.tolist()
        copies = dict[Any, list[list[int]]]()
        for ops in connected(len(size), self.edges):
            at = {v: i for i, v in enumerate(ops)}
            like = tuple((self.of[v], tuple(time[v]), size[v]) for v in ops)
            copies.setdefault((like, tuple((at[u], at[v]) for u in ops for v in self.outputs[u])), []).append(ops)
        pairs = [x for like in copies.values() for x in pairwise(like)]
        return tuple((u, v) for x in pairs for u, v in zip(*x, strict=True) if self.busy[u])

    def groups(self, of: tuple[int, ...]) -> dict[int, list[int]]:
        """Return the ops of each group."""
        return {g: ops for g, ops in enumerate(grouped(zip(of, range(len(of)), strict=True), max(of) + 1)) if ops}

    def full(self, groups: dict[int, list[int]], level: int = 0) -> bool:
        """Return whether a group has more memory than a device, or a part of a level."""
        return any(sum(self.bytes[v] for v in ops) > self.rooms[level].size for ops in groups.values())

    def split(self, views: tuple[View, ...], arcs: Arcs) -> list[Branch]:
        """Return the branches of a branch, none if it has no plan: first do what there is no choice of."""
        while True:
            groups, paths = [self.groups(of) for of, _ in views], self.paths(views, arcs)
            torn = any(a == b for _, apart in views for a, b in apart)
            if paths is None or torn or any(self.full(x, level) for level, x in enumerate(groups)):
                return []
            before, (views, choice, longest) = views, self.join(views, groups, *paths[:2])
            if views != before:
                continue
            orders = self.order(groups[0], *paths)
            if orders is None:
                return []
            known, pair, length = orders
            if known:
                arcs += tuple(known)
                continue
            for level in reversed(range(len(views))):
                above = views[level + 1][0] if level + 1 < len(views) else [0] * len(self.of)
                for h in {*above}:
                    inside = {g: ops for g, ops in groups[level].items() if above[ops[0]] == h}
                    clique, near = self.clique(inside, views[level][1])
                    if len(clique) > self.rooms[level].fan:
                        return []
                    if near and (self.crowded or choice is None):
                        choice = level, inside[near[0]][0], inside[near[1]][0]
            if pair and (choice is None or (length > longest and not self.crowded)):
                return [(views, (*arcs, pair)), (views, (*arcs, pair[::-1]))]
            if choice is None:
                raise InstanceError("threshold", "no path shows that a plan takes no less")
            return [(self.away(views, *choice), arcs), (self.near(views, *choice), arcs)]

    def near(self, views: tuple[View, ...], level: int, u: int, v: int) -> tuple[View, ...]:
        """Return the views with two ops in one part of a level, and so in one part of each above."""
        return *views[:level], *(joined(of, apart, of[u], of[v]) for of, apart in views[level:])

    def away(self, views: tuple[View, ...], level: int, u: int, v: int) -> tuple[View, ...]:
        """Return the views with two ops in two parts of a level."""
        of, apart = views[level]
        return *views[:level], (of, apart | {pair_of(of[u], of[v])}), *views[level + 1 :]

    def join(
        self, views: tuple[View, ...], groups: list[dict[int, list[int]]], head: list[int], tail: list[int]
    ) -> tuple[tuple[View, ...], tuple[int, int, int] | None, int]:
        """Join groups too long apart, part those too large together; return of others the longest, and how long."""
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
                if self.full({0: groups[level].get(a, []) + groups[level].get(b, [])}, level):
                    views = self.away(views, level, u, v)
                    break
                if base + delay >= self.goal:
                    views = self.near(views, level, u, v)
                elif base + delay > longest and delay:
                    longest, choice = base + delay, (level, u, v)
        return views, choice, longest

    def order(
        self, groups: dict[int, list[int]], head: list[int], tail: list[int], after: list[int]
    ) -> tuple[list[tuple[int, int]], tuple[int, int] | None, int] | None:
        """Return which ops come first for certain, and the pair that is longest both ways; `None` if none can."""
        orders, pair, longest = list[tuple[int, int]](), None, -1
        machines = [jobs for ops in groups.values() if len(jobs := [v for v in ops if self.busy[v]]) > 1]
        for jobs in machines:
            self.steps.left -= len(jobs) ** 2 // 2
            if one_machine([(head[v], self.took[v], tail[v]) for v in jobs]) >= self.goal:
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
        if not orders:
            orders = [x for jobs in machines for x in self.ends(jobs, head, tail) if not after[x[0]] >> x[1] & 1]
        return orders, pair, longest

    def ends(self, jobs: list[int], head: list[int], tail: list[int]) -> set[tuple[int, int]]:
        """Return pairs of ops, the first of which comes first, by edge finding (Carlier and Pinson 1989).

        Let S be ops with heads of r and tails of q at least, and c another one. If c is not the last of these, one of S
        is, and it takes min(r, head of c), the seconds of all, and q at least; as long as the goal, c comes after all
        of S. Likewise with r and min(q, tail of c): c comes before all of S.
        """
        found, first = set[tuple[int, int]](), sorted(jobs, key=lambda v: -head[v])
        for q in {tail[v] for v in jobs}:
            inside, room, others = list[int](), self.goal - q, set(jobs)
            for w in first:
                if tail[w] < q:
                    continue
                inside.append(w)
                others.remove(w)
                room -= self.took[w]
                least = room - head[w]
                for c in [c for c in others if self.took[c] >= least]:
                    spare = room - self.took[c]
                    if head[c] >= spare:
                        found.update((v, c) for v in inside)
                    if head[w] + min(tail[c] - q, 0) >= spare:
                        found.update((c, v) for v in inside)
        self.steps.left -= len(jobs) ** 2
        return found

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
        n, slow = len(self.took), [x for x in zip(self.rooms, views, strict=True) if any(x[0].delay)]
        ways: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        waits = [0] * n
        for u, v in (*self.edges, *arcs):
            more = 0
            for room, (of, apart) in slow:
                if room.delay[u] > more and pair_of(of[u], of[v]) in apart:
                    more = room.delay[u]
            ways[u].append((v, more))
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
    """Return the pieces between ops that all others are before or after; those that share classes are in one part.

    A piece has the op that it begins after, the last of the piece before, and its ops in order.
    """
    graph, of = problem.graph, numbered(problem.graph.colocation.tolist())
    order, ends = graph.topological_order().tolist(), (graph.source.tolist(), graph.target.tolist())
    around, pieces, begin, rest = [0] * len(of), list[Piece](), tuple[int, ...](), list[int]()
    for way, (near, far) in ((order, ends), (order[::-1], ends[::-1])):
        seen, inputs = [0] * len(of), grouped(zip(far, near, strict=True), len(of))
        for v in way:
            for u in inputs[v]:
                seen[v] |= seen[u] | 1 << u
            around[v] += seen[v].bit_count()
    for v in order:
        rest.append(v)
        if around[v] == len(of) - 1 or v == order[-1]:
            pieces.append((begin, tuple(rest)))
            begin, rest = (v,), []
    parts, part_of = dict[int, list[Piece]](), dict[int, int]()
    for i, piece in enumerate(pieces):
        inside = {of[v] for v in piece[1][:-1]}
        parts[i] = [p for j in sorted({part_of[g] for g in inside & part_of.keys()}) for p in parts.pop(j)] + [piece]
        part_of.update({of[v]: i for _, ops in parts[i] for v in ops[:-1]})
    return list(parts.values())


def pair_of(a: int, b: int) -> tuple[int, int]:
    """Return two groups, the lesser first."""
    return (a, b) if a < b else (b, a)


def joined(of: tuple[int, ...], apart: Apart, a: int, b: int) -> tuple[tuple[int, ...], Apart]:
    """Return the groups with b made a part of a; a pair that was apart and is not any more has twice the same."""
    pairs = (pair_of(*(a if g == b else g for g in pair)) for pair in apart)
    return tuple(a if g == b else g for g in of), frozenset(pairs)
