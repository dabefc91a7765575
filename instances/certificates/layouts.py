"""Refute a threshold of layouts: every combination of degrees, and of each every way to cut the chain that matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import permutations, product
from math import ceil, inf
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..layout.costs import BlockCosts, Degrees, block_costs
from ..layout.measured import MeasuredLayers
from ..layout.problem import LayoutProblem
from ..layout.stage import ZERO_BUBBLE, handovers, stage_memory, stage_reduction, under_way
from ..verify.layout import undivided
from ..verify.verdict import TOLERANCE
from .document import Certificate
from .exact import SLACK, Budget

_STEPS = 10**9
"""Steps that any certificate may ask for: minutes."""
_COSTS = 10
"""Steps that costs of blocks at some degrees are worth."""
_FOREVER = 1e30
"""Seconds that no step takes: nothing is left out for that."""

Counts = tuple[int, ...]
"""Blocks of each kind."""


@dataclass(frozen=True, slots=True)
class FamiliesCertificate(Certificate):
    """Look at all layouts below a threshold: those of all degrees, whose stages are cut by dynamic programming.

    What stages cost is what the verifier says, in floating point; sums of it are off by far less than the slack.

    Attributes:
        threshold: seconds.
        steps: degrees, and stages, that are looked at until the search is over, at most.
    """

    objectives: ClassVar[tuple[str, ...]] = ("layout",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, or the seconds of a layout below it; infinite if no layout fits memory at all."""
        search = _LayoutSearch(problem, float(self.threshold), Budget(min(self.steps, _STEPS)))
        least = min((search.least(family) for family in search.families()), default=inf)
        if least == inf and not search.cut:
            return inf
        return min(Fraction(self.threshold), Fraction(min(least, float(self.threshold)))) / (1 + SLACK)


class _DegreeFamily(NamedTuple):
    """The pool and the degrees of each stage, chunks of a stage, micro-batches, and the share of others it waits."""

    pools: tuple[int, ...]
    degrees: tuple[Degrees, ...]
    virtual: int
    micro_batches: int
    share: float


class _LayoutSearch:
    """All layouts of a problem that take less than some seconds.

    Attributes:
        cut: whether any was left out for its seconds.
    """

    def __init__(self, problem: LayoutProblem, threshold: float, steps: Budget) -> None:
        self.problem, self.threshold, self.steps, self.cut = problem, threshold, steps, False
        self.kinds = problem.model.chain().tolist()
        size = max(self.kinds) + 1
        self.prefix = [tuple(self.kinds[:i].count(k) for k in range(size)) for i in range(len(self.kinds) + 1)]
        self.total = self.prefix[-1]
        model, batch = problem.model, _divisors(problem.batch)
        if isinstance(model, MeasuredLayers):
            self.tensors = [
                sorted({*model.tensor[[x == pool.gpu for x in model.gpu]].tolist()}) for pool in problem.pools
            ]
            self.others = [1], [1], [b for b in batch if b in model.micro_batch]
        else:
            self.tensors = [[t for t in _divisors(model.heads) if not undivided(model, t)]] * len(problem.pools)
            split = [1] if problem.sequence % 2 else _divisors(problem.sequence // 2)
            self.others = split, _divisors(model.experts or 1), batch
        # without sharing states gradients are sent twice, with it once, and weights
        zeros = (0, 1) if problem.width > problem.gradient_bytes else (1,)
        self.zeros = zeros if isinstance(model, MeasuredLayers) else (*zeros, 2, 3)
        self.stage = lru_cache(100_000)(partial(_StageCost, self))
        self.costs = cache(self._costs)

    def _costs(self, pool: int, at: Degrees) -> BlockCosts | None:
        self.steps.take(_COSTS)
        return block_costs(self.problem, self.problem.pools[pool], at)

    def families(self) -> Iterator[_DegreeFamily]:
        """Yield those that are not refuted by what all their GPUs compute together."""
        pools = range(len(self.problem.pools))
        for used in (x for n in pools for x in permutations(pools, n + 1)):
            for tensors, c, e, b in product(product(*(self.tensors[k] for k in used)), *self.others):
                for d in _divisors(self.problem.batch // b):
                    self.steps.take()
                    yield from self._some(used, tensors, Degrees(1, c, e, d, b))

    def _some(self, used: Sequence[int], tensors: Sequence[int], base: Degrees) -> Iterator[_DegreeFamily]:
        """Yield the families of some degrees."""
        at = [base._replace(tensor=t) for t in tensors]
        most = [self.problem.pools[k].count // x.ranks for k, x in zip(used, at, strict=True)]
        m = self.problem.batch // (base.data * base.micro_batch)
        if not min(most) or any(x.ranks % x.expert for x in at):
            return
        costs = [x for k, y in zip(used, at, strict=True) if (x := self.costs(k, y)) is not None]
        if len(costs) < len(used):
            return
        seconds = [_each(x).seconds for x in costs]
        whole, ahead = [_times(self.total, x) for x in seconds], self._least(seconds)
        # what is left of the chain's share of each pool if each block is on the one where its share is least
        share_of = self._least([[a / b for a in x] for x, b in zip(seconds, whole, strict=True)]) if all(whole) else 0.0
        if self._beyond(m * share_of / sum(n / (x or 1.0) for n, x in zip(most, whole, strict=True))):
            return
        rooms = [self.problem.pools[k].memory * (1 + TOLERANCE) - self.problem.reserve for k in used]
        needs = {
            z: self._least([self._need(y, x._replace(zero=z)) for x, y in zip(at, costs, strict=True)])
            for z in self.zeros
        }
        for stages in product(*(range(1, n + 1) for n in most)):
            p, slowest = sum(stages), share_of / sum(n / (x or 1.0) for n, x in zip(stages, whole, strict=True))
            self.steps.take()
            if p > len(self.kinds) or self._beyond(m * slowest):
                continue
            each = [(k, x) for k, x, n in zip(used, at, stages, strict=True) for _ in range(n)]
            turns = [v for v in range(2, len(self.kinds) // p + 1) if p > 1 and m % p == 0 and self.zeros[-1] > 1]
            shares = [(1, 1.0), *((v, 1 / v) for v in turns)]
            shares += [(1, ZERO_BUBBLE)] if self.problem.zero_bubble and p > 1 else []
            room = sum(n * x for n, x in zip(stages, rooms, strict=True))
            for zero, (v, share) in product((z for z in self.zeros if needs[z] <= room), shares):
                if not self._beyond((m - share) * slowest + share * ahead):
                    degrees = tuple(x._replace(zero=zero) for _, x in each)
                    yield _DegreeFamily(tuple(k for k, _ in each), degrees, v, m, share)

    def _beyond(self, seconds: float) -> bool:
        """Return whether so many seconds are no less than the threshold, and remember that."""
        beyond = seconds >= self.threshold
        self.cut |= beyond and self.threshold < _FOREVER
        return beyond

    def _least(self, rows: Sequence[Sequence[float]]) -> float:
        """Return the sum along the chain of what each kind of block is where it is least."""
        return _times(self.total, [min(x) for x in zip(*rows, strict=True)])

    def _need(self, costs: BlockCosts, at: Degrees) -> list[float]:
        """Return the bytes of weights, and all that goes with them, of each kind of block."""
        memory = stage_memory(self.problem, at, costs.weights, costs.expert_weights, 0.0, 0.0)
        return [float(x) * (1 - TOLERANCE) for x in sum(memory) - memory.buffers]

    def least(self, family: _DegreeFamily) -> float:
        """Return the least seconds of a step below the threshold, infinite if there are none.

        By the blocks before a stage, what matters is the slowest stage so far, the sum of all, and the largest end.
        """
        p, m, share = len(family.pools), family.micro_batches, family.share
        handed = [0.0 if (x := self.costs(*y)) is None else x.handed for y in zip(*family[:2], strict=True)]
        hands = handovers(handed, family.virtual).tolist()
        stages = [
            self.stage(family.pools[s], family.degrees[s], under_way(p, s, m, family.virtual), hands[s])
            for s in range(p)
        ]
        cheapest = [min(x) for x in zip(*(stage.each.seconds for stage in stages), strict=True)]
        ahead = _times(self.total, cheapest)
        longest = (self.threshold - share * ahead) / (m - share) if m > share else self.threshold
        room = [stage.quick(longest) for stage in stages]
        for s, stage in enumerate(stages):
            if sum(room) < len(self.kinds):
                self._beyond(self.threshold)
                return inf
            room[s] = stage.room(longest, room[s])
        after = np.cumsum([0, *room[::-1]])[::-1].tolist()
        front: dict[Counts, list[tuple[float, float, float]]] = {(0,) * len(self.total): [(0.0, 0.0, 0.0)]}
        for s, stage in enumerate(stages):
            reached: dict[Counts, list[tuple[float, float, float]]] = {}
            for state, points in front.items():
                left = _times(tuple(a - b for a, b in zip(self.total, state, strict=True)), cheapest)
                for counts in self._next(state, s, family, after[s + 1], room[s]):
                    self.steps.take()
                    seconds, end = stage.cost(counts)
                    if seconds > longest:
                        continue
                    new = tuple(a + b for a, b in zip(state, counts, strict=True))
                    rest = left - _times(counts, cheapest)
                    for a, b, c in points:
                        point = max(a, seconds), b + seconds, max(c, end)
                        if not self._beyond((m - share) * point[0] + share * (point[1] + rest) + point[2]):
                            _insert(reached.setdefault(new, []), point)
            front = reached
        return min(((m - share) * a + share * b + c for a, b, c in front.get(self.total, [])), default=inf)

    def _next(self, state: Counts, stage: int, family: _DegreeFamily, after: int, room: int) -> Iterator[Counts]:
        """Yield what a stage may have after some blocks; interleaved, of each kind of layer as many as there are."""
        p, v, count = len(family.pools), family.virtual, len(self.kinds)
        done = sum(state)
        low, high = max(v, count - done - after), min(room, count - done - v * (p - 1 - stage))
        if stage == p - 1:
            low = max(low, count - done)
        if v == 1:
            for end in range(done + low, done + high + 1):
                yield tuple(a - b for a, b in zip(self.prefix[end], state, strict=True))
            return
        first, last = self.kinds[0], self.kinds[-1]
        ends = {first: int(stage == 0), last: int(stage == p - 1)}
        left = [n - x for n, x in zip(self.total, state, strict=True)]
        layers = [k for k in range(len(left)) if k not in ends and self.total[k]]
        for some in product(*(range(left[k] + 1) for k in layers)):
            if low <= sum(some) + sum(ends.values()) <= high:
                found = dict(zip(layers, some, strict=True)) | ends
                yield tuple(found.get(k, 0) for k in range(len(left)))


def _each(costs: BlockCosts) -> Any:
    """Return numbers of each kind of block, in lists."""
    names = "again", "kept", "weights", "expert_weights", "working", "update"
    seconds = (costs.compute + costs.shown.sum(axis=0)).sum(axis=0)
    return SimpleNamespace(seconds=seconds.tolist(), **{name: getattr(costs, name).tolist() for name in names})


class _StageCost:
    """What a stage costs, by its blocks; so many micro-batches are under way, and handing one on takes so long."""

    def __init__(self, search: _LayoutSearch, pool: int, at: Degrees, under_way: float, handed: float) -> None:
        search.steps.take()
        self.problem, self.pool, self.at, self.steps = search.problem, search.problem.pools[pool], at, search.steps
        costs = search.costs(pool, at)
        assert costs is not None
        self.each, self.under_way, self.handed = _each(costs), under_way, handed
        self.ends = search.kinds[0], search.kinds[-1]
        self.layers = sorted({*search.kinds[1:-1]})
        self.count = len(search.kinds)
        self.cost = cache(self._cost)

    def quick(self, longest: float) -> int:
        """Return the most blocks that it can have in so many seconds if memory is ample; embedding and head besides."""
        quickest = min((self.each.seconds[k] for k in self.layers), default=0.0)
        return min(self.count, 2 + int(longest / quickest * (1 + TOLERANCE))) if quickest else self.count

    def room(self, longest: float, most: int) -> int:
        """Return the same within memory, if there is one kind of layer."""
        if len(self.layers) != 1:
            return most
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            alone = tuple(middle if k in self.layers else 0 for k in range(len(self.each.update)))
            low, high = (middle, high) if self.cost(alone)[0] <= longest else (low, middle - 1)
        return min(most, low + 2)

    def _cost(self, counts: Counts) -> tuple[float, float]:
        """Return the least seconds of a micro-batch within memory, infinite if there are none, and those of its end."""
        self.steps.take()
        x = self.each
        own, experts = _times(counts, x.weights), _times(counts, x.expert_weights)
        working = max((w for w, n in zip(x.working, counts, strict=True) if n), default=0.0)
        room = self.pool.memory * (1 + TOLERANCE) - sum(stage_memory(self.problem, self.at, own, experts, 0.0, working))
        if room < 0:
            return inf, inf
        again = self._again(counts, _times(counts, x.kept[0]) - room / self.under_way)
        end = float(stage_reduction(self.problem, self.pool, self.at, own, experts)) + _times(counts, x.update)
        return _times(counts, x.seconds) + again + self.handed, end

    def _again(self, counts: Counts, excess: float) -> float:
        """Return the least seconds of computing again that save so many bytes of a micro-batch."""
        if excess <= 0:
            return 0.0
        x, best, seconds, saved = self.each, inf, 0.0, 0.0
        left = list(counts)
        for whole in [None, *(k for k in self.layers for _ in range(counts[k]))]:
            if whole is not None:  # one more computes all again
                seconds, saved = seconds + x.again[2][whole], saved + x.kept[0][whole] - x.kept[2][whole]
                left[whole] -= 1
            found, rest = seconds, excess - saved
            for i in self.layers if rest > 0 else ():
                if left[i] and rest > 0 and (each := x.kept[0][i] - x.kept[1][i]) > 0:
                    light = min(left[i], ceil(rest / each * (1 - TOLERANCE)))
                    found, rest = found + light * x.again[1][i], rest - light * each
            if rest <= TOLERANCE * excess:
                best = min(best, found)
            if seconds >= best:
                break
        return best


def _times(counts: Counts, each: Sequence[float]) -> float:
    return sum(n * x for n, x in zip(counts, each, strict=True))


def _insert(points: list[tuple[float, float, float]], new: tuple[float, float, float]) -> None:
    """Keep those points that no other is below in all three."""
    if any(a <= new[0] and b <= new[1] and c <= new[2] for a, b, c in points):
        return
    points[:] = [x for x in points if not (new[0] <= x[0] and new[1] <= x[1] and new[2] <= x[2])]
    points.append(new)


def _divisors(n: int) -> list[int]:
    return [k for k in range(1, n + 1) if n % k == 0]
