"""Schedules: feasible whatever the order, optimal in the order of an optimal plan, the same under other names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import Cluster, StepProblem, TreeTopology, verify
from gangplan.instances.arrays import IntArray
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.step.model import Prepared, prepare
from gangplan.solvers.partition.step.schedule import retime, sent_of
from gangplan.solvers.partition.tiny import random_step as random_problem

from ....seeds import examples
from .conftest import cluster, decode, graph, training

SEEDS = st.integers(0, 2**32)


def any_placement(p: Prepared, rng: np.random.Generator) -> IntArray | None:
    """Return a device for each op that keeps all but perhaps memory, if there is one."""
    if not p.allowed.any(axis=1).all():
        return None
    return np.array([rng.choice(np.flatnonzero(row)) for row in p.allowed], dtype=np.int32)[p.group_of]


@settings(max_examples=examples(150))
@given(SEEDS)
def test_any_priority_makes_a_feasible_plan(seed: int) -> None:
    """Whatever the priorities, nothing but memory can be wrong, and no plan beats the optimum."""
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    p, best = prepare(problem), optimum(problem)
    device = any_placement(p, rng)
    if device is None:
        return
    plan = decode(p, device, rng.random(p.n))
    verdict = verify(problem, plan)
    assert all(words.startswith("memory") for words in verdict.violations)
    assert best is None or verdict.objective is None or verdict.objective >= best * (1 - 1e-9)


@settings(max_examples=examples(150))
@given(SEEDS)
def test_retime_keeps_orders_and_delays_nothing(seed: int) -> None:
    """Times that are too late, or rounded, come back feasible, exact and no later."""
    problem, rng = random_problem(seed), np.random.default_rng(seed)
    p = prepare(problem)
    device = any_placement(p, rng)
    if device is None:
        return
    plan = decode(p, device, rng.random(p.n))
    again = retime(p, plan.device, plan.start, sent_of(plan))
    assert all(words.startswith("memory") for words in verify(problem, again).violations)
    assert (again.start <= plan.start + 1e-12).all()
    late = retime(p, plan.device, 3 * plan.start + 1, {pair: 3 * at + 1 for pair, at in sent_of(plan).items()})
    np.testing.assert_allclose(late.start, again.start, rtol=1e-12)


@settings(max_examples=examples(60))
@given(SEEDS)
def test_renaming_devices_changes_nothing(seed: int) -> None:
    """With the devices of each server and the servers renamed, a plan that is renamed too takes as long."""
    problem, rng = training(seed), np.random.default_rng(seed)
    topology = problem.cluster.topology
    assert isinstance(topology, TreeTopology)
    server = topology.group[0]
    shuffled = [rng.permutation(np.flatnonzero(server == s)) for s in rng.permutation(np.unique(server))]
    new_name = np.argsort(np.concatenate(shuffled)).astype(np.int32)
    p = prepare(problem)
    device = any_placement(p, rng)
    assert device is not None
    priority = rng.random(p.n)
    plan, renamed = decode(p, device, priority), decode(p, new_name[device], priority)
    np.testing.assert_array_equal(plan.start, renamed.start)
    assert verify(problem, plan).objective == verify(problem, renamed).objective


def test_an_op_goes_into_a_gap() -> None:
    """An op of low priority runs while its device waits, if it fits."""
    # a on device 0, its output needs 3 s to device 1, where b (5 s) waits from 0 to 4; c takes 4 s there, d 1 s more
    made = graph([1.0, 5.0, 4.0, 1.0], [(0, 1)], 3.0)
    plan = decode(prepare(StepProblem(made, cluster(2))), np.array([0, 1, 1, 1], dtype=np.int32), [0.0, 1.0, 2.0, 3.0])
    assert plan.start.tolist() == [0.0, 4.0, 0.0, 9.0]


def test_an_op_without_time_does_not_split_another() -> None:
    """Nothing runs across the instant of an op that takes no time, nor is that put into another op."""
    # device 0: x (4 s); z takes no time and waits for y, which ends at 1 on device 1: at 1 device 0 is busy
    made = graph([4.0, 1.0, 0.0], [(1, 2)], 0.0)
    problem = StepProblem(made, cluster(2))
    for priority in ([0.0, 1.0, 2.0], [2.0, 0.0, 1.0]):
        plan = decode(prepare(problem), np.array([0, 1, 0], dtype=np.int32), priority)
        assert verify(problem, plan).ok
    assert plan.start.tolist() == [1.0, 0.0, 1.0]


def test_twins_are_devices_that_may_be_swapped() -> None:
    """In two servers of two, the devices of one server are twins; one of another type is nobody's."""
    problem = StepProblem(graph([1.0], []), cluster(4, 2))
    assert prepare(problem).twins.tolist() == [0, 0, 1, 1]
    other = replace(problem.cluster.device_types[0], memory=5.0, name="gpu")
    with pytest.raises(Exception, match="duplicate"):
        Cluster((problem.cluster.device_types[0], other), [0, 0, 0, 1], problem.cluster.topology)
    kinds = problem.cluster.device_types[0], replace(other, name="old")
    both = replace(problem.graph, device_types=("gpu", "old"), time=np.ones((2, 1)))
    mixed = StepProblem(both, Cluster(kinds, np.array([0, 0, 0, 1]), problem.cluster.topology))
    assert prepare(mixed).twins.tolist() == [0, 0, 1, 2]
