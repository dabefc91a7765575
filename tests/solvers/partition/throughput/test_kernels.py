"""Compiled kernels say to the bit what numba's said before them, and what they say as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import PartitionProblem
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers import Run, native
from gangplan.solvers.method import suite
from gangplan.solvers.partition.throughput import cut_kernels, kernels
from gangplan.solvers.partition.throughput.annealing import _slots
from gangplan.solvers.partition.throughput.cuts import forward, stage_of
from gangplan.solvers.partition.throughput.methods import ReducedThroughput
from gangplan.solvers.partition.throughput.orders import Pipeline, decoder_of

from ...uncompiled import uncompiled

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit 2c4fd7fc made of `problems`; ``decoded`` is of bd941438, which said the same."""
FAMILIES = {"layered": (12, 200, 4000), "fork_join": (60,), "series_parallel": (60, 1000), "pipeline": (300,)}
MOVES = 20_000


def problems() -> Iterator[tuple[str, PartitionProblem]]:
    """Yield problems by name: tiny ones of all variants with hosts, types and memory that binds, and larger ones."""
    tools = suite("throughput")
    for seed in range(24):
        variant = tools.variants[seed % 3]
        yield f"{variant} {seed}", tools.random_problem(seed, variant)
    for family, sizes in FAMILIES.items():
        for size in sizes:
            yield f"{family} {size}", make("throughput", family, seed_of("validation", size), size)


def told(load: float, *parts: Any) -> str:
    """Return a load to the bit, seconds, and a digest of arrays."""
    text = json.dumps([np.asarray(part).tolist() for part in parts])
    return f"{float(load).hex()} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def shown(pipeline: Pipeline | None) -> str | None:
    """Return what a pipeline is."""
    return pipeline and told(pipeline.load, [t for t, _ in pipeline.stages], *(groups for _, groups in pipeline.stages))


def annealed(problem: PartitionProblem, module: Any = kernels, moves: int = MOVES) -> list[str]:
    """Return what two annealings make of PipeDream's plan, one after the other; nothing if there is none."""
    run, reduced = Run(problem, time_limit=600.0), ReducedThroughput(problem)
    suite("throughput").methods["pipedream"].run(run, reduced)
    if run.plan is None:
        return []
    stage, kind = _slots(reduced.own, run)
    data = module.PipelineArrays(reduced.own)
    plan, best, peak, found = module.PipelineState(data, stage, kind), stage.copy(), run.objective, []
    for i, heat in enumerate((1.0, 0.1)):
        hot = heat / reduced.own.n_groups
        peak = module.anneal(data, plan, best, peak, hot, hot / 10, moves, i)
        found.append(told(peak, best, stage, plan.load))
    return found


def decoded(problem: PartitionProblem) -> list[str | None]:
    """Return plans along some orders, polished, and what they have in common; nothing if there plainly is no plan."""
    decoder = decoder_of(ReducedThroughput(problem).pipeline)
    if decoder is None:
        return []
    keys = np.random.default_rng(0).standard_normal((3, decoder.q.n_groups))
    orders = [
        forward(decoder.arrays, decoder.place + scale * x) for scale, x in zip((0.0, 0.1, 1.0), keys, strict=True)
    ]
    cuts = [decoder.cut(order[None]) for order in orders]
    made = [x and decoder.polished(x) for x in cuts]
    return [*map(shown, made), shown(decoder.join([x for x in made if x is not None]))]


@pytest.mark.parametrize(("name", "problem"), [*problems()])
def test_outcomes_are_those_recorded(name: str, problem: PartitionProblem) -> None:
    """Annealing, the cuts of several orders and the polish give the loads and plans that numba's kernels gave."""
    golden = json.loads(GOLDEN.read_text())[name]
    assert annealed(problem) == golden["annealed"]
    assert decoded(problem) == golden["decoded"]


@pytest.mark.parametrize("seed", [1, 6, 17])
def test_the_source_does_what_is_compiled(seed: int) -> None:
    """Annealing, moves, orders and cuts run from the source as plain Python say the same of tiny problems."""
    tools, source = suite("throughput"), uncompiled(native, kernels)
    problem = tools.random_problem(seed, tools.variants[seed % 3])
    assert annealed(problem, source, 300) == annealed(problem, moves=300) != []
    decoder = decoder_of(ReducedThroughput(problem).pipeline)
    assert decoder is not None and decoder.base is not None
    scores, found = np.random.default_rng(seed).standard_normal((2, decoder.q.n_groups)), []
    for module, cuts in ((kernels, cut_kernels), (source, uncompiled(native, kernels, cut_kernels))):
        data = module.PipelineArrays(decoder.q)
        orders = np.stack([cuts.extend(data, row) for row in scores])
        number = np.zeros((2, decoder.q.n_groups + 1), np.int64)
        sums = np.concatenate([[[0], [0]], np.cumsum(1 << orders, axis=1)], axis=1)
        prefixes = cuts.numbered(sums, number)
        load, trace = cuts.cut(data, orders, number, prefixes, decoder.ceiling)
        plan = module.PipelineState(data, stage_of(decoder.base.stages, decoder.q.n_groups), np.zeros(9, np.int64))
        found.append((orders.tolist(), prefixes, load, trace.tolist(), module.improve(data, plan, 9)))
    assert found[0] == found[1]


def test_arrays_of_another_shape_are_refused() -> None:
    """What does not fit the problem is not written beyond its end."""
    q = ReducedThroughput(suite("throughput").random_problem(1, "convex")).own
    data, none, one = kernels.PipelineArrays(q), np.zeros(0, np.int64), np.zeros((1, 1), np.int64)
    plan = kernels.PipelineState(data, np.zeros(q.n_groups, np.int64), np.zeros(1, np.int64))
    some, fine = np.arange(q.n_groups)[None], np.arange(q.n_groups + 1)[None]
    for call in (
        lambda: kernels.PipelineState(data, none, np.zeros(1, np.int64)),
        lambda: kernels.PipelineState(data, np.ones(q.n_groups, np.int64), np.zeros(1, np.int64)),
        lambda: kernels.anneal(data, plan, none, 1.0, 1.0, 0.1, 1, 0),
        lambda: cut_kernels.extend(data, np.zeros(0)),
        lambda: cut_kernels.cut(data, one, one, 1, 1.0),
        lambda: cut_kernels.cut(data, some + 1, fine, len(fine[0]), 1.0),
        lambda: cut_kernels.cut(data, some, fine, len(fine[0]) - 1, 1.0),
        lambda: cut_kernels.numbered(fine, fine[:, 1:].copy()),
    ):
        with pytest.raises(ValueError, match="groups"):
            call()
