"""Bounds that need no solver, against the optimum by enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gangplan.instances import StepProblem
from gangplan.instances.graph import with_backward
from gangplan.solvers import Run
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.step.bounds import (
    class_bound,
    delay_bound,
    heads_and_tails,
    impossible,
    load_bound,
)
from gangplan.solvers.partition.step.model import prepare
from gangplan.solvers.partition.step.series import series
from gangplan.solvers.partition.step.series_bound import series_bound
from gangplan.solvers.partition.tiny import random_step as random_problem

from ....seeds import examples
from .conftest import cluster, graph, training

SEEDS = st.integers(0, 2**32)
DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def proved(problem: StepProblem) -> tuple[float, float, float]:
    """Return the bounds from paths and loads, from delays and from the series."""
    p, found = prepare(problem), []
    for bound in (delay_bound, series_bound):
        run = Run(problem, time_limit=60)
        bound(run, p)
        found.append(run.bound or 0.0)
    head, tail = heads_and_tails(p)
    return max(float((head + p.fastest).max()), load_bound(p, head, tail)), found[0], found[1]


@settings(max_examples=examples(150))
@given(SEEDS)
@example(543821)  # two devices of one server, one of another
def test_no_plan_beats_a_bound(seed: int) -> None:
    """On problems of all kinds every bound is at most the optimum, and what is called impossible has no plan."""
    problem = random_problem(seed)
    best = optimum(problem)
    if impossible(prepare(problem)) is not None:
        assert best is None
    elif best is not None:
        assert max(proved(problem)) <= best * (1 + 1e-9)


@settings(max_examples=examples(50))
@given(SEEDS)
def test_no_training_step_beats_a_bound(seed: int) -> None:
    """On training steps, where the series of blocks and the memory say most, every bound is at most the optimum."""
    problem = training(seed)
    best = optimum(problem)
    if best is not None:
        assert max(proved(problem)) <= best * (1 + 1e-9)


def test_bounds_are_tight_on_most_training_steps() -> None:
    """The series proves the optimum of most small training steps, the longest path of less than half."""
    tight = path = all_of_them = 0
    for seed in range(50):
        problem = training(seed)
        best = optimum(problem)
        if best is not None:
            found = proved(problem)
            all_of_them += 1
            tight += max(found) >= best * (1 - 1e-9)
            path += found[0] >= best * (1 - 1e-9)
    assert all_of_them > 35
    assert tight > 0.7 * all_of_them
    assert path < 0.5 * all_of_them


def test_a_block_pays_for_its_branches_both_ways() -> None:
    """Of a diamond, one branch is sent out and back: the series knows both, delays alone only the way back."""
    # a 1, b and c 4, d 1 s, every output takes 1 s; a and d share a device. On one device 10. On two: a 0-1, b 1-5, c
    # elsewhere 2-6, back at 7, d 7-8. For all that delays alone know d is with c, and starts when b has come, at 6
    problem = StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND, 1.0, colocation=[0, -1, -1, 0]), cluster(2))
    assert optimum(problem) == 8.0
    assert proved(problem) == (6.0, 7.0, 8.0)


def test_memory_forces_a_cut() -> None:
    """Where not everything fits on one device the cheapest cut is paid, forward and backward."""
    # forward a, b, c of 1 s, backward 2 s each: 9 s. Every group needs 2 bytes, a device has 4: one cut at least.
    # After a it costs 3 s, after b 2 s, each time in both directions: 9 + 4
    forward = graph([1.0] * 3, [(0, 1), (1, 2)], [3.0, 2.0, 1.0], [2.0] * 3)
    whole = with_backward(forward, np.full((1, 3), 2.0), np.zeros(3))
    for problem in (StepProblem(whole, cluster(2, memory=4.0)), StepProblem(whole, cluster(3, memory=4.0))):
        assert optimum(problem) == pytest.approx(13.0)
        assert proved(problem)[2] == pytest.approx(13.0)


def test_memory_forces_a_cut_between_servers() -> None:
    """Where not everything fits into one server a slow link is paid."""
    # as above, but a device has 2 bytes and a server two devices: cuts after a and b, one of them between servers,
    # four times as slow. After a near (3) and after b far (8) is the better: 9 + 2 * 11
    forward = graph([1.0] * 3, [(0, 1), (1, 2)], [3.0, 2.0, 1.0], [2.0] * 3)
    whole = with_backward(forward, np.full((1, 3), 2.0), np.zeros(3))
    problem = StepProblem(whole, cluster(4, 2, memory=2.0))
    assert optimum(problem) == pytest.approx(31.0)
    assert proved(problem)[2] == pytest.approx(31.0)


def test_load_between_a_head_and_a_tail() -> None:
    """Ops that all follow one op and precede another share the devices in between."""
    # s (1 s), four ops of 3 s on two devices, t (2 s): 1 + 12 / 2 + 2, the longest path has 6
    edges = [(0, i) for i in range(1, 5)] + [(i, 5) for i in range(1, 5)]
    p = prepare(StepProblem(graph([1.0, 3.0, 3.0, 3.0, 3.0, 2.0], edges), cluster(2)))
    head, tail = heads_and_tails(p)
    assert (head + p.fastest).max() == 6.0
    assert load_bound(p, head, tail) == pytest.approx(9.0)
    assert optimum(p.problem) == 9.0


def test_a_class_is_on_one_device() -> None:
    """Colocated ops run one after the other, between what comes before them and after."""
    # b and c (4 s) share a device: a 1, then 8, then d 1
    p = prepare(StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND, colocation=[-1, 0, 0, -1]), cluster(3)))
    assert class_bound(p, *heads_and_tails(p)) == 10.0
    assert optimum(p.problem) == 10.0


def test_series_of_a_training_step() -> None:
    """A diamond and its mirror image make one unit, the joints around it take their time apart."""
    forward = graph([1.0, 4.0, 4.0, 1.0], DIAMOND, 1.0, [1.0, 2.0, 3.0, 4.0])
    p = prepare(StepProblem(with_backward(forward, np.full((1, 4), 2.0), np.zeros(4)), cluster(2)))
    parts = series(p)
    assert parts.joints == 6.0
    assert len(parts.units) == 1
    assert [half.ops for half in parts.units[0].halves] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert set(parts.units[0].groups) == {0, 1, 2, 3}
    assert parts.memory.tolist() == [1.0, 10.0]
    assert parts.joint_memory.tolist() == [1.0, 4.0]


def test_joints_that_an_edge_jumps_over() -> None:
    """A residual connection makes one unit of the chain it jumps over, if that is asked for."""
    # a b c d in a chain, and a sends to d as well
    p = prepare(StepProblem(graph([1.0] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], 1.0), cluster(2)))
    assert [unit.halves[0].ops for unit in series(p).units] == [(0, 1), (1, 2), (2, 3)]
    whole = series(p, jumped=False)
    assert [unit.halves[0].ops for unit in whole.units] == [(0, 1, 2, 3)]
    assert (0, 3) in whole.units[0].halves[0].edges


def test_impossible_says_why() -> None:
    """A class without a device, and memory that is missing, are named."""
    made = graph([1.0, 1.0], [(0, 1)], memory=[3.0, 3.0])
    assert impossible(prepare(StepProblem(made, cluster(2, memory=3.0)))) is None
    alone = impossible(prepare(StepProblem(made, cluster(2, memory=2.0))))
    assert alone is not None and "op a and its colocated ops need 3 bytes" in alone
    both = impossible(prepare(StepProblem(made, cluster(1, memory=5.0))))
    assert both is not None and "the ops need 6 bytes, all devices together have 5" in both
    two = replace(made, device_types=("gpu", "old"), time=np.array([[np.inf, 1.0], [1.0, 1.0]]))
    homeless = impossible(prepare(StepProblem(two, cluster(2))))
    assert homeless is not None and "runs op a" in homeless
