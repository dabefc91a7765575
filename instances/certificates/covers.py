"""Refute a threshold by what nodes hold: prices of gangs, and a search for patterns that hold all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, NamedTuple

from ..depth_first import walk
from ..errors import InstanceError
from .document import Certificate
from .exact import SLACK, Budget, weights
from .nodes import JobFamily, NodeFamilies, NodeOption
from .patterns import AlikeNodes, PricedPattern

MOST = 1_000_000
"""Steps that any certificate may ask for: minutes."""
_LOOKS = 256
"""Patterns that are looked at in a step of the search for those of all nodes."""


@dataclass(frozen=True, slots=True)
class CoversCertificate(Certificate):
    """Let each gang pay a price for its workers, and look at all nodes that may cost less in sum than the threshold.

    A pattern, the tasks on a node, costs its gangs' shares by workers of what they cost at least because of it, less
    what these workers pay. With prices p_f no more than values, and mu_q <= 0 the least of all patterns on nodes of
    kind q, which the checker finds,

        goal >= sum over families f of count_f p_f + sum over kinds q of nodes_q mu_q        (Lagrange)

    for every plan, by as much more as its patterns are above mu_q, as gangs left out are worth more than they pay, and
    as the node that delays a gang most does so more than the mean of its nodes. So of a plan below the threshold no
    pattern is above mu_q by the gap or more; the checker lists all others, and looks for nodes that hold all gangs.

    Attributes:
        threshold: in the unit of the goal.
        prices: of a gang of each family, in the order of their first jobs.
        steps: in which the searches are over, at most.
    """

    objectives: ClassVar[tuple[str, ...]] = ("placement",)

    threshold: Fraction
    prices: tuple[Fraction, ...]
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the bound of the prices, or the threshold if that is greater; `inf` if a gang cannot be placed."""
        if problem.goal != "slowdown":
            return Fraction(0)
        nodes = NodeFamilies(problem)
        weights(self.prices, len(nodes.families), "prices")
        cover = Cover(nodes, self.prices, Budget(min(self.steps, MOST), "are over before the search is"))
        if cover.value * nodes.unit < self.threshold:
            cover.search(self.threshold)
        return self.proves(cover)

    def proves(self, cover: Cover) -> Fraction | float:
        """Return the bound, of which the search is over."""
        found: Fraction | float = max(cover.value * cover.unit, self.threshold) / (1 + SLACK)
        return found


class Cover:
    """The search for nodes that hold all gangs. `value`: what prices alone prove, in the unit of costs, or `inf`."""

    def __init__(self, nodes: NodeFamilies, prices: tuple[Fraction, ...], steps: Budget) -> None:
        self.families, self.unit, self.steps = nodes.families, nodes.unit, steps
        every = (int(x / nodes.unit) for x in prices)
        self.prices = [x if f.value is None else min(x, f.value) for f, x in zip(nodes.families, every, strict=True)]
        self.kinds = [AlikeNodes(nodes, q, self.prices) for q in range(len(nodes.kinds))]
        for kind in self.kinds:
            for pattern in kind.patterns(0, self.steps):
                kind.limit = min(kind.limit, pattern.reduced)
        self.least = [kind.limit for kind in self.kinds]
        able = {x.family for options, _, _ in nodes.kinds for x in options}
        impossible = any(family.value is None and f not in able for f, family in enumerate(self.families))
        self.value: Any = inf if impossible else 0
        self.value += sum(family.size * x for family, x in zip(self.families, self.prices, strict=True))
        self.value += sum(kind.count * low for kind, low in zip(self.kinds, self.least, strict=True))

    def search(self, threshold: Fraction) -> None:
        """Look at all plans that may be below a threshold; raise if there may be one."""
        self.gap = -(-threshold // self.unit) - self.value
        every = [
            sorted(
                (_Excess(x, x.reduced - low) for x in kind.patterns(low + self.gap, self.steps)), key=lambda x: x.above
            )
            for kind, low in zip(self.kinds, self.least, strict=True)
        ]
        need = {f: family.size for f, family in enumerate(self.families)}
        walk(self._extend(need, {}, [kind.count for kind in self.kinds], every, 0))

    def _extend(
        self, need: dict[int, int], gangs: dict[int, _GangNeed], left: list[int], every: list[list[_Excess]], spent: int
    ) -> Iterator[Any]:
        """Look at all ways to hold the jobs that are still to be placed, on the nodes that are left; see `walked`."""
        if not need:
            if spent - sum(n * low for n, low in zip(left, self.least, strict=True)) < self.gap:
                raise InstanceError("threshold", "a plan may be below it")
            return
        self.steps.take(1 + sum(map(len, every)) // _LOOKS)
        able = [
            [x for x in held if x.above < self.gap - spent and x.fits(need, gangs, self.families)] if n else []
            for held, n in zip(every, left, strict=True)
        ]
        ways, share = Counter[int](), dict[int, int]()
        for x in (x for held in able for x in held):
            for f in x.families:
                ways[f] += 1
                share[f] = min(share.get(f, self.gap), x.above // len(x.parts))
        if spent + sum(n * share.get(f, 0) for f, n in need.items() if self.families[f].value is None) >= self.gap:
            return
        f = min(need, key=ways.__getitem__)
        for q, held in enumerate(able):
            for x in [x for x in held if f in x.families]:
                fewer, after, more = self._placed(x, need, gangs)
                if spent + x.above + more < self.gap:
                    rest = [n - (k == q) for k, n in enumerate(left)]
                    yield self._extend(fewer, after, rest, able, spent + x.above + more)
                held.remove(x)  # whatever has it has been looked at
        value = self.families[f].value
        if value is not None and f not in gangs and (total := spent + need[f] * (value - self.prices[f])) < self.gap:
            yield self._extend({g: n for g, n in need.items() if g != f}, gangs, left, able, total)

    def _placed(
        self, held: _Excess, need: dict[int, int], gangs: dict[int, _GangNeed]
    ) -> tuple[dict[int, int], dict[int, _GangNeed], int]:
        """Return what is then to be placed, parts of gangs, and what these cost at least on top of what counts."""
        fewer, after, more = dict(need), dict(gangs), 0
        for x, whole in held.parts:
            f, done = x.family, True
            if x.split:
                before = gangs.get(f, _GangNeed(x.degree))
                gang = before.with_(x, whole)
                done, lacks = gang.workers == x.degree, self.families[f].servers - gang.servers
                if done and lacks:  # they are on nodes without workers
                    others = sum(kind.count for kind in self.kinds) - gang.nodes
                    least = self.families[f].served * -(-lacks // others) if others else self.gap + gang.counted
                    gang = gang._replace(most=max(gang.most, x.hidden + least))
                after[f], more = gang, more + gang.above - before.above
            fewer[f] -= done
            if not fewer[f]:
                del fewer[f]
        return fewer, after, more


class _GangNeed(NamedTuple):
    """Parts of a gang: workers, servers and nodes, the most that it costs because of one, and what counts already."""

    degree: int
    workers: int = 0
    servers: int = 0
    nodes: int = 0
    most: int = 0
    counted: int = 0

    def with_(self, x: NodeOption, whole: int) -> _GangNeed:
        """Return the gang with a further part."""
        return _GangNeed(
            self.degree, self.workers + x.workers, self.servers + x.servers, self.nodes + 1,
            max(self.most, whole), self.counted + x.part(whole),
        )  # fmt: skip

    @property
    def above(self) -> int:
        """Return what it costs at least on top of what counts."""
        return max(0, self.most * self.workers // self.degree - self.counted)


class _Excess:
    """A pattern, and what it costs above the least of its kind of node."""

    def __init__(self, pattern: PricedPattern, above: int) -> None:
        self.above, self.parts = above, [*zip(pattern.options, pattern.whole, strict=True)]
        self.families = Counter(x.family for x in pattern.options)

    def fits(self, need: dict[int, int], gangs: dict[int, _GangNeed], families: list[JobFamily]) -> bool:
        """Return whether all jobs in it are still to be placed."""
        return all(need.get(f, 0) >= n for f, n in self.families.items()) and all(
            x.split
            and x.degree == gang.degree
            and x.workers <= gang.degree - gang.workers
            and x.servers <= families[x.family].servers - gang.servers
            for x, _ in self.parts
            if (gang := gangs.get(x.family)) is not None
        )
