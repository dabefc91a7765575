"""CP-SAT's model of throughput alone: no other method's plan hides what it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gangplan.instances import PartitionProblem
from gangplan.solvers import Run
from gangplan.solvers.partition.throughput.exact import cpsat
from gangplan.solvers.partition.throughput.methods import ReducedThroughput

VARIANTS = ("contiguous", "convex", "free")
Make = Callable[..., PartitionProblem]


def alone(problem: PartitionProblem) -> Run:
    """Run CP-SAT to the end, without a plan to begin with."""
    run = Run(problem, time_limit=60)
    cpsat(run, ReducedThroughput(problem).own)
    return run


@pytest.mark.parametrize("variant", VARIANTS)
def test_hosts_pay_nothing(variant: str, make: Make) -> None:
    """A host pays for no transfer, though the GPU at the other end does."""
    # b on the host takes 5 s, 6 if it paid for its input; a on the GPU 4 and 1 to send; both on the GPU take 8
    run = alone(make([[4, 4], [40, 5]], [(0, 1, 1)], gpus=1, cpus=1, variant=variant))
    assert (run.objective, run.bound) == (pytest.approx(5.0), pytest.approx(5.0))


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_too_large_is_barred(variant: str, make: Make) -> None:
    """A group too large for a type of device is in no plan there: none is refused, and the model is solved once."""
    # b's 4 bytes are too many for a GPU of 2, so it takes 5 s on the host instead of 1
    problem = make([[1, 1, 1], [9, 5, 9]], [(0, 1, 0), (1, 2, 0)], gpus=2, cpus=1, size=[1, 4, 1], memory=2.0,
                   host_memory=9.0, variant=variant)  # fmt: skip
    run = alone(problem)
    assert (run.objective, run.bound, run.notes) == (pytest.approx(5.0), pytest.approx(5.0), [])
