"""Refute a threshold of latency by branching: which classes of ops are in a call together, and which are not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

from ..errors import InstanceError
from .document import Certificate
from .exact import SLACK, exact
from .steps import STEPS, Apart, StepSearch, joined, pair_of


@dataclass(frozen=True, slots=True)
class GroupedCertificate(Certificate):
    """Split the plans below a threshold until a path of calls shows that there is none.

    All devices are accelerators: each runs its ops in one call, which takes its inputs in first and sends its outputs
    last. Two classes are in one call or in two. What is in one call is a group; groups that wait for one another in a
    circle are in one call, for no call waits for itself. A call takes the compute of its groups, each op at its
    fastest, and the transfers that are certain: of an output with users in different calls. The groups of a path run
    one after the other, in one call or in several; of those that may be in one call only one pays for a transfer.

    Attributes:
        threshold: seconds.
        steps: edges that are looked at until the search is over, at most.
    """

    objectives: ClassVar[tuple[str, ...]] = ("latency",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, less what sums of floats may be off by."""
        if self.threshold <= 0:
            raise InstanceError("threshold", f"{self.threshold} is not above 0")
        if problem.hosts().any():
            raise InstanceError("argument", "'grouped' is about devices that are no hosts")
        search = _GroupedSearch(problem, self.threshold, min(self.steps, STEPS), exact(problem.transfer()[None])[0])
        todo: list[tuple[tuple[int, ...], Apart]] = [(search.of, frozenset())]
        while todo:
            todo += search.parts(*todo.pop())
        return self.threshold / (1 + SLACK) ** 2


class _GroupedSearch(StepSearch):
    """A part of the search has a group for each class, and pairs that are not in one call."""

    def parts(self, of: tuple[int, ...], apart: Apart) -> list[tuple[tuple[int, ...], Apart]]:
        """Return the parts that a part is split into, none if it has no plan: first do what there is no choice of."""
        while not any(a == b for a, b in apart) and not self.full(groups := self.groups(of)):
            after: dict[int, set[int]] = {g: set() for g in groups}
            before: dict[int, set[int]] = {g: set() for g in groups}
            for u, v in self.edges:
                if of[u] != of[v]:
                    after[of[u]].add(of[v])
                    before[of[v]].add(of[u])
            self.steps.take(len(self.edges) + len(groups))
            order, circle = _ordered(before, after)
            if circle:
                for g in circle[1:]:
                    of, apart = joined(of, apart, circle[0], g)
                continue
            takes, more = self._transfers(of, apart, groups, order, after)
            head, tail = dict.fromkeys(order, 0), dict.fromkeys(order, 0)
            for g in order:
                head[g] = max((head[h] + takes[h] for h in before[g]), default=0)
            for g in reversed(order):
                tail[g] = max((takes[h] + tail[h] for h in after[g]), default=0)
            if max(head[g] + takes[g] + tail[g] for g in order) >= self.goal:
                break
            length = {x: head[x[0]] + takes[x[0]] + y + takes[x[1]] + tail[x[1]] for x, y in more.items()}
            best = max(length, key=lambda x: length[x], default=None)
            if best is not None and length[best] >= self.goal:
                of, apart = joined(of, apart, *best)
                continue
            clique, near = self.clique(groups, apart)
            if len(clique) > self.devices:
                break
            choice = best or near
            if choice is None:
                raise InstanceError("threshold", "no path shows that a plan takes no less")
            return [(of, apart | {pair_of(*choice)}), joined(of, apart, *choice)]
        return []

    def _transfers(
        self, of: tuple[int, ...], apart: Apart, groups: dict[int, list[int]], order: list[int], after: Any
    ) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
        """Return what each group takes, and what two take in addition that would be apart."""
        place, reach = {g: i for i, g in enumerate(order)}, dict[int, int]()
        for g in reversed(order):
            reach[g] = 1 << place[g]
            for h in after[g]:
                reach[g] |= reach[h]
        takes = {g: sum(self.took[v] for v in groups[g]) for g in order}
        more = {(g, h): 0 for g in order for h in after[g] if pair_of(g, h) not in apart}
        users: dict[int, set[int]] = {}
        for u, v in self.edges:
            if of[u] != of[v] and self.rooms[0].delay[u]:
                users.setdefault(u, set()).add(of[v])
        for u, those in users.items():
            a, cost = of[u], self.rooms[0].delay[u]
            away = [g for g in those if pair_of(a, g) in apart]
            certain = bool(away) or any(pair_of(*x) in apart for x in combinations(those, 2))
            takes[a] += cost if certain else 0
            for g in those:
                # on a path with it, perhaps in one call, and pays
                near = [
                    h
                    for h in away
                    if h != g and pair_of(g, h) not in apart and (reach[g] >> place[h] & 1 or reach[h] >> place[g] & 1)
                ]
                if g not in away:
                    more[a, g] += (0 if certain else cost) + (0 if near else cost)
                elif not any(place[h] < place[g] for h in near):
                    takes[g] += cost
        return takes, more


def _ordered(before: dict[int, set[int]], after: dict[int, set[int]]) -> tuple[list[int], list[int]]:
    """Return groups in an order, and if there is none some that wait for one another in a circle."""
    waits = {g: len(x) for g, x in before.items()}
    order = [g for g, x in waits.items() if not x]
    for g in order:
        for h in after[g]:
            waits[h] -= 1
            order += [] if waits[h] else [h]
    at, circle = next((g for g, x in waits.items() if x), -1), list[int]()
    while at >= 0 and at not in circle:
        circle.append(at)
        at = next(h for h in before[at] if waits[h])
    return order, circle[circle.index(at) :] if circle else []
