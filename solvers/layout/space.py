"""The space of layouts: every combination of degrees, from coarse to fine, with a bound of the seconds of a step each.

A *combination* fixes tensor, context and expert parallelism, and the micro-batch; data parallelism, stages, chunks and
sharding then make *families*. What all GPUs could do together bounds a combination; what a family computes, divided
equally among its stages, with what it sends once a step, bounds a family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import lru_cache
from itertools import permutations, product
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.layout.costs import BlockCosts, block_costs
from gangplan.instances.layout.flags import experts_placed, shares
from gangplan.instances.layout.measured import MeasuredLayers
from gangplan.instances.layout.problem import LayoutProblem
from gangplan.instances.layout.stage import ZERO_BUBBLE, stage_memory
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.layout import undivided

from ..run import never
from .family import Combination, LayoutFamily, Segment
from .shapes import intervals, scattered
from .wish import ANY, Wish


def divisors(n: int) -> list[int]:
    """Return the divisors of a number, ascending."""
    small = [k for k in range(1, int(n**0.5) + 1) if n % k == 0]
    return sorted({*small, *(n // k for k in small)})


class Sums(NamedTuple):
    """The whole chain on one pool alone, or on another; what each block is on the pool where it is least, added up.

    Attributes:
        alone: on each pool, float64 (pools,).
        least: the sum over blocks of the least of any pool.
        share: the same of its shares of `alone`: parts of the chain on all pools are so much of it together.
        largest: of a block, on the pool where it is least.
    """

    alone: FloatArray
    least: float
    share: float
    largest: float

    def stages(self, count: Any, room: Any = 1.0) -> Any:
        """Return how often so many stages of each pool hold the chain, where one has some room; elementwise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(self.alone > 0, room / self.alone, inf)
            return np.tensordot(each, count, 1) / self.share


class Space:
    """All layouts of a problem, or those `within` some limits.

    Args:
        problem: what is split.

    Attributes:
        kinds: of the blocks of the chain.
        wish, framework: the degrees that are wished for, and what has to run the layouts, if that is not empty.
        shortest: the least seconds of a micro-batch of 1, 2, ... blocks, which need not be in a row, float64 (L,).
        virtual: the most chunks of a stage.
        whole: whether it has every layout that the verifier admits, those apart that cost at least as much.
    """

    def __init__(self, problem: LayoutProblem) -> None:
        self.problem, self.kinds = problem, (kinds := problem.model.chain())
        self.wish, self.framework = ANY, ""
        self.bound = lru_cache(None)(self._bound)
        self.blocks = lru_cache(None)(lambda pool, at: block_costs(problem, problem.pools[pool], at))
        self.shortest = lru_cache(4096)(lambda costs: np.cumsum(np.sort(costs.seconds()[0][kinds])))
        self.intervals = lru_cache(None)(lambda most: intervals(kinds, most))
        self.count = len(kinds)
        self.virtual = 1 if scattered(kinds) else max(1, self.count // 2)
        self.whole = self.virtual > 1 or self.count < 4 or isinstance(problem.model, MeasuredLayers)
        model, measured = problem.model, isinstance(problem.model, MeasuredLayers)
        # without sharing states twice the gradients are sent, with it also weights
        self.zeros = (*((0,) if problem.width > problem.gradient_bytes else ()), 1, *(() if measured else (2, 3)))
        self.number = np.bincount(kinds)
        self.has_experts = getattr(model, "experts", 0) > 0
        self.contexts, self.experts = [1], divisors(getattr(model, "experts", 0) or 1)
        if isinstance(model, MeasuredLayers):
            rows = [[gpu == pool.gpu for gpu in model.gpu] for pool in problem.pools]
            self.tensors = [np.unique(model.tensor[row]).tolist() for row in rows]
            self.micro_batches = [b for b in np.unique(model.micro_batch).tolist() if problem.batch % b == 0]
            return
        some = [t for t in divisors(model.heads) if not undivided(model, t)]
        self.tensors = [[t for t in some if t <= pool.count] for pool in problem.pools]
        self.micro_batches = divisors(problem.batch)
        if problem.sequence % 2 == 0:
            total = sum(pool.count for pool in problem.pools)
            self.contexts = [c for c in divisors(problem.sequence // 2) if c <= total]

    def within(self, wish: Wish = ANY, framework: str = "") -> Space:
        """Return those layouts that have some degrees, and that a framework runs."""
        space = copy(self)
        space.wish, space.framework = wish, framework
        return space

    def nodes(self, stopped: Callable[[], bool] = never) -> list[tuple[float, Combination]]:
        """Return all combinations with their bounds, the most promising first; `TimeoutError` if it is stopped."""
        wish, framework = self.wish, self.framework
        found = list[tuple[float, Combination]]()
        for x in self.combinations():
            if stopped():
                raise TimeoutError
            alike = not framework or len({*x.tensor} - {0}) == 1
            if alike and wish.allows(x) and (bound := self.bound(x)) < inf:
                found.append((bound, x))
        return sorted(found, key=itemgetter(0))

    def combinations(self) -> Iterator[Combination]:
        """Yield every combination that one stage has GPUs for."""
        ways = [[0, *degrees] for degrees in self.tensors]
        for tensor in product(*ways):
            used = [k for k, t in enumerate(tensor) if t]
            for c, e, b in product(self.contexts, self.experts, self.micro_batches) if used else ():
                x = Combination(tensor, c, e, b)
                if all(x.degrees(k).ranks <= self.problem.pools[k].count for k in used):
                    yield x

    def _bound(self, x: Combination) -> float:
        """Return the seconds a step if all GPUs were busy: sequences over what all pools compute in a second."""
        used = [k for k, t in enumerate(x.tensor) if t]
        costs = [self.blocks(k, x.degrees(k)) for k in used]
        if None in costs:
            return inf
        replicas = np.array([self.problem.pools[k].count / (x.tensor[k] * x.context) for k in used])
        rate = self._sums([c.seconds()[0] for c in costs if c is not None]).stages(replicas)
        return float(self.problem.batch / (x.micro_batch * rate))

    def families(self, x: Combination, below: float) -> list[tuple[float, LayoutFamily]]:
        """Return the families of a combination whose bound is below some seconds, with it."""
        used = [k for k, t in enumerate(x.tensor) if t]
        wish, framework = self.wish, self.framework
        found: list[tuple[float, LayoutFamily]] = []
        for d in divisors(self.problem.batch // x.micro_batch):
            m = self.problem.batch // (d * x.micro_batch)
            ranks = [x.tensor[k] * x.context * d for k in used]
            most = [min(self.problem.pools[k].count // r, self.count) for k, r in zip(used, ranks, strict=True)]
            if not min(most) or any(r % x.expert for r in ranks):
                continue
            costs = [c for k in used if (c := self.blocks(k, x.degrees(k, d))) is not None]
            sums = self._sums([c.seconds()[0] for c in costs])
            stages = np.stack([g.ravel() for g in np.meshgrid(*(np.arange(1, n + 1) for n in most), indexing="ij")])
            stages = stages[:, stages.sum(axis=0) <= self.count]
            p, v = stages.sum(axis=0), np.arange(1, self.virtual + 1)[:, None]
            turns = (v == 1) | ((p > 1) & (m % p == 0) & (p * v <= self.count))
            # were all stages equally slow
            handed = min(c.handed for c in costs) * v
            often = 2 * (p - 1) / p if len(used) == 1 else p > 1  # how often a stage does, in the mean
            slowest = np.maximum(1 / sums.stages(stages) + often * handed, sums.largest + (p > 1) * handed)
            every = sums.least + 2 * (p - 1) * handed
            shared = x.context * d > 1 or (self.has_experts and max(ranks) > x.expert)
            cuts = (False, True) if self.problem.zero_bubble and framework != "megatron" else (False,)
            zeros = range(4) if framework else self.zeros if shared else (1,)
            for zero, cut in product(zeros, cuts):
                if not experts_placed(framework, self.problem.model, x.degrees(used[0], d, zero)):
                    continue
                room = self._room(x, used, costs, d, zero, stages)
                share = ZERO_BUBBLE if cut else 1 / v
                least = (m - share) * slowest + every * share + self._end(x, used, costs, d, zero) / p
                there = turns & (v == 1) & (p > 1) if cut else turns
                fits = there & (room >= 1 - TOLERANCE) & (least < below)
                for i, j in zip(*np.nonzero(fits), strict=True):
                    each = [(k, x.tensor[k], int(n)) for k, n in zip(used, stages[:, j], strict=True)]
                    for order in permutations(each):
                        segments = tuple(Segment(*part) for part in order)
                        family = LayoutFamily(segments, d, x.context, x.expert, x.micro_batch, int(v[i, 0]), zero, cut)
                        if wish.is_met(family) and (
                            not framework or zero in shares(framework, family.stages, family.context)
                        ):
                            found.append((float(least[i, j]), family))
        return found

    def share(self, x: Combination, family: LayoutFamily) -> float:
        """Return the bytes of weights, and all that goes with them, of a GPU if stages have equal parts."""
        pool = family.segments[0].pool
        at = x.degrees(pool, family.data, family.zero)
        if (costs := self.blocks(pool, at)) is None:
            return inf
        own, experts = costs.weights @ self.number, costs.expert_weights @ self.number
        return float(sum(stage_memory(self.problem, at, own, experts, 0.0, 0.0)) / family.stages)

    def _sums(self, rows: Sequence[FloatArray]) -> Sums:
        """Return sums along the chain of what each kind of block is on each pool."""
        each = np.stack(rows)
        alone, least = each @ self.number, np.where(self.number > 0, each.min(axis=0), 0.0)
        if len(each) == 1 or not alone.all():
            return Sums(alone, float(least @ self.number), 1.0, float(least.max()))
        share = (each / alone[:, None]).min(axis=0) @ self.number
        return Sums(alone, float(least @ self.number), float(share), float(least.max()))

    def _end(self, x: Combination, used: list[int], costs: list[BlockCosts], d: int, zero: int) -> float:
        """Return the seconds that all stages take once a step at least, one after the other."""
        bytes_ = self.problem.gradient_bytes * (2, 1, 0, 0)[zero] + self.problem.width * (0, 1, 1, 0)[zero]
        rows = []
        for k, cost in zip(used, costs, strict=True):
            pool, at = self.problem.pools[k], x.degrees(k, d, zero)
            sent = pool.gather(at.context * d, at.tensor).each * cost.weights
            sent = sent + pool.gather(at.ranks // at.expert, at.expert).each * cost.expert_weights
            rows.append(bytes_ * sent + cost.update)
        return self._sums(rows).least

    def _room(self, x: Combination, used: list[int], costs: list[BlockCosts], d: int, zero: int, stages: Any) -> Any:
        """Return how often so many stages of each pool have room for the weights and all that goes with them."""
        rows, room = [], []
        for k, cost in zip(used, costs, strict=True):
            at = x.degrees(k, d, zero)
            memory = stage_memory(self.problem, at, cost.weights, cost.expert_weights, 0.0, 0.0)
            rows.append(np.asarray(sum(memory) - memory.buffers))
            room.append(max(0.0, self.problem.pools[k].memory * (1 + TOLERANCE) - memory.buffers))
        return self._sums(rows).stages(stages, np.array(room))
