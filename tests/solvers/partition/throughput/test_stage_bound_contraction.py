"""Groups that no plan of some load keeps apart, against the optimum by enumeration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import PartitionProblem
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.throughput.quotient import quotient
from gangplan.solvers.partition.throughput.stage_bound import contraction_bounds, refutes, stage_bounds
from gangplan.solvers.partition.tiny import random_throughput as random_problem
from gangplan.solvers.run import never

from ....seeds import examples
from .test_bounds import both, equal_devices

Make = Callable[..., PartitionProblem]
VARIANTS = st.sampled_from(["contiguous", "convex", "free"])


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**32), VARIANTS, st.booleans(), st.floats(0.5, 1.0))
def test_no_plan_beats_it(seed: int, variant: str, equal: bool, share: float) -> None:
    """Neither the load of the best plan nor a bound above it is refuted, in any variant, on mixed types too."""
    problem = replace(equal_devices(seed), variant=variant) if equal else random_problem(seed, variant)
    best = optimum(problem)
    if best is not None and best > 0:
        for q in both(problem):
            assert not refutes(q, best * (1 + 1e-9), never)
            assert max(contraction_bounds(q, share * best, 3 * best, never), default=0.0) <= best * (1 + 1e-9)


def test_by_hand(make: Make) -> None:
    """Two ops that cost 9 s to part, and do not fit on one device, are parted: no plan is below 11 s."""
    # a and b alone pay the 9 s each: 2 + 9. Stages say 4, for a and b may be together
    problem = make([2, 2, 0], [(0, 1, 9.0)], variant="free", memory=10.0, size=[6.0, 6.0, 1.0])
    q = quotient(problem)
    assert max(stage_bounds(q, 0.0, never), default=0.0) <= 4.0
    assert max(contraction_bounds(q, 1.0, 20.0, never)) == pytest.approx(11.0, rel=0.005)
    assert optimum(problem) == 11.0


def test_a_clock_that_has_run_out(make: Make) -> None:
    """It says nothing where there is no time, nor where a host pays no transfers."""
    problem = make([2, 2, 1], [(0, 1, 9.0)], variant="free", memory=10.0, size=[6.0, 6.0, 1.0])
    assert not list(contraction_bounds(quotient(problem), 1.0, 20.0, lambda: True))
    hosted = make([2, 2], [(0, 1, 9.0)], variant="free", cpus=1)
    assert not refutes(quotient(hosted), 4.0, never)
