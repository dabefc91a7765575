"""Pipeline problems and plans: what is refused, what passes wait for, and the lines that PyTorch reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.generators import generate
from gangplan.instances.pipeline import PipelinePlan, PipelineProblem, schedule_csv

TWO: dict[str, Any] = {"device": [0, 1], "forward": [1, 1], "backward": [1, 1], "weight": [1, 1], "micro_batches": 2}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({x: [] for x in ("device", "forward", "backward", "weight")}, "device: the pipeline has no stage"),
        ({"device": [0, 2]}, r"device\[1\]: 2 is more than 2 stages can be on"),
        ({"device": [1, 1]}, "device: no stage is on device 0"),
        ({"device": [0, -1]}, r"device\[1\]: -1 is negative"),
        ({"device": [0, 2**31 - 1]}, r"device\[1\]: 2147483647 is more than 2"),
        ({"forward": [1]}, "forward: has 1 entries where 2 are expected"),
        ({"weight": [1, float("inf")]}, r"weight\[1\]: inf is not finite"),
        ({"weight": [1, 1e308]}, "weight: sums of its entries are beyond floats"),
        ({"micro_batches": 0}, "micro_batches: 0 is not positive"),
        ({"micro_batches": 10**9}, "micro_batches: "),
        ({"capacity": [1.0]}, "capacity: has 1 entries for 2 devices"),
        ({"activation": [1, 1], "kept": [1]}, "kept: has 1 entries for 2 stages"),
        ({"activation": [1, 1], "kept": [1, 2]}, r"kept\[1\]: 2.0 is more than the activation"),
        ({"split": 1}, "split: 1 is not true or false"),
    ],
)
def test_what_is_refused(change: dict[str, Any], words: str) -> None:
    """Wrong fields are named with the value found."""
    with pytest.raises(InstanceError, match=words):
        PipelineProblem(**{**TWO, **change})


def test_plans_that_are_refused() -> None:
    """A pass is F, B or W of a stage and a micro-batch."""
    with pytest.raises(InstanceError, match=r"phase\[0\]: 3 is none of F, B and W"):
        PipelinePlan([3], [0], [0])  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match="stage: has 2 entries where 1 are expected"):
        PipelinePlan([0], [0, 1], [0])  # type: ignore[arg-type]


def test_what_passes_wait_for() -> None:
    """Forward passes wait for the stage before, backward ones for the stage after, the last turns, W waits for B."""
    problem = PipelineProblem(**TWO, transfer=[0.5, 9.0], activation=[4, 2], kept=[1, 2])  # type: ignore[arg-type]
    passes = problem.passes()
    assert passes.before.tolist() == [-1, -1, 0, 1, 6, 7, 2, 3, 4, 5, 6, 7]
    assert passes.lag.tolist() == [0, 0, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0]
    assert passes.change.tolist() == [4, 4, 2, 2, -3, -3, 0, 0, -1, -1, -2, -2]
    whole = PipelineProblem(**TWO, split=False, activation=[4, 2]).passes()  # type: ignore[arg-type]
    assert whole.seconds.tolist() == [1] * 4 + [2] * 4 and whole.change.tolist() == [4, 4, 2, 2, -4, -4, -2, -2]


def test_transfers_on_one_device_cost_nothing() -> None:
    """Where stages go there and back, the two in the middle are on one device."""
    problem = generate("micro_batches", devices=2, micro_batches=1, shape="v", chunks=2, transfer=1.0)
    assert problem.passes().lag.tolist() == [0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0]


def test_orders_come_back() -> None:
    """A plan of orders has these orders, and lines as PyTorch writes passes."""
    problem = PipelineProblem(**TWO)
    orders = [[0, 1, 4, 8, 5, 9], [2, 6, 10, 3, 7, 11]]
    plan = problem.plan(orders)
    assert problem.orders(plan) == orders and len(plan.phase) == problem.n_passes
    assert schedule_csv(problem, plan) == "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n"
    whole = PipelineProblem(**TWO, split=False)
    assert schedule_csv(whole, whole.plan([[0, 4, 1, 5], [2, 6, 3, 7]])) == "0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n"
    assert np.array_equal(problem.load(), [6, 6])
