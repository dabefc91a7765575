"""Thresholds that a search over orders refutes, by hand, against enumeration, and where it does not hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest

from gangplan import solve, verify_bound
from gangplan.instances import InstanceError
from gangplan.instances.certificates.orders import EACH, OrdersCertificate
from gangplan.instances.certificates.windows import MOST, WindowsCertificate, effort
from gangplan.instances.generators import generate
from gangplan.solvers.method import suite

TOOLS = suite("pipeline")


def refuted(problem: object, threshold: float) -> bool:
    """Return whether no plan takes less than a threshold, as the certificate says."""
    try:
        bound = verify_bound(problem, OrdersCertificate(Fraction(threshold), MOST))
    except InstanceError as error:
        assert "a plan may be below it" in str(error)
        return False
    assert bound >= threshold * (1 - 1e-9)
    return True


def test_two_micro_batches_by_hand() -> None:
    """Both on one device of memory 2 take 6 s and a second of waiting for the other."""
    problem = generate("micro_batches", devices=2, micro_batches=2, memory=2)
    assert refuted(problem, 7) and not refuted(problem, 7.5)


@pytest.mark.parametrize("seed", range(40))
def test_against_enumeration(seed: int) -> None:
    """What is refuted is exactly what all orders take longer than, whatever memory, stages and chunks are."""
    problem = TOOLS.random_problem(seed, "")
    best = TOOLS.optimum(problem)
    if not problem.barrier:
        with pytest.raises(InstanceError, match="is of steps with a barrier"):
            verify_bound(problem, OrdersCertificate(Fraction(1), MOST))
    elif best is None:
        assert verify_bound(problem, OrdersCertificate(Fraction(1), MOST)) == inf
    else:
        assert refuted(problem, best * (1 - 1e-9)) and not refuted(problem, best * (1 + 1e-9))


@pytest.mark.parametrize(
    ("devices", "micro_batches", "memory", "value"), [(4, 8, 2, 41), (6, 12, 3, 60), (8, 16, 4, 79)]
)
def test_what_windows_leaves_open(devices: int, micro_batches: int, memory: int, value: int) -> None:
    """Points of the frontier that windows does not prove are certified."""
    problem = generate("micro_batches", devices=devices, micro_batches=micro_batches, memory=memory)
    assert WindowsCertificate(MOST).bound(problem) < value - 0.5 and refuted(problem, value)
    assert solve(problem, 30, workers=1).standing == "OPTIMAL (certified)"


def test_memory_that_is_no_order() -> None:
    """Where two stages share a device a forward pass may have to make room for another, which is not lost."""
    problem = generate("micro_batches", devices=2, micro_batches=3, memory=1, shape="v")
    held = {"activation": np.array([0.6, 0.5, 0.5, 0.4]), "kept": np.zeros(4), "capacity": np.array([1.7, 1.7])}
    uneven = replace(problem, **held)
    result = solve(uneven, 30, method="cpsat", workers=1)
    assert result.status == "OPTIMAL" and result.objective is not None
    assert refuted(uneven, result.objective) and not refuted(uneven, result.objective + 0.01)


def test_steps() -> None:
    """A certificate that allows for too few steps is refused."""
    problem = generate("micro_batches", devices=2, micro_batches=2)
    with pytest.raises(InstanceError, match="steps: the search is not over in so many"):
        verify_bound(problem, OrdersCertificate(Fraction(7), effort(problem) + EACH - 1))
