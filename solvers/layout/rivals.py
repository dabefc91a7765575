"""Rivals under the same cost model: a rule of thumb, equal layers with degrees that are powers of two, annealing.

All of them have equal stages, and each stage computes no more again than memory asks for. Of several pools they use the
one with most FLOP/s.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import exp, inf, log
from typing import Any

import numpy as np

from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.transformer import Transformer
from gangplan.instances.verify import verify
from gangplan.instances.verify.layout import misfits

from ..run import Run
from .family import LayoutFamily, Segment
from .space import Space, divisors
from .split import stage_tables

_SEQUENCE = 8192
"""Tokens of a GPU up to which NVIDIA's guide leaves sequences whole."""
_STEPS, _HOT, _COLD = 4000, 0.3, 0.003
"""Moves of annealing, and its first and its last temperature: what of a step it may lose with a chance of 1 / e."""


def even(space: Space, family: LayoutFamily) -> LayoutPlan | None:
    """Return the layout of a family of one pool with equal layers, `None` if it has none or that does not fit.

    Embedding and head count as layers if that divides them all, else they are in the first and last chunk besides.
    """
    problem, kinds, (segment,) = space.problem, space.kinds, family.segments
    p, parts = segment.stages, segment.stages * family.virtual
    if parts > len(kinds) - 2 or problem.batch % (family.data * family.micro_batch):
        return None
    besides = len(kinds) % parts > 0
    blocks = np.full(parts, (len(kinds) - 2 * besides) // parts)
    blocks[: (len(kinds) - 2 * besides) % parts] += 1
    blocks[0] += besides
    blocks[-1] += besides
    plan = family.plan(blocks, [0] * p, [0] * p)
    if misfits(problem, plan) or (costs := space.blocks(segment.pool, family.degrees(segment))) is None:
        return None
    where = plan.chunks() % p
    counts = np.stack([np.bincount(kinds[where == s], minlength=int(kinds.max()) + 1) for s in range(p)])
    rows = [stage_tables(problem, costs, family, segment, [s], counts[s : s + 1], [0.0])[0] for s in range(p)]
    if any(row.seconds[0] == inf for row in rows):
        return None
    return family.plan(blocks, [int(row.selective[0]) for row in rows], [int(row.full[0]) for row in rows])


def _price(run: Run, space: Space, family: LayoutFamily, by: str) -> float:
    """Offer the even layout of a family; return its seconds."""
    plan = even(space, family)
    seconds = None if plan is None else verify(run.problem, plan).objective
    if plan is None or seconds is None:
        return inf
    if not run.stopped and (run.objective is None or seconds < run.objective):
        run.offer(plan, by)
    return float(seconds)


def _pool(problem: LayoutProblem) -> int:
    return max(range(len(problem.pools)), key=lambda k: problem.pools[k].count * problem.peak(problem.pools[k]))


def _powers(most: int) -> list[int]:
    return [1 << i for i in range(most.bit_length())]


def megatron_rule(run: Run, space: Space) -> None:
    """Offer what NVIDIA's guide says: as little model parallelism as fits, tensor parallelism within a node first.

    Experts are spread over as many GPUs of a node as they can, sequences shared from `_SEQUENCE` tokens on, stages
    interleaved as often as layers allow; data parallelism has the rest, and its optimizer is sharded. Layers compute
    again only where no micro-batch fits without. Of micro-batches that are powers of two the best is taken.
    """
    for families in _by_rule(run.problem):
        found = [(x, even(space, x)) for x in families if not run.stopped]
        plans = [(x, plan) for x, plan in found if plan is not None]
        plain = [(x, plan) for x, plan in plans if not (plan.full.any() or plan.selective.any())]
        for x, _ in plain or plans:
            _price(run, space, x, "megatron_rule")
        if plain or run.stopped:
            return


def _by_rule(problem: LayoutProblem) -> Iterator[list[LayoutFamily]]:
    """Yield families from little model parallelism to much, those that differ in their micro-batch together."""
    k, model = _pool(problem), problem.model
    pool, layers, computed = problem.pools[k], len(model.chain()) - 2, isinstance(model, Transformer)
    if layers < 1:
        return
    node, experts = min(pool.levels[0].span, 8), max(1, getattr(model, "experts", 0))
    c = max(1, problem.sequence // _SEQUENCE) if computed else 1
    ways = [(t, 1) for t in _powers(node)] + [(node, p) for p in _powers(min(pool.count // node, layers))[1:]]
    for t, p in ways:
        d = next((d for d in range(pool.count // (t * c * p), 0, -1) if problem.batch % d == 0), 0)
        e = max((e for e in divisors(experts) if e <= node and d and (t * c * d) % e == 0), default=1)
        found = []
        for b in _powers(problem.batch // d) if d else ():
            turns = p > 1 and problem.batch // (d * b) % p == 0 and computed
            equal = [v for n in (layers, layers + 2) if turns and n % p == 0 for v in divisors(n // p)]
            v = max(v for v in (1, *equal) if v * p <= layers)
            found.append(LayoutFamily((Segment(k, t, p),), d, c, e, b, v, 1))
        yield found


def equal_layers(run: Run, space: Space) -> None:
    """Offer the best layout of equal stages and degrees that are powers of two, the space of Alpa and of Galvatron."""
    problem, k = run.problem, _pool(run.problem)
    pool = problem.pools[k]
    for t, c, e in product(
        *(sorted({*x} & {*_powers(pool.count)}) for x in (space.tensors[k], space.contexts, space.experts))
    ):
        for p, b, zero in product(_powers(pool.count // (t * c)), _powers(problem.batch), (1, 3)):
            d = 1 << ((pool.count // (t * c * p)).bit_length() - 1)
            if run.stopped:
                return
            _price(run, space, LayoutFamily((Segment(k, t, p),), d, c, e, b, 1, zero), "equal_layers")


def annealing(run: Run, space: Space) -> None:
    """Anneal the degrees: each move multiplies some of them, divides others, or changes what replicas share."""
    rng, k = np.random.default_rng(run.seed), _pool(run.problem)
    megatron_rule(run, space)
    plan: Any = run.plan
    if plan is None:
        return
    now = [int(plan.tensor[0]), len(plan.pool)]
    now += [plan.data, plan.context, plan.expert, plan.micro_batch, plan.virtual, plan.zero]
    price = lru_cache(None)(lambda *x: _price(run, space, LayoutFamily((Segment(k, *x[:2]),), *x[2:]), "annealing"))
    value = float(run.objective or inf)
    for step in range(_STEPS):
        if run.stopped:
            return
        new = [*now]
        for i in rng.choice(len(now) - 1, int(rng.integers(1, 4)), replace=False).tolist():
            factor = int(rng.choice([2, 2, 3, 5, 7]))
            new[i] = max(1, new[i] // factor if rng.random() < 0.5 else new[i] * factor)
        if rng.random() < 0.2:
            new[-1] = int(rng.integers(1, 4))
        seconds, heat = price(*new), _HOT * (_COLD / _HOT) ** (step / _STEPS)
        if seconds < inf and rng.random() < exp(min(0.0, log(value / seconds) / heat)):
            now, value = new, seconds
