"""Say why a layout loses against another or does not fit, and find the best of those with a given degree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from operator import itemgetter
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.errors import InstanceError
from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import Memory
from gangplan.instances.quantities import quantity
from gangplan.instances.verify import verify
from gangplan.instances.verify.layout import SECONDS, LayoutVerdict

from .nearest import nearest
from .space import Combination, Space
from .split import Splitter
from .wish import Wish, contradiction

_FIRST = 60
"""Families like a layout that is known that are looked at before others."""
_WITHIN = 1.5
"""Of the best step: where layouts with other degrees are looked for first."""
_WEIGHS = 0.1
"""Share of a difference from which on a part of it is told."""
_MOST = 3
"""Parts that are told."""


class Rival(NamedTuple):
    """The best layout with some degrees, beside the best of all.

    Attributes:
        wish: the degrees.
        plan: `None` if none fits.
        proved: whether none with these degrees is faster, or fits.
        objective: its seconds a step.
        why: what it loses by, or what does not fit, in words.
    """

    wish: Wish
    plan: LayoutPlan | None
    proved: bool
    objective: float | None
    why: tuple[str, ...]


class Explainer:
    """Find the best layouts with given degrees.

    Args:
        problem: what is split.
    """

    def __init__(self, problem: LayoutProblem) -> None:
        self.problem, self.splitter = problem, Splitter(problem)
        self.space = Space(problem, self.splitter.costs)
        self._bounds = [(self.space.bound(x), x) for x in self.space.combinations()]

    def compare(self, best: LayoutPlan, wanted: Sequence[Wish], seconds: float) -> tuple[LayoutPlan, list[Rival]]:
        """Return the best layouts with wanted degrees, or by default with each degree of the best changed.

        Before them comes the best of all, which is one of them if that was not proved.

        Raises:
            InstanceError: if no layout with degrees that are wanted fits.
        """
        rivals = wanted or self.rivals(best)
        plans = [self.best(rival, seconds / len(rivals), best) for rival in rivals]
        best = min([best, *(plan for plan, _ in plans if plan is not None)], key=self._seconds)
        found = []
        for rival, (plan, proved) in zip(rivals, plans, strict=True):
            if plan is not None:
                words = differences(self.problem, plan, best)
                if words or wanted:
                    found.append(Rival(rival, plan, proved, self._seconds(plan), tuple(words)))
            elif wanted and proved:
                raise self.refusal(rival)
            elif proved:
                near = nearest(self.problem, wish=rival)
                short = near and not verify(self.problem, near.plan).ok and differences(self.problem, near.plan, best)
                found.append(Rival(rival, None, proved, None, tuple(short or [self.refusal(rival).problem])))
            else:
                found.append(Rival(rival, None, proved, None, ("nothing was found in time",)))
        return best, found

    def _seconds(self, plan: LayoutPlan) -> float:
        """Return the seconds of a step, infinite of a layout that does not fit."""
        return verify(self.problem, plan).objective or inf

    def best(self, wish: Wish, seconds: float, near: LayoutPlan | None = None) -> tuple[LayoutPlan | None, bool]:
        """Return the fastest layout with such degrees, or the fastest found, and whether it is proved to be that.

        Args:
            wish: the degrees.
            seconds: to look for it.
            near: a good layout without these degrees: first what is like it is looked at, and not much slower.
        """
        number, value, plan, end = count(), inf, None, perf_counter() + seconds
        families: list[tuple[float, int, Any]] = []
        if near is not None:
            value = _WITHIN * self._seconds(near)
            alike = wish._replace(MB=wish.MB or near.micro_batch, ZERO=near.zero if wish.ZERO is None else wish.ZERO)
            families = [x for c in self._combinations(alike, value) for x in self._families(c, alike, value, number)]
        heap = self._combinations(wish, inf)
        for nodes in (sorted(families)[:_FIRST], heap):
            heapify(nodes)
            while nodes and perf_counter() < end:
                bound, _, x = heappop(nodes)
                if bound >= value:
                    nodes.clear()
                elif isinstance(x, Combination):
                    for family in self._families((bound, 0, x), wish, value, number):
                        heappush(nodes, family)
                elif (found := self.splitter.split(x, value).plan) is not None:
                    value, plan = min((value, plan), (self._seconds(found), found), key=itemgetter(0))
        if plan is None and near is not None:
            return self.best(wish, seconds)
        return plan, not heap

    def _combinations(self, wish: Wish, below: float) -> list[tuple[float, int, Any]]:
        some = ((bound, x) for bound, x in self._bounds if bound < below and wish.allows(x))
        return [(bound, -i, x) for i, (bound, x) in enumerate(some)]

    def _families(
        self, node: tuple[float, int, Any], wish: Wish, below: float, number: Iterator[int]
    ) -> Iterator[tuple[float, int, Any]]:
        """Yield the families of a combination that are wished for."""
        for least, family in self.space.families(node[2], below):
            if wish.is_met(family):
                yield max(least, node[0]), next(number), family

    def refusal(self, wish: Wish) -> InstanceError:
        """Return why no layout with such degrees fits: what the nearest needs, or what contradicts what."""
        near = nearest(self.problem, wish=wish)
        if near is None or sum(near.need) <= near.has:
            return contradiction(self.problem, wish)
        return InstanceError("memory", f"{wish}: {near.words()}".replace(": memory: ", ": ").removeprefix(": "))

    def rivals(self, plan: LayoutPlan) -> list[Wish]:
        """Return the degrees beside which a layout has to stand: each of its own changed to others near it."""
        space = self.space
        nodes = max(pool.levels[0].span for pool in self.problem.pools)
        known = {"TP": {t for degrees in space.tensors for t in degrees if t <= 2 * nodes}}
        known |= {"PP": set(range(1, space.count)), "CP": {*space.contexts}, "EP": {*space.experts}}
        own = {"TP": set(plan.tensor.tolist()), "PP": {len(plan.pool)}, "CP": {plan.context}, "EP": {plan.expert}}
        found = []
        for name, values in known.items():
            at = max(own[name])
            near = {1, at // 4, at // 2, 2 * at, 4 * at} if name != "TP" else {2**k for k in range(6)}
            found += [Wish(**{name: x}) for x in sorted(values & near - own[name])]
        return found


def differences(problem: LayoutProblem, plan: LayoutPlan, best: LayoutPlan) -> list[str]:
    """Return why a layout does not fit, or what it takes longer with than another, in words, most first."""
    verdict, other = verify(problem, plan), verify(problem, best)
    if not verdict.ok:
        return _shortage(problem, plan, verdict)
    lost = _parts(plan, verdict) - _parts(best, other)
    if lost.sum() <= 0:
        return []
    order = np.argsort(-lost)[:_MOST].tolist()
    return [
        _told(problem, plan, verdict, part, float(lost[part])) for part in order if lost[part] > _WEIGHS * lost.sum()
    ]


def _shortage(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict) -> list[str]:
    """Return what is short on the fullest stage and what takes most of it, or what else is wrong."""
    total = verdict.memory.sum(axis=0)
    limit = np.array([problem.pools[k].memory for k in plan.pool.tolist() if k < len(problem.pools)])
    others = [x for x in verdict.violations if not x.startswith("memory")]
    if others or len(limit) < len(total):
        return others
    stage = int((total - limit).argmax())
    part = int(verdict.memory[:, stage].argmax())
    need, most = quantity(float(total[stage]), "B", 3), quantity(float(limit[stage]), "B", 3)
    of = quantity(float(verdict.memory[part, stage]), "B", 3)
    return [f"needs {need} of {most} on stage {stage}, {of} of it {Memory._fields[part]}"]


_COMPUTING, _BUBBLE = SECONDS.index("backward"), SECONDS.index("bubble")


def _parts(plan: LayoutPlan, verdict: LayoutVerdict) -> FloatArray:
    """Return the seconds of a step by parts in the mean of all GPUs; forward passes count as computing."""
    found = verdict.seconds @ (plan.tensor / plan.tensor.sum())
    found[_COMPUTING] += found[0]
    found[0] = 0.0
    return np.asarray(found)


def _told(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict, part: int, lost: float) -> str:
    """Return a part of a step in words, with the seconds that it takes more than elsewhere."""
    name, more = SECONDS[part], f"(+{quantity(lost, 's', 2)})"
    micro_batches = problem.batch // (plan.data * plan.micro_batch)
    layers = plan.blocks.reshape(plan.virtual, -1).sum(axis=0)
    each = quantity(float((verdict.seconds[part] / layers).max()) / micro_batches, "s", 2)
    near, tensor = min(problem.pools[k].levels[0].span for k in plan.pool.tolist()), int(plan.tensor.max())
    reach = {"tensor": tensor, "context": tensor * plan.context, "expert": plan.expert}
    across = " across nodes" if reach.get(name, 0) > near else ""
    words = {
        "backward": f"computes longer, in pieces of TP {tensor}, CP {plan.context}, micro-batch {plan.micro_batch}",
        "recomputation": "computes more again to fit",
        "tensor": f"TP {tensor}{across} costs {each} a layer",
        "context": f"CP {plan.context}{across} costs {each} a layer",
        "expert": f"EP {plan.expert}{across} costs {each} a layer",
        "sharding": f"ZeRO {plan.zero} gathers and scatters {each} a layer",
        "handing on": f"{len(layers)} stages hand on {plan.virtual} times",
        "bubble": f"{len(layers)} stages wait, with {micro_batches} micro-batches",
        "reduction": f"gradients are reduced over {plan.data * plan.context} GPUs",
        "update": "the optimizer has more to do",
    }
    return f"{words[name]} {more}"
