"""The bound by waists and blocks: against enumeration, and where a comment argues it."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import Cluster, DeviceType, LatencyProblem, with_objective
from gangplan.instances.generators import generate
from gangplan.solvers.partition.latency.bounds import impossible, path_bound
from gangplan.solvers.partition.latency.contract import contract
from gangplan.solvers.partition.latency.dominate import dominate
from gangplan.solvers.partition.latency.reduced import reduce
from gangplan.solvers.partition.latency.series_bound import SeriesBound
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.tiny import graph_of, nobody
from gangplan.solvers.partition.tiny import random_latency as random_problem
from tests.seeds import some


def test_no_plan_is_below_it() -> None:
    """The bound is no more than the optimum by enumeration, and often that, above the longest path."""
    above = exact = 0
    seeds = some(range(900))
    for seed in seeds:
        problem = random_problem(seed, ops=7)
        if problem.hosts().any():
            continue
        best = optimum(problem)
        for r in (contract(reduce(problem)), dominate(contract(reduce(problem)))):
            if impossible(r):
                continue
            bound = SeriesBound(r).value()
            assert bound <= (inf if best is None else best * (1 + 1e-9)), seed
            above += best is not None and bound > path_bound(r) * (1 + 1e-9)
            exact += best is not None and bound >= best * (1 - 1e-9)
    assert above > len(seeds) // 30 and exact > len(seeds) // 6


def _forks(stages: int, width: int, devices: int, send: float = 0.0, memory: float | None = None) -> LatencyProblem:
    """Return ops of 1 s and a byte each: forks of `width` branches in a row, with an op before, between and behind."""
    edges, last = [], 0
    for _ in range(stages):
        branches = range(last + 1, last + 1 + width)
        edges += [(last, v) for v in branches] + [(v, last + 1 + width) for v in branches]
        last += 1 + width
    n = last + 1
    ends = np.array(edges, dtype=np.int64).T
    graph = graph_of(("gpu",), np.ones((1, n)), np.ones(n), np.full(n, send), (ends[0], ends[1]), made=nobody(n))
    return LatencyProblem(graph, Cluster.flat((DeviceType("gpu", memory=memory), devices), bandwidth=1.0))


@pytest.mark.parametrize(("devices", "bound"), [(1, 16), (2, 16), (3, 16), (4, 14), (6, 13), (7, 12), (10, 10)])
def test_branches_beside_take_calls(devices: int, bound: float) -> None:
    """Each fork whose branches run in m calls takes m + 1 more, and saves all but one m-th of its branches."""
    # 4 ops in series and 3 forks of 4 branches of 1 s. Three calls have one inside a fork, beside nobody. Four: a fork
    # in two calls of two branches, 2 s less. Six: in four calls, 3 s less. Seven: two forks in two calls each. Ten:
    # three forks in two calls each.
    problem = _forks(3, 4, devices)
    assert SeriesBound(reduce(problem)).value() == pytest.approx(bound)
    assert solve(problem, 20).objective == pytest.approx(bound)


def test_a_split_pays_for_transfers() -> None:
    """Two calls that memory asks for are one after the other, and both pay for what the least cut sends."""
    # 6 ops of a byte and devices of 4: with two devices all ops are one after the other, and an output of 0.5 s is sent
    # and received
    assert SeriesBound(reduce(_forks(1, 4, 2, send=0.5, memory=4.0))).value() == pytest.approx(7.0)


def test_two_calls_of_one_graph_are_in_a_row() -> None:
    """On two devices a connected graph without waists takes all of its work."""
    # 0 -> 2, 0 -> 3, 1 -> 3: no op is before or after all others
    graph = graph_of(
        ("gpu",), np.ones((1, 4)), np.zeros(4), np.zeros(4), (np.array([0, 0, 1]), np.array([2, 3, 3])), made=nobody(4)
    )
    problem = LatencyProblem(graph, Cluster.flat((DeviceType("gpu"), 2), bandwidth=1.0))
    assert SeriesBound(reduce(problem)).value() == pytest.approx(4.0)


def test_pipelines_and_series_are_proved() -> None:
    """Micro-batches in colocated stages are a chain, and a graph in series on two devices is done one by one."""
    pipeline = generate("pipeline", micro_batches=4, stages=50, devices=4, training=False, seed=1)
    result = solve(with_objective(pipeline, "latency"), 20)
    assert result.status == "OPTIMAL"
