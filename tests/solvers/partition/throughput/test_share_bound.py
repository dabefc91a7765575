"""The bound from shares of stages, against the optimum by enumeration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan import solve
from gangplan.instances import Cluster, DeviceType
from gangplan.instances.generators import generate
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.throughput.bounds import counting_bound
from gangplan.solvers.partition.throughput.methods import ReducedThroughput
from gangplan.solvers.partition.throughput.quotient import quotient
from gangplan.solvers.partition.throughput.share_bound import Order, Shares, share_bounds
from gangplan.solvers.partition.tiny import random_throughput as random_problem

from ....seeds import examples
from .test_bounds import both, dear_chain, equal_devices

SEEDS = st.integers(0, 2**32)


def never() -> bool:
    """Let the bound take its time."""
    return False


@settings(max_examples=examples(80), deadline=None)
@given(SEEDS, st.sampled_from([1.0, 1.1, 3.0]))
def test_no_pipeline_beats_it(seed: int, above: float) -> None:
    """No load that a pipeline has is found too small, nor is a bound above the optimum."""
    problem = equal_devices(seed)
    best = optimum(problem)
    if best is not None and best > 0:
        for q in both(problem):
            if q.nets:
                assert not Shares(q, Order(q), best * (1 + 1e-6)).too_many(never)
                floor = max(counting_bound(q), best / 2)
                assert all(x <= best for x in share_bounds(q, floor, best * above, never))


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_mixed_devices(seed: int) -> None:
    """It holds for device types of several speeds and sizes too; where hosts pay nothing it says nothing."""
    problem = random_problem(seed)
    best = optimum(problem)
    if best:
        q = quotient(problem)
        assert all(x <= best * (1 + 1e-9) for x in share_bounds(q, best / 2, 2 * best, never))


@pytest.mark.parametrize("seed", range(4))
def test_most_of_the_gap_is_closed(seed: int) -> None:
    """On layered graphs of 60 ops with dear transfers it closes more than half of what counting leaves open."""
    problem = generate("layered", ops=60, layers=45, degree=2.0, training=False, devices=3 + seed % 3, seed=seed)
    best = solve(problem, time_limit=60, method="pipeline", workers=1)
    assert best.status == "OPTIMAL" and best.objective is not None
    q = ReducedThroughput(problem).pipeline
    floor = counting_bound(q)
    bounds = list(share_bounds(q, floor, best.objective, never))
    assert bounds == sorted(bounds)
    assert bounds[-1] <= best.objective
    assert bounds[-1] - floor > 0.5 * (best.objective - floor)


def test_without_an_argument() -> None:
    """It says nothing about hosts, a single device, or where the bound is met already."""
    two = random_problem(0)
    for kinds, counts in (((DeviceType("gpu"), DeviceType("cpu", host=True)), (2, 1)), ((DeviceType("gpu"),), (1,))):
        cluster = Cluster.flat(*zip(kinds, counts, strict=True), bandwidth=1.0)
        assert not list(share_bounds(quotient(replace(two, cluster=cluster)), 1.0, 1e9, never))
    q = quotient(equal_devices(1))
    assert not list(share_bounds(q, 2.0, 2.0, never))
    assert not list(share_bounds(q, 1e-3, 2.0, lambda: True))


def test_chain_by_hand() -> None:
    """Where every cut is dear it comes near the optimum, which is above what all work shared out takes."""
    # a chain of four ops of 1 s, outputs of 1 s, two devices. Below a load of 3 there is no stage for the second op:
    # alone it takes 1 + 2, with the first 2 + 1, with the third 2 + 2, with three or all of them 3 + 1 or 4. So the
    # optimum is a b | c d, 3; work alone says 2
    q = dear_chain()
    assert counting_bound(q) == 2.0
    assert 2.98 < max(share_bounds(q, 2.0, 4.0, never)) < 3.0
