"""The mixed-integer programme of throughput, made exactly: what the tree of a certificate branches over.

Letters as in docs/formulation.md; everything is divided by the unit. Devices of a type are alike, so a plan may name
them as the rows ask for: slots of a type in their order, those of a contiguous pipeline in the order of its stages. Of
`convex` plans only what holds of free ones is said.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from ..partition import precedence
from .classes import classes_of
from .exact import SLACK
from .linear import Model


@lru_cache(maxsize=4)
def model_of(problem: Any, threshold: Fraction) -> Model:
    """Return the programme that every plan of at most `threshold` seconds gives a solution of."""
    return _Rows(problem, threshold).model


class _Rows:
    def __init__(self, problem: Any, threshold: Fraction) -> None:
        self.problem, self.classes = problem, classes_of(problem)
        self.unit = Fraction(2) ** (threshold.numerator.bit_length() - threshold.denominator.bit_length())
        # rounding of the verifier's sums: a plan of the threshold may have a little more
        self.most = threshold * (1 + SLACK) / self.unit
        groups = range(len(self.classes.options))
        counts = [min(n or 0, len(groups)) for n in self.classes.count]
        self.contiguous = problem.variant == "contiguous"
        self.fixed = [t for t, n in enumerate(counts) for _ in range(n)]
        self.types = sorted(set(self.fixed))
        self.slots = range(min(len(self.fixed), len(groups)) if self.contiguous else len(self.fixed))
        self.model = Model(self.unit)
        self.z = self.model.column(self.most, cost=1)
        self.x = [[self.model.column(1, whole=True) for _ in self.slots] for _ in groups]
        self.chosen = self.contiguous and len(self.types) > 1
        self.y = [{t: self.model.column(1, whole=True) for t in self.types} if self.chosen else {} for _ in self.slots]
        self._assign(counts)
        if self.contiguous:
            self._chain()
        else:
            self._symmetry()
        self._loads()
        self._memory()

    def _kinds(self, s: int) -> list[int]:
        """Return the types that slot s may be of."""
        return self.types if self.chosen else [self.fixed[s]]

    def _assign(self, counts: list[int]) -> None:
        """Put every class on one slot, of a type on which it can be; no slot has two types."""
        model = self.model
        for row in self.x:
            model.row(dict.fromkeys(row, 1), 1, 1)
        if self.chosen:
            for s in self.slots:
                model.row(dict.fromkeys(self.y[s].values(), 1), most=1)
            for t in self.types:
                model.row({self.y[s][t]: 1 for s in self.slots}, most=counts[t])
        for g, options in enumerate(self.classes.options):
            able = {t for t, takes, _ in options if takes <= self.most * self.unit}
            for s in self.slots:
                if not able & set(self._kinds(s)):
                    model.row({self.x[g][s]: 1}, most=0)
                elif self.chosen:
                    # an unused slot is of no type, a used one of a type that runs the class
                    model.row({self.x[g][s]: 1, **{self.y[s][t]: -1 for t in able}}, most=0)

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
        t = max(self.types, key=lambda t: (self.fixed.count(t), -t))
        slots = [s for s in self.slots if self.fixed[s] == t]
        weight = [max((takes for _, takes, _ in options), default=Fraction(0)) for options in self.classes.options]
        for i, g in enumerate(sorted(range(len(weight)), key=lambda g: (-weight[g], g))[: len(slots)]):
            for s in slots[i + 1 :]:
                self.model.row({self.x[g][s]: 1}, most=0)

    def _loads(self) -> None:
        """Let Z be no less than compute and transfers of any slot; hosts pay for no transfers."""
        model, hosts = self.model, [kind.host for kind in self.problem.cluster.device_types]
        nets = self._nets()
        seconds = [{t: takes / self.unit for t, takes, _ in options} for options in self.classes.options]
        for s in self.slots:
            kinds = self._kinds(s)
            tolls = {} if all(hosts[t] for t in kinds) else {self._toll(pins, s): c for pins, c in nets.items()}
            for t in kinds:
                terms = {self.x[g][s]: -own[t] for g, own in enumerate(seconds) if own.get(t, inf) <= self.most}
                if not hosts[t]:
                    terms |= {k: -c for k, c in tolls.items()}
                slack = -sum(terms.values()) if self.chosen else Fraction(0)
                # a slot of another type is let off by as much as it could carry
                model.row({self.z: 1, **terms, **({self.y[s][t]: -slack} if slack else {})}, -slack)

    def _nets(self) -> dict[tuple[int, ...], Fraction]:
        """Return what each accelerator pays, in units, that has some and not all of the classes of an output."""
        problem, of = self.problem, self.classes.of
        graph, size = problem.graph, problem.graph.output_bytes().tolist()
        bandwidth, latency = (Fraction(x) for x in problem.cluster.topology.slowest_link())
        touched: dict[int, set[int]] = {}
        for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
            if size[u] > 0:
                touched.setdefault(u, {of[u]}).add(of[v])
        nets: dict[tuple[int, ...], Fraction] = {}
        for u, pins in touched.items():
            if len(pins) > 1:
                key = tuple(sorted(pins))
                nets[key] = nets.get(key, Fraction(0)) + latency + Fraction(size[u]) / bandwidth
        # rounded down to a dyadic number, which only makes crossing cheaper
        fine = 2**60
        return {pins: Fraction(int(min(c / self.unit, Fraction(4)) * fine), fine) for pins, c in nets.items()}

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
        for s in self.slots:
            for t in self._kinds(s):
                limit = self.classes.capacity[t]
                if limit == inf or not limit:
                    continue
                own = [{k: b for k, _, b in options}.get(t) for options in self.classes.options]
                shares = {self.x[g][s]: _rounded(b / Fraction(limit)) for g, b in enumerate(own) if b}
                over = max(Fraction(0), sum(shares.values(), Fraction(0)) - 1) if self.chosen else Fraction(0)
                if sum(shares.values()) > 1:
                    # a slot of another type is let off
                    self.model.row({**shares, **({self.y[s][t]: over} if over else {})}, most=1 + over)


def _rounded(share: Fraction) -> Fraction:
    """Return a share rounded down to a dyadic number, which only lets more in."""
    return Fraction(int(share * 2**50), 2**50)
