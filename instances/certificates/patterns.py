"""Refute a threshold by patterns, what single nodes hold: prices of gangs, and a search for nodes that hold them all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, NamedTuple

from ..errors import InstanceError
from .document import Certificate
from .exact import SLACK, weights
from .nodes import Nodes, Option, Pattern

_STEPS = 20_000_000


@dataclass(frozen=True, slots=True)
class Patterns(Certificate):
    """..."""

    argument: ClassVar[str] = "patterns"
    objectives: ClassVar[tuple[str, ...]] = ("placement",)

    threshold: Fraction
    prices: tuple[Fraction, ...]
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        nodes = Nodes(problem)
        weights(self.prices, len(nodes.families), "prices")
        if problem.goal != "slowdown":
            return Fraction(0)
        for f, family in enumerate(nodes.families):
            if family.value is None and not any(x.family == f for kind in nodes.kinds for x in kind.options):
                return inf
        prices = [int(x / nodes.unit) for x in self.prices]
        return Cover(nodes, prices, min(self.steps, _STEPS)).bound(self.threshold) / (1 + SLACK)


class Cover:
    """..."""

    def __init__(self, nodes: Nodes, prices: list[int], steps: int) -> None:
        self.nodes, self.steps = nodes, [steps]
        self.prices = [p if f.value is None else min(p, f.value) for f, p in zip(nodes.families, prices, strict=True)]
        self.least = []
        for kind in nodes.kinds:
            kind.pay(self.prices)
            low = 0
            # each pattern that is found lowers the limit
            for pattern in kind.patterns(0, self.steps):
                if pattern.reduced < low:
                    low = kind.limit = pattern.reduced
            self.least.append(low)
        self.value = sum(len(f.jobs) * p for f, p in zip(nodes.families, self.prices, strict=True))
        self.value += sum(kind.count * low for kind, low in zip(nodes.kinds, self.least, strict=True))

    def bound(self, threshold: Fraction) -> Fraction:
        unit = self.nodes.unit
        gap = -(-threshold // unit) - self.value
        if gap <= 0:
            return self.value * unit
        self.gap = gap
        # what a node costs above the least of its kind
        every: list[list[_Held]] = []
        for kind, low in zip(self.nodes.kinds, self.least, strict=True):
            found = [_Held(x, x.reduced - low) for x in kind.patterns(low + gap, self.steps) if x.options]
            every.append(sorted(found, key=lambda x: x.above))
        left = [kind.count for kind in self.nodes.kinds]
        self._place([len(f.jobs) for f in self.nodes.families], {}, left, every, 0)
        return threshold

    def _place(
        self, need: list[int], gangs: dict[int, _Gang], left: list[int], every: list[list[_Held]], spent: int
    ) -> None:
        """Raise if nodes with these patterns may hold all jobs that need one, and cost less than the gap in all."""
        if not any(need):
            if spent - sum(n * low for n, low in zip(left, self.least, strict=True)) < self.gap:
                raise InstanceError("threshold", "a plan may be below it")
            return
        room = self.gap - spent
        able = [[x for x in held if x.above < room and x.fits(need, gangs)] if n else [] for held, n in zip(every, left, strict=True)]
        self.steps[0] -= 1 + sum(map(len, every)) // 256
        if self.steps[0] < 0:
            raise InstanceError("steps", "are over before the search is")
        ways = {f: 0 for f, n in enumerate(need) if n}
        for held in able:
            for x in held:
                for f in x.families:
                    ways[f] += 1
        f = min(ways, key=ways.__getitem__)
        for q, held in enumerate(able):
            k = 0
            while k < len(held):
                x = held[k]
                if f not in x.families:
                    k += 1
                    continue
                after, extra = dict(gangs), 0
                fewer = need.copy()
                for option, whole in zip(x.pattern.options, x.pattern.whole, strict=True):
                    g = option.family
                    if not option.split:
                        fewer[g] -= 1
                        continue
                    gang = after.get(g) or _Gang(option.degree, 0, 0, 0, 0, 0)
                    after[g] = gang = gang.with_(option, whole)
                    extra += gang.above - (gangs[g].above if g in gangs else 0)
                    if gang.workers == gang.degree:
                        fewer[g] -= 1
                left[q] -= 1
                self._place(fewer, after, left, able, spent + x.above + extra)
                left[q] += 1
                del held[k]  # all plans with it have been looked at
        family = self.nodes.families[f]
        if family.value is not None and f not in gangs:
            fewer = need.copy()
            fewer[f] -= 1
            cost = family.value - self.prices[f]
            if spent + cost < self.gap:
                self._place(fewer, gangs, left, able, spent + cost)


class _Gang(NamedTuple):
    """Parts of a gang on some nodes: workers and servers, nodes, the most that it costs because of one of them, and what counts already."""

    degree: int
    workers: int
    servers: int
    nodes: int
    most: int
    counted: int

    def with_(self, option: Option, whole: int) -> _Gang:
        return _Gang(
            self.degree, self.workers + option.workers, self.servers + option.servers, self.nodes + 1,
            max(self.most, whole), self.counted + whole * option.workers // option.degree,
        )

    @property
    def above(self) -> int:
        """Return what it costs at least on top of what counts."""
        return max(0, self.most * self.workers // self.degree - self.counted)


class _Held:
    """A pattern, and what it costs above the least of its kind of node."""

    def __init__(self, pattern: Pattern, above: int) -> None:
        self.pattern, self.above = pattern, above
        self.families = Counter(x.family for x in pattern.options)

    def fits(self, need: list[int], gangs: dict[int, _Gang]) -> bool:
        if any(need[f] < n for f, n in self.families.items()):
            return False
        for x in self.pattern.options:
            gang = gangs.get(x.family)
            if gang is not None and (
                not x.split or x.degree != gang.degree or gang.workers + x.workers > x.degree
            ):
                return False
        return True
