"""The least load of a device with a given group, against the optimum by enumeration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan import solve
from gangplan.instances import PartitionProblem
from gangplan.instances.generators import generate
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.throughput.quotient import quotient
from gangplan.solvers.partition.throughput.stage_bound import stage_bounds
from gangplan.solvers.partition.tiny import random_throughput as random_problem

from ....seeds import examples
from .test_bounds import both, equal_devices

Make = Callable[..., PartitionProblem]
VARIANTS = st.sampled_from(["contiguous", "convex", "free"])


def best_of(problem: PartitionProblem, merged: bool = False) -> float:
    """Return the bound, 0 if it says nothing."""
    return max(stage_bounds(both(problem)[merged], 0.0, lambda: False), default=0.0)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**32), VARIANTS, st.booleans())
def test_no_plan_beats_it(seed: int, variant: str, equal: bool) -> None:
    """It is no more than the optimum: mixed types, memory, colocation, expensive transfers, merged groups or not."""
    problem = replace(equal_devices(seed), variant=variant) if equal else random_problem(seed, variant)
    best = optimum(problem)
    if best is not None:
        assert max(best_of(problem), best_of(problem, merged=True)) <= best * (1 + 1e-9)


def test_by_hand(make: Make) -> None:
    """A hub of 4 s between two ops of 1 s that cost 3 s and half a second to reach takes one of them along."""
    # b alone takes 4 + 3 + .5, with a 5 + .5, with c 5 + 3, all three 6: the least is 5.5. a b | c has it
    problem = make([1, 4, 1], [(0, 1, 3.0), (1, 2, 0.5)], variant="free")
    assert best_of(problem) == pytest.approx(5.5, rel=1e-9)
    assert optimum(problem) == 5.5


def test_one_large_op_among_many() -> None:
    """On a large graph with one op worth two devices, transfers included, it is far above the work shared out."""
    problem = generate("layered", ops=300, devices=8, seed=53, variant="free")
    result = solve(problem, time_limit=20, method="bounds", workers=1)
    work = float(quotient(problem).work.sum()) / 8
    assert result.bound is not None and result.bound > 1.7 * work


def test_hosts_and_a_clock_that_has_run_out(make: Make) -> None:
    """It says nothing where a host pays no transfers, nor where there is no time."""
    hosted = make([1, 4, 1], [(0, 1, 3.0), (1, 2, 0.5)], variant="free", cpus=1)
    assert best_of(hosted) == 0.0
    assert not list(stage_bounds(quotient(make([1, 4], [(0, 1, 3.0)])), 0.0, lambda: True))
