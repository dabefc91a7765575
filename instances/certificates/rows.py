"""The mixed-integer programme of throughput, made exactly: what the tree of a certificate branches over.

Letters as in docs/formulation.md; everything is divided by the unit. Devices of a type are alike, so a plan may name
them as the rows ask for: the slots of a contiguous pipeline in the order of its stages, others by the largest classes.
The order of stages is kept where all devices are of one type; of other contiguous plans, and of convex ones, the rows
say only what holds of free ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from ..errors import InstanceError
from ..partition import precedence
from .classes import classes_of
from .exact import SLACK
from .linear import LinearModel

_TERMS = 2_000_000
"""Numbers in the rows: some 10 s and 1 GB."""


@lru_cache(maxsize=4)
def model_of(problem: Any, threshold: Fraction) -> LinearModel:
    """Return the programme that every plan of at most `threshold` seconds gives a solution of."""
    return _LinearRows(problem, threshold).model


class _LinearRows:
    def __init__(self, problem: Any, threshold: Fraction) -> None:
        self.problem, self.classes = problem, classes_of(problem)
        unit = unit_of(threshold)
        # rounding of the verifier's sums: a plan of the threshold may have a little more
        self.most, self.model = threshold * (1 + SLACK) / unit, LinearModel(unit)
        groups = range(len(self.classes.options))
        self.kinds = [t for t, n in enumerate(self.classes.count) for _ in range(min(n or 0, len(groups)))]
        edges = problem.graph.n_edges * (len(self.kinds) if problem.variant == "contiguous" else 1)
        if (len(groups) + edges) * len(self.kinds) > _TERMS:
            raise InstanceError("threshold", f"{problem!r} is too large for a tree")
        self.slots, self.z = range(len(self.kinds)), self.model.column(self.most, cost=1)
        self.x = [[self.model.column(1, whole=True) for _ in self.slots] for _ in groups]
        # seconds in units and bytes of each class on each type on which it can be and is no longer than the threshold
        self.able = [
            {t: (p / unit, b) for t, p, b in options if p <= self.most * unit} for options in self.classes.options
        ]
        for row, able in zip(self.x, self.able, strict=True):
            self.model.row(dict.fromkeys(row, 1), 1, 1)
            for s, t in enumerate(self.kinds):
                if t not in able:
                    self.model.row({row[s]: 1}, most=0)
        if problem.variant == "contiguous" and len(set(self.kinds)) == 1:
            self._chain()
        else:
            self._symmetry()
        self._loads()
        self._memory()

    def _chain(self) -> None:
        """Keep the order of stages: what comes before is on no later slot."""
        earlier, later = (ends.tolist() for ends in precedence(self.problem.graph))
        of = self.classes.of
        for a, b in sorted({(of[u], of[v]) for u, v in zip(earlier, later, strict=True)}):
            for s in self.slots[1:] if a != b else ():
                terms = {self.x[b][k]: 1 for k in self.slots[s:]} | {self.x[a][k]: -1 for k in self.slots[s:]}
                self.model.row(terms, 0)

    def _symmetry(self) -> None:
        """Name the slots of the most frequent type by the first of the largest classes that they have."""
        weight = [max((p for _, p, _ in options), default=Fraction(0)) for options in self.classes.options]
        for g, s in apart(weight, self.kinds):
            self.model.row({self.x[g][s]: 1}, most=0)

    def _loads(self) -> None:
        """Let Z be no less than compute and transfers of any slot; hosts pay for no transfers."""
        nets = nets_of(self.problem, self.model.unit)
        for s, t in enumerate(self.kinds):
            terms = {self.x[g][s]: -able[t][0] for g, able in enumerate(self.able) if t in able}
            if not self.problem.cluster.device_types[t].host:
                terms |= {self._toll(pins, s): -cost for pins, cost in nets.items()}
            self.model.row({self.z: 1, **terms}, 0)

    def _toll(self, pins: tuple[int, ...], s: int) -> int:
        """Return a column that is 1 if slot s has some and not all of the pins."""
        model, toll = self.model, self.model.column(1)
        if len(pins) == 2:
            a, b = (self.x[g][s] for g in pins)
            model.row({toll: 1, a: -1, b: 1}, 0)
            model.row({toll: 1, a: 1, b: -1}, 0)
            return toll
        some, every = model.column(1), model.column(1)
        for g in pins:
            model.row({some: 1, self.x[g][s]: -1}, 0)
            model.row({every: -1, self.x[g][s]: 1}, 0)
        model.row({toll: 1, some: -1, every: 1}, 0)
        return toll

    def _memory(self) -> None:
        """Keep within the memory of each slot, in shares of it."""
        for s, t in enumerate(self.kinds):
            limit = self.classes.capacity[t]
            if limit not in (0, inf):
                own = {self.x[g][s]: able[t][1] / Fraction(limit) for g, able in enumerate(self.able) if t in able}
                self.model.row({j: _down(share) for j, share in own.items()}, most=1)


def apart(weight: Sequence[Fraction], kinds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (class, slot) that need not meet: the i-th largest class is in one of the first i slots of its type.

    Slots of the most frequent type are alike, so each plan has a twin in which they are named so.

    Args:
        weight: of each class.
        kinds: type of each slot.
    """
    kind = max(kinds, key=lambda t: (kinds.count(t), -t), default=0)
    slots = [s for s, t in enumerate(kinds) if t == kind]
    for i, g in enumerate(sorted(range(len(weight)), key=lambda g: (-weight[g], g))[: len(slots)]):
        yield from ((g, s) for s in slots[i + 1 :])


def unit_of(seconds: Fraction) -> Fraction:
    """Return a power of two near some seconds: rationals stay short."""
    return Fraction(2) ** (seconds.numerator.bit_length() - seconds.denominator.bit_length())


def nets_of(problem: Any, unit: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Return what each accelerator pays, in units, that has some and not all of the classes of an output."""
    of, graph, size = classes_of(problem).of, problem.graph, problem.graph.output_bytes().tolist()
    bandwidth, latency = (Fraction(x) for x in problem.cluster.topology.slowest_link())
    touched: dict[int, set[int]] = {}
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        if size[u] > 0:
            touched.setdefault(u, {of[u]}).add(of[v])
    nets: dict[tuple[int, ...], Fraction] = {}
    for u, pins in touched.items():
        key = tuple(sorted(pins))
        nets[key] = nets.get(key, Fraction(0)) + (latency + Fraction(size[u]) / bandwidth) / unit
    return {pins: _down(min(cost, Fraction(4))) for pins, cost in nets.items() if len(pins) > 1}


def _down(x: Fraction) -> Fraction:
    """Return a coefficient rounded down to a dyadic number: crossing is cheaper, and more fits."""
    return Fraction(int(x * 2**60), 2**60)
