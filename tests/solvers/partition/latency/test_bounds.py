"""Bounds and preprocessing, against the optimum by enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import LatencyProblem, with_objective
from gangplan.instances.generators import generate
from gangplan.solvers import Run
from gangplan.solvers.partition.latency.bounds import ceiling, impossible, path_bound
from gangplan.solvers.partition.latency.chain import longest
from gangplan.solvers.partition.latency.chain_bound import ChainBound, chains
from gangplan.solvers.partition.latency.dominate import dominate
from gangplan.solvers.partition.latency.methods import METHODS
from gangplan.solvers.partition.latency.reduced import ReducedLatency, reduce
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.tiny import random_latency as random_problem

from ....seeds import examples
from ..conftest import Make

SEEDS = st.integers(0, 2**32)


def bounded(problem: LatencyProblem, r: ReducedLatency) -> Run:
    """Return a run with the bound of all chains."""
    run = Run(problem, time_limit=60)
    for chain in chains(r):
        ChainBound(chain).run(run)
    return run


@settings(max_examples=examples(200))
@given(SEEDS)
def test_no_plan_beats_a_bound(seed: int) -> None:
    """The optimum is no better than any bound, before and after preprocessing, and not above the ceiling."""
    problem = random_problem(seed)
    best = optimum(problem)
    for r in (reduce(problem), dominate(reduce(problem))):
        run = bounded(problem, r)
        if best is None:
            continue
        assert not run.infeasible
        assert run.bound is None or run.bound <= best * (1 + 1e-9)
        assert path_bound(r) <= best * (1 + 1e-9)
        assert ceiling(r) > best


@settings(max_examples=examples(100))
@given(SEEDS, st.integers(0, 2**32))
def test_any_path_bounds(seed: int, weights: int) -> None:
    """The recurrence on whatever path is a bound."""
    problem = random_problem(seed)
    best = optimum(problem)
    if best is not None:
        r = reduce(problem)
        run = Run(problem, time_limit=60)
        ChainBound(longest(r, np.random.default_rng(weights).random(r.n_items))).run(run)
        assert run.bound is None or run.bound <= best * (1 + 1e-9)


def test_a_chain_is_bounded_exactly() -> None:
    """Of a graph that is a path the bound is the optimum."""
    for seed in range(60):
        problem = random_problem(seed)
        n = problem.graph.n_ops
        sizes = np.random.default_rng(seed).integers(0, 4, n - 1).astype(float)
        graph = replace(
            problem.graph,
            source=np.arange(n - 1, dtype=np.int32),
            target=np.arange(1, n, dtype=np.int32),
            edge_bytes=sizes,
            activation_bytes=np.append(sizes, 0.0),
            colocation=np.full(n, -1, dtype=np.int32),
        )
        path = replace(problem, graph=graph)
        # of one type, or the bound may use the better one for all calls; hosts that hold everything
        counts = path.cluster.counts()
        best = optimum(path)
        if best is None or (counts[:2] > 0).sum() != 1 or (counts[2] and path.capacity()[path.hosts()].min() < np.inf):
            continue
        run = bounded(path, reduce(path))
        assert run.bound == pytest.approx(best, rel=1e-6) or best == 0, seed


def test_memory_counts_in_the_bound(make: Make) -> None:
    """A call that has no room for a cheap neighbour pays for its transfer in the bound already."""
    # c needs a and b; GPUs hold two of the three. c with a pays 5 for b's output and the other way round; b on the
    # other GPU: 1 + 5 | 5 + 1 + 1, both calls' worth, and as the path a-c or b-c sees it: 5 + 1 + 1 at least
    problem = make([1, 1, 1], [(0, 2, 5), (1, 2, 5)], size=[1, 1, 1], memory=2)
    r = reduce(problem)
    run = bounded(problem, r)
    assert optimum(problem) == 13
    assert run.bound == pytest.approx(7, rel=1e-6)


@settings(max_examples=examples(200))
@given(SEEDS)
def test_dominate_keeps_the_optimum(seed: int) -> None:
    """Keeping merged items on one device costs nothing."""
    problem = random_problem(seed)
    merged = dominate(reduce(problem))
    graph = problem.graph
    group = np.where(merged.item_of >= 0, merged.group_of[merged.item_of], -1)
    # ops of a merged item as one class; those without an item stay free to be where they are
    together = replace(problem, graph=replace(graph, colocation=group.astype(np.int32)))
    best = optimum(problem)
    assert optimum(together) == (None if best is None else pytest.approx(best, rel=1e-9))


def test_dominate_merges_something() -> None:
    """On a network with memory for everything, and on random problems, some items are merged or left out."""
    r = reduce(with_objective(generate("gpt", layers=2, training=False), "latency"))
    assert dominate(r).n_items < 0.9 * r.n_items
    small = [reduce(random_problem(seed)) for seed in range(100)]
    assert sum(dominate(r).n_items < r.n_items for r in small) > 10
    assert sum((r.item_of < 0).any() for r in small) > 5


@settings(max_examples=examples(100))
@given(SEEDS)
def test_impossible_is(seed: int) -> None:
    """What is called impossible has no plan."""
    problem = random_problem(seed)
    if impossible(reduce(problem)) is not None:
        assert optimum(problem) is None


def test_chain_offers_what_it_has_in_mind() -> None:
    """Where the bound is the optimum, the calls behind it are often the plan."""
    found = 0
    for seed in range(40):
        problem = random_problem(seed)
        run = Run(problem, time_limit=60)
        r = dominate(reduce(problem))
        if impossible(r) is None:
            METHODS["chain"].run(run, r)
            found += run.gap is not None and run.gap <= 1e-6
    assert found > 10
