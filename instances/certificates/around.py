"""Refute a threshold of throughput by what no plan can keep apart: minimum cuts around classes of ops."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ..errors import InstanceError
from .classes import classes_of
from .cuts import cheapest
from .document import Certificate
from .exact import SLACK, Budget
from .rows import nets_of, unit_of

_STEPS = 10**8
"""Arcs that any certificate may have looked at: minutes."""
_ONE = 1 << 50
"""The threshold in whole numbers; seconds are rounded down to them."""


@dataclass(frozen=True, slots=True)
class AroundCertificate(Certificate):
    """Join classes that no plan below the threshold keeps apart, until they are too much for a device.

    A device that has a class a and not a class b has a set of classes with the one and without the other. Its load is
    at least the compute of the set, each class on its fastest type, and the nets with a class in it and one out of it:
    a minimum cut. If that is no less than the threshold, a and b are together in every plan below it, and count as one
    from then on. There is no such plan if a cut around some class is no less, or it fits no device. With a host among
    the devices, which pays for no transfers, nets cost nothing.

    Attributes:
        threshold: seconds.
        steps: arcs of cuts that are looked at until it is refuted, at most.
    """

    objectives: ClassVar[tuple[str, ...]] = ("throughput",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold."""
        if self.threshold <= 0:
            raise InstanceError("threshold", f"{self.threshold} is not above 0")
        groups = _ClassGroups(problem, self.threshold, Budget(min(self.steps, _STEPS), "it is not refuted in so many"))
        while not groups.refuted():
            before = len(groups.options)
            groups.join()
            if len(groups.options) == before:
                raise InstanceError("threshold", "some sets of classes take less")
        return self.threshold / (1 + SLACK)


class _ClassGroups:
    """Groups of classes that are together: (type, seconds, bytes) of each where it can be, and what they send."""

    def __init__(self, problem: Any, threshold: Fraction, steps: Budget) -> None:
        classes, unit = classes_of(problem), unit_of(threshold)
        self.capacity, self.steps, scale = classes.capacity, steps, _ONE / threshold
        self.options = [[(t, int(min(p, threshold) * scale), b) for t, p, b in x] for x in classes.options]
        hosts = any(kind.host and n for kind, n in zip(problem.cluster.device_types, classes.count, strict=True))
        nets = {} if hosts else nets_of(problem, unit)
        self.nets = {pins: int(cost * unit * scale) for pins, cost in nets.items()}
        self.build(list(range(len(self.options))))

    def build(self, of: list[int]) -> None:
        """Make one group of all that have the same number, and find what each pays for."""
        number = {g: i for i, g in enumerate(sorted({*of}))}
        old, self.options = self.options, [[] for _ in number]
        parts: list[list[Any]] = [[] for _ in number]
        for g, options in zip(of, old, strict=True):
            parts[number[g]].append({t: (p, b) for t, p, b in options})
        for g, members in enumerate(parts):
            for t in set.intersection(*({*x} for x in members)):
                seconds, size = (sum(x[t][k] for x in members) for k in range(2))
                self.options[g] += [(t, seconds, size)] if size <= self.capacity[t] else []
        self.own = [min((p for _, p, _ in options), default=_ONE) for options in self.options]
        nets: dict[tuple[int, ...], int] = {}
        for pins, cost in self.nets.items():
            ends = tuple(sorted({number[of[g]] for g in pins}))
            nets[ends] = nets.get(ends, 0) + cost
        self.nets = {ends: cost for ends, cost in nets.items() if len(ends) > 1}
        # of each group, what of its nets it has in common with each other one
        self.shared: list[dict[int, int]] = [{} for _ in number]
        self.alone = list(self.own)
        for ends, cost in self.nets.items():
            self.steps.take(len(ends) ** 2)
            for g in ends:
                self.alone[g] += cost
                for h in ends:
                    self.shared[g][h] = self.shared[g].get(h, 0) + (cost if g != h else 0)

    def cut(self, inside: int, *outside: int) -> tuple[int, set[int]]:
        """Return the least that a device with one group and without others takes, and the groups that it has."""
        sides = {inside: 0, **dict.fromkeys(outside, 1)}
        value, chosen, looked = cheapest(self.own, self.nets.items(), sides, _ONE)
        self.steps.take(looked + len(self.own) + len(self.nets))
        return value, chosen

    def refuted(self) -> bool:
        """Return whether some group is too much for a device."""
        if max(self.own) >= _ONE:
            return True
        heavy = sorted((-x, g) for g, x in enumerate(self.alone) if x >= _ONE)
        return any(self.cut(g)[0] >= _ONE for _, g in heavy)

    def join(self) -> None:
        """Join groups that cannot be apart: by the nets that they share, and where that joins none by cuts."""
        of = list(range(len(self.options)))

        def group(g: int) -> int:
            while of[g] != g:
                of[g] = of[of[g]]
                g = of[g]
            return g

        for by_cuts in (False, True):
            for g, shared in enumerate(self.shared):
                if self.alone[g] < _ONE:
                    continue
                chosen = self.cut(g)[1] if by_cuts else {*shared}
                for h in sorted(chosen & shared.keys() - {g}):
                    least = self.cut(g, h)[0] if by_cuts and group(g) != group(h) else self.own[g] + shared[h]
                    if least >= _ONE:
                        of[group(g)] = group(h)
            joined = [group(g) for g in of]
            if len({*joined}) < len(joined):
                return self.build(joined)
        return None
