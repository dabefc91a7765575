"""The bound by what is under way: against enumeration, and where a comment argues it."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from gangplan import solve
from gangplan.hybrid.bench.suite import make, read_manifest
from gangplan.instances import Cluster, DeviceType, Level, OpGraph, StagesProblem, TreeTopology
from gangplan.instances.graph import with_backward
from gangplan.solvers.partition.stages.reduced import ReducedStages
from gangplan.solvers.partition.stages.referee import optimum, random_problem
from gangplan.solvers.partition.stages.under_way import under_way_bound
from gangplan.solvers.partition.tiny import graph_of, nobody
from tests.seeds import some


def tight(seed: int) -> StagesProblem:
    """Return a small problem whose devices have little more memory than what they must hold."""
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    once, kept = (x.min(axis=0) for x in problem.need())
    least = float((once + kept).sum()) / problem.cluster.n_devices
    memory = max(float(once.max(initial=0.0)), least * float(rng.uniform(0.5, 1.3)), 1.0)
    kind = replace(problem.cluster.device_types[0], memory=memory)
    return replace(problem, cluster=replace(problem.cluster, device_types=(kind,)))


def chain(units: int, memory: float, devices: int, seconds: float = 1.0) -> StagesProblem:
    """Return a chain of like forward and backward ops, a byte of weights each, nothing sent, on a flat cluster."""
    edges = (np.arange(units - 1), np.arange(1, units))
    ones, nothing = np.full((1, units), seconds), np.zeros(units)
    forward: OpGraph = graph_of(
        ("gpu",), ones, np.ones(units), nothing, edges, made=nobody(units), weights=np.ones(units)
    )
    topology = TreeTopology.regular((Level("node", 1.0),), (devices,))
    cluster = Cluster((DeviceType("gpu", memory=memory),), np.zeros(devices, dtype=np.int32), topology)
    return StagesProblem(with_backward(forward, ones, nothing), cluster)


SCARCE = (46, 51, 55, 68, 186, 307)
"""Seeds of problems of which the bound says more than the work does, two of them that there is no plan."""


def test_no_plan_is_below_it() -> None:
    """The bound is no more than the optimum by enumeration, on small problems in which memory is scarce."""
    raised = refuted = 0
    for seed in (*SCARCE, *some(range(400))):
        problem = tight(seed)
        if not problem.training:
            continue
        reduced = ReducedStages(problem)
        if reduced.impossible():
            continue
        work = reduced.work_bound()
        bound, best = under_way_bound(reduced.units, work), optimum(problem)
        assert bound <= (inf if best is None else best * (1 + 1e-9)), seed
        raised += work * (1 + 1e-6) < bound < inf
        refuted += bound == inf
    assert raised > 3 and refuted > 1


@pytest.mark.parametrize(("units", "bound"), [(6, 16 / 3), (7, 22 / 3), (8, inf)])
def test_what_three_devices_hold(units: int, bound: float) -> None:
    """Stages of one device each hold 4, 4/2 and 4/3 units from the last on, so 7 units fit and 8 do not."""
    # A unit is a byte, and one more for each sample under way: a device of 4 bytes has 4 units of the last stage, 2 of
    # the one before, 1 of the first. A unit takes 2 s. 8 units are more than 4 + 2 + 4/3. Shared evenly 6 and 7 take
    # 4 s and 14/3 s, but the last device must take what the others cannot: 6 - 2 - 4/3 units are 16/3 s, one more 22/3.
    problem = chain(units, 4.0, 3)
    reduced = ReducedStages(problem)
    found = under_way_bound(reduced.units, reduced.work_bound())
    assert found == pytest.approx(bound, rel=1e-5)
    result = solve(problem, 5)
    assert (result.objective is None) == (bound == inf)
    assert result.objective is None or found <= result.objective


def test_a_large_tree_without_a_plan() -> None:
    """A tree of 128 devices with too little memory for what is under way is refuted."""
    result = solve(make(read_manifest()["stages-fat_tree-large-02"]), 20)
    assert result.status == "INFEASIBLE"
