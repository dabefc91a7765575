"""The argument by what is under way: by hand, against enumeration, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError, StagesProblem
from gangplan.instances.certificates import verify_bound
from gangplan.instances.certificates.document import write
from gangplan.solvers.certificates.bounds import simple
from gangplan.solvers.partition.stages.referee import optimum
from tests.seeds import some
from tests.solvers.partition.stages.test_under_way import chain, tight

EQUAL = {"argument": "under_way", "threshold": 0, "prices": [1] * 16, "seconds": [0], "samples": [0, 1, 2]}


def _prices(units: int) -> StagesProblem:
    """Return a chain on three devices of 4 bytes whose forward and backward ops are colocated, a byte a unit."""
    problem = chain(units, 4.0, 3)
    return replace(problem, graph=replace(problem.graph, colocation=np.tile(np.arange(units), 2).astype(np.int32)))


def test_three_devices_by_hand() -> None:
    """At a price of 1 a unit the last device holds 4, the one before 2, the first 4/3: 7 units fit and 8 do not."""
    # a billionth more of the memory does not change that
    eight = EQUAL | {"prices": [1] * 8}
    assert verify_bound(_prices(8), eight) == inf
    with pytest.raises(InstanceError, match=r"prices: come to 7, stages to 7\.33"):
        verify_bound(_prices(7), EQUAL | {"prices": [1] * 7})
    # a unit takes 2 s: 7 - 2 - 4/3 of them on the last device are 22/3 s, at w = 1/2 a second
    timed = EQUAL | {"prices": [1] * 7, "seconds": [0, "1/2"], "threshold": "733/100"}
    assert 7.329 < verify_bound(_prices(7), timed) < 7.33
    with pytest.raises(InstanceError, match="prices: come to 7"):
        verify_bound(_prices(7), timed | {"threshold": "734/100"})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"prices": [1] * 7}, "prices"),
        ({"prices": [1] * 7 + [-1]}, "prices"),
        ({"prices": [1] * 7 + [0]}, "prices"),
        ({"seconds": []}, "seconds"),
        ({"seconds": ["-1/2"]}, "seconds"),
        ({"samples": [1, 2]}, "samples"),
        ({"samples": []}, "samples"),
        ({"samples": [0, 2, 1]}, "samples"),
        ({"samples": [0, 4]}, "samples"),
        ({"samples": [0]}, "prices"),
    ],
)
def test_what_is_refused(change: dict[str, Any], field: str) -> None:
    """Prices that are missing, negative or too low, weights below 0, counts that do not ascend from 0."""
    with pytest.raises(InstanceError, match=field):
        verify_bound(_prices(8), EQUAL | {"prices": [1] * 8} | change)


def test_no_plan_is_below_it() -> None:
    """On small problems with little memory what is certified is no more than the optimum by enumeration."""
    checked = refuted = 0
    for seed in some(range(250), 4):
        problem = tight(seed)
        if not problem.training:
            continue
        for certificate in simple(problem):
            if certificate.argument == "under_way":
                bound, best = verify_bound(problem, write(certificate)), optimum(problem)
                assert best is None or bound <= best, seed
                checked, refuted = checked + 1, refuted + (bound == inf)
    assert checked > 2 and refuted
