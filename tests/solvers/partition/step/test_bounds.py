"""Bounds that need no solver, against the optimum by enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gangplan.instances import StepProblem
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
from gangplan.solvers.partition.tiny import random_step as random_problem

from ....seeds import examples
from .conftest import cluster, graph, training

SEEDS = st.integers(0, 2**32)
DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def proved(problem: StepProblem) -> tuple[float, float]:
    """Return the bounds from paths and loads, and from delays."""
    p, run = prepare(problem), Run(problem, time_limit=60)
    delay_bound(run, p)
    head, tail = heads_and_tails(p)
    return max(float((head + p.fastest).max()), load_bound(p, head, tail)), run.bound or 0.0


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
    """On training steps, where memory forces cuts, every bound is at most the optimum."""
    problem = training(seed)
    best = optimum(problem)
    if best is not None:
        assert max(proved(problem)) <= best * (1 + 1e-9)


def test_bounds_are_tight_on_most_training_steps() -> None:
    """Delays prove the optimum of many small training steps, the longest path of less than half."""
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


def test_an_output_that_is_sent_takes_time() -> None:
    """Of a diamond, one branch is elsewhere: delays know that its output has to come back."""
    # a 1, b and c 4, d 1 s, every output takes 1 s: on one device 10. On two, d is with c, and starts when b has come
    problem = StepProblem(graph([1.0, 4.0, 4.0, 1.0], DIAMOND, 1.0), cluster(2))
    assert proved(problem) == (6.0, 7.0)
    assert optimum(problem) == 7.0


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
