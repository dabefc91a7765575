"""The optimum of tiny problems by looking at every plan, and such problems, in which every constraint may bind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations, permutations, product
from math import comb, inf
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.errors import InstanceError
from gangplan.instances.layout.measured import MeasuredLayers
from gangplan.instances.layout.pool import GpuPool, Link
from gangplan.instances.layout.problem import OPTIMIZERS, PRECISIONS, Calibration, LayoutProblem
from gangplan.instances.layout.transformer import Transformer
from gangplan.instances.verify import TOLERANCE, verify
from gangplan.instances.verify.layout import misfits

from .family import LayoutFamily, Segment

MOST = 200_000
"""Ways to split a problem worth looking at."""


def optimum(problem: LayoutProblem) -> float | None:
    """Return the least seconds a step of any feasible plan, `None` if there is no feasible plan.

    It takes nothing from the solvers: what a stage takes and needs is read off what the verifier says of plans. A step
    is no shorter if a stage is busy for longer, so each stage computes as little again as it can. More than `MOST` ways
    to split the blocks are refused.
    """
    count, every = len(problem.model.chain()), list(ways(problem))
    if (looks := sum(comb(count - 1, way.stages * way.virtual - 1) for way in every)) > MOST:
        raise InstanceError("instance", f"{looks} ways to split it, {MOST} are the most")
    best = min((_seconds(problem, way, cut) for way in every for cut in _cuts(count, way)), default=inf)
    return best if best < inf else None


def ways(problem: LayoutProblem) -> Iterator[LayoutFamily]:
    """Yield every combination of degrees that the verifier takes."""
    model, counts, count = problem.model, [pool.count for pool in problem.pools], len(problem.model.chain())
    experts = max(1, getattr(model, "experts", 0))
    batch = [n for n in range(1, problem.batch + 1) if problem.batch % n == 0]
    for tensor, stages in product(
        product(*(range(1, n + 1) for n in counts)), product(*(range(n + 1) for n in counts))
    ):
        p = sum(stages)
        used = [k for k, n in enumerate(stages) if n]
        if not 1 <= p <= count or any(tensor[k] > 1 for k in range(len(counts)) if k not in used):
            continue
        most = min(counts[k] // (stages[k] * tensor[k]) for k in used)
        for d, c in product(batch, range(1, most + 1)):
            if d * c > most:
                continue
            sizes = [n for n in batch if problem.batch % (n * d) == 0]
            shares = [n for n in range(1, experts + 1) if experts % n == 0]
            for e, b, v in product(shares, sizes, range(1, count // p + 1)):
                for order in permutations(used):
                    way = LayoutFamily(tuple(Segment(k, tensor[k], stages[k]) for k in order), d, c, e, b, v)
                    if misfits(problem, way.plan([1] * (p * v - 1) + [count - p * v + 1], [0] * p, [0] * p)):
                        break
                    cuts = (False, True) if problem.zero_bubble and p > 1 and v == 1 else (False,)
                    yield from (way._replace(zero=zero, zero_bubble=cut) for zero in range(4) for cut in cuts)


def _cuts(count: int, way: LayoutFamily) -> Iterator[list[int]]:
    """Yield the blocks of each chunk, all ways."""
    for ends in combinations(range(1, count), way.stages * way.virtual - 1):
        yield np.diff([0, *ends, count]).tolist()


def _seconds(problem: LayoutProblem, way: LayoutFamily, blocks: list[int]) -> float:
    """Return the least seconds of a step with given degrees and chunks, infinite if it does not fit."""
    p = way.stages
    layers = [sum(blocks[s::p]) - (s == 0) - (s == (len(blocks) - 1) % p) for s in range(p)]
    some = isinstance(problem.model, Transformer)  # measured layers compute all again, or nothing
    options = [[(i, n) for n in range(max(0, x) + 1) for i in range(some * (max(0, x) - n) + 1)] for x in layers]
    chosen: list[tuple[float, tuple[int, int]]] = [(inf, (0, 0))] * p
    for nth in range(max(map(len, options))):
        again = [x[min(nth, len(x) - 1)] for x in options]
        found = verify(problem, way.plan(blocks, *zip(*again, strict=True)))
        if any(not words.startswith("memory") for words in found.violations):  # not measured
            return inf
        for s, (pool, *_) in enumerate(way.of_stage):
            if found.memory[:, s].sum() <= problem.pools[pool].memory * (1 + TOLERANCE):
                chosen[s] = min(chosen[s], (float(found.seconds[:8, s].sum()), again[s]))
    if any(busy == inf for busy, _ in chosen):
        return inf
    seconds = verify(problem, way.plan(blocks, *zip(*(again for _, again in chosen), strict=True))).objective
    return inf if seconds is None else seconds


def random_problem(seed: int, variant: str = "", *, layers: int = 4) -> LayoutProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    One to six GPUs of one type or two, on one level of links or two; computing, each kind of communication and latency
    from none to most of the time; memory from ample to too small, so some problems have no plan; some models have
    experts, latent attention, a tied head, odd numbers; some layers are measured, with any seconds at all.

    Args:
        layers: of the model, at most.
    """
    rng = np.random.default_rng(seed)
    pick = partial(_pick, rng)
    unlike = rng.random() < 0.35
    counts = [int(rng.integers(1, 4)) for _ in range(2)] if unlike else [int(rng.integers(1, 7))]
    batch, sequence, precision = pick(1, 2, 3, 4, 4, 6), pick(4, 6, 7, 8), pick(*PRECISIONS)
    model: Any = _measured(rng, layers, batch) if rng.random() < 0.25 else _transformer(rng, layers)
    parameters = float(model.weights.sum(axis=1).max()) if isinstance(model, MeasuredLayers) else model.parameters
    scale = parameters / layers  # of the FLOPs and bytes of a layer
    pools = []
    for i, n in enumerate(counts):
        rate = scale * pick(2.0, 8.0, 30.0)
        links = sorted({*(pick(2, 3) for _ in range(pick(0, 1))), n})
        levels = tuple(Link(span, scale * pick(0.1, 1.0, 10.0), pick(0.0, 0.01, 0.3)) for span in links if span <= n)
        room = parameters * 16 / sum(counts) * pick(0.4, 0.8, 1.2, 1.6, 2.5, 6.0)
        pools.append(GpuPool("AB"[i], n, room, scale * pick(3.0, 30.0), rate, rate * 2, rate / 2, levels))
    return LayoutProblem(
        model, tuple(pools), batch, sequence, precision, pick(*OPTIMIZERS), pick(2.0, 4.0), pick(0.0, 0.0, scale),
        bool(rng.random() < 0.2),
        Calibration(pick(0.5, 1.0), 0.5, pick(0.2, 1.0), 1.0, pick(0.0, 0.0, 0.2), pick(0.0, 0.5, 0.8, 1.0)),
    )  # fmt: skip


def _pick(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _transformer(rng: np.random.Generator, layers: int) -> Transformer:
    pick = partial(_pick, rng)
    heads, n = pick(1, 2, 3, 4, 6), int(rng.integers(1, layers + 1))
    experts = pick(0, 0, 2, 3, 4)
    more: dict[str, Any] = {}
    if experts:
        more = {
            "experts": experts, "active": pick(1, 2), "expert_feedforward": pick(4, 12),
            "shared_feedforward": pick(0, 0, 12), "first_dense": int(rng.integers(0, n + 1)),
        }  # fmt: skip
    if rng.random() < 0.2:
        more |= {"kv_rank": 4, "rope": 2, "query_rank": pick(0, 4), "value_head": pick(0, 2)}
    if rng.random() < 0.2:
        more |= {"window": 3, "windowed": int(rng.integers(0, n + 1))}
    divisors = [k for k in range(1, heads + 1) if heads % k == 0]
    tied, gated = bool(rng.random() < 0.3), bool(rng.random() < 0.7)
    return Transformer(
        "tiny", n, 4 * heads, heads, pick(1, *divisors), 4, pick(8, 24, 200), pick(12, 24), gated, tied, **more
    )


def _measured(rng: np.random.Generator, layers: int, batch: int) -> MeasuredLayers:
    blocks = int(rng.integers(1, layers + 3))
    rows = [(gpu, b, t) for gpu in "AB" for b in range(1, batch + 1) for t in (1, 2, 3) if rng.random() < 0.6]
    rows = rows or [("A", 1, 1)]

    def some(most: float) -> FloatArray:
        return np.asarray(most * rng.integers(0, 6, (len(rows), blocks)), dtype=np.float64)

    gpu, micro, tensor = zip(*rows, strict=True)
    arrays: list[Any] = [np.array(micro), np.array(tensor)]
    parts = [some(x) for x in (1.0, 1.0, 0.2, 10.0, 30.0, 30.0)]
    return MeasuredLayers("measured", tuple(map(str, range(blocks))), gpu, *arrays, *parts)
