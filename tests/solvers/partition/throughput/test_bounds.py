"""Bounds that need no solver, against the optimum by enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import Cluster, DeviceType, OpGraph, PartitionProblem, precedence
from gangplan.instances.generators import generate
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.throughput.bounds import counting_bound, impossible, work_bound
from gangplan.solvers.partition.throughput.cycles import cyclic_bound
from gangplan.solvers.partition.throughput.dominate import dominate
from gangplan.solvers.partition.throughput.quotient import Quotient, quotient
from gangplan.solvers.partition.tiny import random_throughput as random_problem

from ....seeds import examples

SEEDS = st.integers(0, 2**32)
VARIANTS = st.sampled_from(["contiguous", "convex", "free"])


def equal_devices(seed: int) -> PartitionProblem:
    """Make a pipeline problem on 2 to 5 equal accelerators where transfers go from negligible to overwhelming."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    n = int(rng.integers(3, {2: 11, 3: 9, 4: 8, 5: 7}[k]))
    u, v = np.triu_indices(n, 1)
    kept = (rng.random(len(u)) < rng.choice([0.2, 0.4, 0.8])) | ((v == u + 1) & (rng.random() < 0.3))
    time = [np.ones(n), rng.integers(0, 4, n), rng.random(n), np.exp(rng.normal(0, 2, n))][rng.integers(4)]
    output = rng.choice([0.1, 1.0, 5.0, 1e3]) * [rng.integers(0, 3, n), rng.random(n), np.ones(n)][rng.integers(3)]
    memory = rng.integers(0, 4, n).astype(float)
    limit = float(max(memory.max(), memory.sum() * rng.choice([0.4, 0.6, 2.0]))) or None
    graph = OpGraph(
        names=tuple(f"op{i}" for i in range(n)),
        device_types=("gpu",),
        time=time[None] * (rng.choice([0.0, 1e-9, 1e9]) if rng.random() < 0.1 else 1.0),
        memory=memory,
        parameter_bytes=np.zeros(n),
        activation_bytes=output,
        source=u[kept],
        target=v[kept],
        edge_bytes=output[u[kept]],
        colocation=rng.integers(-1, n, n) if rng.random() < 0.3 else np.full(n, -1),
        twin=np.full(n, -1),
        backward=np.zeros(n, dtype=bool),
    )
    return PartitionProblem(graph, Cluster.flat((DeviceType("gpu", memory=limit), k), bandwidth=1.0))


def both(problem: PartitionProblem) -> tuple[Quotient, Quotient]:
    """Return the quotient before and after dominated groups were merged."""
    return quotient(problem), dominate(quotient(problem))


def dear_chain() -> Quotient:
    """Return a chain of four ops of 1 s with outputs of 1 s, on two devices."""
    problem = equal_devices(0)
    n = 4
    graph = replace(
        problem.graph,
        names=tuple("abcd"),
        time=np.ones((1, n)),
        **{f: np.zeros(n) for f in ("memory", "parameter_bytes", "activation_bytes")},
        source=[0, 1, 2],
        target=[1, 2, 3],
        edge_bytes=np.ones(3),
        colocation=np.full(n, -1),
        twin=np.full(n, -1),
        backward=np.zeros(n, dtype=bool),
    )
    return quotient(PartitionProblem(graph, Cluster.flat((DeviceType("gpu"), 2), bandwidth=1.0)))


@settings(max_examples=examples(150))
@given(SEEDS, VARIANTS)
def test_counting_and_work_bound(seed: int, variant: str) -> None:
    """No plan beats the work bound or the counting bound, which is the better of the two."""
    problem = random_problem(seed, variant)
    best = optimum(problem)
    if best is not None:
        for q in both(problem):
            assert work_bound(q) <= counting_bound(q) * (1 + 1e-9)
            assert counting_bound(q) <= best * (1 + 1e-9)


def test_counting_bound_by_hand() -> None:
    """Four ops of 3 s on three devices: some device takes two, 6 s, where the work is 4 s each."""
    problem = equal_devices(0)
    graph = replace(
        problem.graph,
        names=tuple("abcd"),
        time=np.full((1, 4), 3.0),
        **{f: np.zeros(4) for f in ("memory", "parameter_bytes", "activation_bytes", "edge_bytes")},
        source=[0, 0, 0, 0],
        target=[1, 2, 3, 3],
        colocation=np.full(4, -1),
        twin=np.full(4, -1),
        backward=np.zeros(4, dtype=bool),
    )
    q = quotient(PartitionProblem(graph, Cluster.flat((DeviceType("gpu"), 3), bandwidth=1.0)))
    assert work_bound(q) == 4.0
    assert counting_bound(q) == pytest.approx(6.0, rel=1e-8)


@settings(max_examples=examples(150))
@given(SEEDS)
def test_cyclic_bound(seed: int) -> None:
    """A convex plan that is better than every pipeline has a cycle, and so is no better than the cyclic bound."""
    problem = random_problem(seed, "convex")
    best, pipeline = optimum(problem), optimum(replace(problem, variant="contiguous"))
    if best is not None:
        for q in both(problem):
            bound = min(np.inf if pipeline is None else pipeline, cyclic_bound(q))
            assert bound <= best * (1 + 1e-9)


@settings(max_examples=examples(150))
@given(SEEDS, VARIANTS)
def test_impossible_is(seed: int, variant: str) -> None:
    """What is called impossible has no plan."""
    problem = random_problem(seed, variant)
    for q in both(problem):
        if impossible(q) is not None:
            assert optimum(problem) is None


@settings(max_examples=examples(100))
@given(SEEDS, VARIANTS)
def test_dominate_keeps_the_optimum(seed: int, variant: str) -> None:
    """Keeping merged groups on one device costs nothing."""
    problem = random_problem(seed, variant)
    merged = dominate(quotient(problem))
    # ops of a merged group, as one colocation class; those outside the order may not move it
    together = replace(problem, graph=replace(problem.graph, colocation=merged.group_of))
    if all(np.array_equal(a, b) for a, b in zip(precedence(problem.graph), precedence(together.graph), strict=True)):
        best, kept = optimum(problem), optimum(together)
        assert kept == (None if best is None else pytest.approx(best, rel=1e-9))


def test_dominate_merges_something() -> None:
    """On the training graph of a network some groups are dominated, or the property above would be empty."""
    q = quotient(generate("gpt", layers=2))
    assert dominate(q).n_groups < 0.9 * q.n_groups
