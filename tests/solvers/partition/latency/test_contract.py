"""Items that are in one call in every plan: against enumeration, and where a comment argues it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gangplan import solve, verify
from gangplan.instances import Cluster, DeviceType, LatencyProblem
from gangplan.solvers.partition.latency.contract import contract
from gangplan.solvers.partition.latency.reduced import ReducedLatency, reduce
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.tiny import graph_of
from gangplan.solvers.partition.tiny import random_latency as random_problem
from tests.seeds import some


def _best(r: ReducedLatency) -> float | None:
    """Return the least latency of all ways to put groups into slots."""
    plans = (r.plan(slots) for slots in product(range(len(r.slots)), repeat=len(r.groups)))
    found = [v.objective for v in (verify(r.problem, plan) for plan in plans) if v.ok]
    return min((x for x in found if x is not None), default=None)


def test_the_optimum_stays() -> None:
    """On small problems in which it merges something the best plan is the enumeration's."""
    merged = 0
    seeds = some(range(300), 5)
    for seed in seeds:
        problem = random_problem(seed)
        before = reduce(problem)
        after = contract(before)
        if after.n_items < before.n_items and len(after.slots) ** len(after.groups) <= 5000:
            merged += 1
            best = optimum(problem)
            assert _best(after) == (None if best is None else pytest.approx(best)), seed
    assert merged > len(seeds) // 20


def test_a_cycle_of_groups_is_one_call() -> None:
    """Two groups that wait for each other, and what is between them, are one item; what is behind stays apart."""
    # ops a0 b1 a2 b3 c4 d5 in a line, groups a and b: b is between the ops of a and a between those of b; c is between
    # no two of them, d neither
    line = (np.arange(5), np.arange(1, 6))
    made = (np.array([0, 1, 0, 1, -1, -1], np.int32), np.full(6, -1, np.int32), np.zeros(6, bool))
    graph = graph_of(("gpu",), np.ones((1, 6)), np.zeros(6), np.zeros(6), line, made=made)
    problem = LatencyProblem(graph, Cluster.flat((DeviceType("gpu"), 2), bandwidth=1.0))
    r = contract(reduce(problem))
    assert r.item_of.tolist() == [0, 0, 0, 0, 1, 2]
    assert r.time.tolist() == [[4.0, 1.0, 1.0]]
    assert solve(problem, 5).objective == 6.0


def test_hosts_keep_groups_apart() -> None:
    """A group that fits a host may be there op by op, and is not merged."""
    line = (np.arange(2), np.arange(1, 3))
    made = (np.array([0, -1, 0], np.int32), np.full(3, -1, np.int32), np.zeros(3, bool))
    graph = graph_of(("gpu", "cpu"), np.ones((2, 3)), np.zeros(3), np.zeros(3), line, made=made)
    cluster = Cluster.flat((DeviceType("gpu"), 2), (DeviceType("cpu", host=True), 1), bandwidth=1.0)
    assert contract(reduce(LatencyProblem(graph, cluster))).n_items == 3
