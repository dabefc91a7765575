"""Bounds by heads, tails and what has to fit between, by hand and against optima."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from gangplan import verify_bound
from gangplan.instances import InstanceError
from gangplan.instances.certificates.windows import effort, starved
from gangplan.instances.generators import generate

MANY = {"argument": "windows", "steps": 10**6}


def bound(devices: int, micro_batches: int, memory: float, *, barrier: bool = True) -> float:
    """Return what the certificate proves of equal stages."""
    made = generate("micro_batches", devices=devices, micro_batches=micro_batches, memory=memory, barrier=barrier)
    return float(verify_bound(made, MANY))


def test_by_hand() -> None:
    """With room enough the last device waits p - 1 passes; with room for one micro-batch nothing overlaps."""
    assert bound(4, 8, 4) == pytest.approx(3 * 8 + 3)
    assert bound(4, 8, 1) == pytest.approx(8 * (4 + 4 + 1))
    # in the long run: 2 p - 2 passes of others, of which a device fills as many as it has room for, less one
    for memory in (4, 5, 6, 7, 8):
        assert bound(4, 8, memory, barrier=False) == pytest.approx(3 * 8 + max(0, 7 - memory))


def test_optima_that_it_proves() -> None:
    """It is the optimum of many an amount of memory below that of 1F1B, as CP-SAT proves."""
    assert [bound(8, 16, m) for m in (3, 5, 6, 7)] == pytest.approx([102, 68, 61, 58])


def test_too_little_memory() -> None:
    """A device that cannot hold one micro-batch in all its stages is starved, and there is no plan."""
    problem = generate("micro_batches", devices=2, micro_batches=2, shape="v", chunks=2, memory=1)
    assert starved(problem) is None and verify_bound(problem, MANY) < inf
    less = replace(problem, capacity=np.array([1.0, 0.9]))
    assert starved(less) == 1 and verify_bound(less, MANY) == inf


def test_steps() -> None:
    """A certificate that allows for too few steps is refused."""
    problem = generate("micro_batches")
    assert verify_bound(problem, MANY | {"steps": effort(problem)}) > 0
    with pytest.raises(InstanceError, match="steps: 2304 pairs of passes are to be compared, 2303 may be"):
        verify_bound(problem, MANY | {"steps": effort(problem) - 1})
