"""Refute a threshold by looking at all pipelines below it: a certified search over the ideals of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm
from typing import Any, ClassVar

from ..errors import InstanceError
from .classes import bits, classes_of, earlier
from .document import Certificate
from .exact import SLACK, Budget
from .rows import nets_of, unit_of

_STEPS = 20_000_000
"""Steps that any certificate may ask for: minutes."""


@dataclass(frozen=True, slots=True)
class IdealsCertificate(Certificate):
    """Extend beginnings of a pipeline stage by stage, as long as each takes less than the threshold.

    A contiguous plan is a chain of ideals, sets of classes with all that come before them; a stage is what one has more
    than the one before. After k of K stages all that is left takes less than K - k thresholds. If no chain of K stages
    reaches all classes, no plan is below the threshold. All devices are of one type.

    Attributes:
        threshold: seconds.
        steps: in which the search is over, at most: a class that joins a stage, or does not, is one.
    """

    objectives: ClassVar[tuple[str, ...]] = ("throughput",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold."""
        if problem.variant != "contiguous" or sum(n != 0 for n in classes_of(problem).count) != 1:
            raise InstanceError("argument", "'ideals' is about contiguous pipelines of devices of one type")
        if not all(classes_of(problem).options):
            return inf
        search = _IdealSearch(problem, self.threshold, min(self.steps, _STEPS))
        known, devices = {0}, problem.cluster.n_devices
        for k in range(1, devices + 1):
            known = {ideal for begun in known for ideal in search.stages(begun, devices - k)}
            if search.every in known:
                stages = f"{k} stage{'s' * (k > 1)}"
                raise InstanceError("threshold", f"a pipeline of {stages} takes less than {self.threshold}")
        return self.threshold / (1 + SLACK)


class _IdealSearch:
    """Sets are whole numbers, a bit for each class; classes come after those before them. Amounts are whole too."""

    def __init__(self, problem: Any, threshold: Fraction, steps: int) -> None:
        classes, self.steps = classes_of(problem), Budget(steps)
        host = problem.cluster.device_types[problem.cluster.type_of[0]].host
        limit = classes.capacity[problem.cluster.type_of[0]]
        count = len(classes.options)
        if steps < count * count // 8:  # what follows takes as long
            raise InstanceError("steps", f"{steps} are too few for {count} classes")
        above = earlier(problem, classes.of)
        order = sorted(range(count), key=lambda g: (above[g].bit_count(), g))
        place = {g: i for i, g in enumerate(order)}
        self.above = [sum(1 << place[h] for h in bits(above[g])) for g in order]
        self.below = [sum(1 << i for i, x in enumerate(self.above) if x >> v & 1) for v in range(count)]
        options = [classes.options[g][0] for g in order]
        unit = unit_of(threshold)
        nets = {} if host else nets_of(problem, unit)
        scale = lcm(*(x.denominator for x in (*(p for _, p, _ in options), threshold, unit / 2**60)))
        self.seconds = [int(p * scale) for _, p, _ in options]
        self.bytes, self.room = [b for _, _, b in options], limit
        self.most, self.every = int(threshold * scale), (1 << count) - 1
        self.nets: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for pins, cost in nets.items():
            mask = sum(1 << place[g] for g in pins)
            for g in pins:
                self.nets[place[g]].append((mask, int(cost * unit * scale)))
        self.all = sum(self.seconds)

    def stages(self, begun: int, rest: int) -> Iterator[int]:
        """Yield the ideals that one more stage can reach, if so many stages can do what is then left."""
        need = self.all - rest * self.most  # of all seconds, more than these are in the ideal
        done = sum(p for v, p in enumerate(self.seconds) if begun >> v & 1)
        # (in the stage, out of it, seconds in it and still open, bytes, tolls that stay, tolls as it is)
        todo: list[tuple[int, int, int, int, Any, int, int]] = [(0, 0, 0, self.all - done, Fraction(0), 0, 0)]
        while todo:
            inside, out, busy, open_, size, stays, tolls = todo.pop()
            self.steps.take()
            undecided = self.every & ~(begun | inside | out)
            if not undecided:
                if inside and busy + tolls < self.most:
                    yield begun | inside
                continue
            v = (undecided & -undecided).bit_length() - 1
            new, gone = self.above[v] & undecided, self.below[v] & undecided
            less = sum(self.seconds[w] for w in bits(gone))
            if done + busy + open_ - less > need or (not rest and done + busy + open_ - less == self.all):
                todo.append((inside, out | gone, busy, open_ - less, size, stays, tolls))
            for w in bits(new):
                busy, open_, size = busy + self.seconds[w], open_ - self.seconds[w], size + self.bytes[w]
                for pins, cost in self.nets[w]:
                    if not pins & inside:
                        tolls, stays = tolls + cost, stays + (cost if pins & begun else 0)
                    if not pins & ~(inside | 1 << w):
                        tolls -= cost
                inside |= 1 << w
            if busy + stays < self.most and size <= self.room:
                todo.append((inside, out, busy, open_, size, stays, tolls))
