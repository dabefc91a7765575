"""Plans by hand: where repeated blocks begin, what is balanced, and what a cut beside the plan's would cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from gangplan.instances import Cluster, DeviceType, OpGraph, PartitionPlan, PartitionProblem, verify  # noqa: E402
from gangplan.instances.torch_model.build import model_problem  # noqa: E402
from gangplan.instances.torch_model.load import LoadedModel  # noqa: E402
from gangplan.torch_split.equal_layers import (  # noqa: E402
    equal_layers,
    levels,
    reasons,
    rivals,
    units,
)

pytestmark = pytest.mark.usefixtures("one_thread")


class Block(nn.Module):  # type: ignore[misc]
    """A block with more layers than the network has blocks."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.first, self.second = nn.Linear(8, width), nn.Linear(width, 8)
        self.feed = nn.Sequential(nn.Tanh(), nn.Dropout(0.0), nn.Tanh(), nn.Dropout(0.0), nn.Tanh())

    def forward(self, x: Any) -> Any:
        """Map (batch, 8) to (batch, 8)."""
        return x + self.second(self.feed(self.first(self.norm(x)))) * 2 - 1


class Network(nn.Module):  # type: ignore[misc]
    """A stem, blocks in two lists, and a head."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        half = len(widths) // 2
        self.stem = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.lower = nn.ModuleList(Block(x) for x in widths[:half])
        self.upper = nn.ModuleList(Block(x) for x in widths[half:])
        self.head = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        """Map (batch, 8) to (batch, 3)."""
        x = self.stem(x)
        for block in (*self.lower, *self.upper):
            x = block(x)
        return self.head(x)


def made(*widths: int, **options: Any) -> Any:
    """Return the problem of a network on two devices."""
    model = LoadedModel("network", Network(widths), (torch.ones(4, 8),), {})
    return model_problem(model, devices=2, **options)


def test_blocks_are_cut_between_and_not_inside() -> None:
    """Lists of alike blocks make one row of blocks, whatever longer lists are inside them."""
    ops = made(16, 16, 16, 16).ops
    (layer,) = levels(ops)
    blocks = ["lower.0", "lower.1", "upper.0", "upper.1"]
    expected, last = [], 0
    for op in ops.ops:
        last = next((i for i, name in enumerate(blocks) if op.module.startswith(name)), last)
        expected.append(last)
    assert layer == expected and max(layer) == 3
    stage = equal_layers(ops, 2)
    assert {op.module.split(".")[0] for op, s in zip(ops.ops, stage, strict=True) if s == 0} == {"stem", "lower"}


def test_units_are_what_no_class_reaches_beyond() -> None:
    """A class binds all between its first and its last op; what is free is a unit of its own."""
    assert units([-1, 0, -1, 0, 1, 1, -1]) == [0, 1, 1, 1, 2, 2, 3]
    assert units([2, 3, 2, 3, -1]) == [0, 0, 0, 0, 1]


def test_the_rival_is_the_best_plan_by_hand() -> None:
    """Blocks of unlike width: equal parameters and seconds give the last, wide one a device, equal blocks do not."""
    problem = made(8, 8, 8, 4096, launch=0.0, efficiency=1.0)
    n = problem.problem.graph.n_ops
    plan = PartitionPlan(problem.problem.graph.names, np.zeros(n, int), np.zeros(n, int))
    found = rivals(problem.problem, plan, problem.ops)
    assert {x.by for x in found} == {"blocks", "parameters", "time"}
    assert [x.objective for x in found] == sorted(x.objective for x in found)
    assert found[-1].by == "blocks" and found[0].objective < found[-1].objective


def test_rivals_keep_classes_together() -> None:
    """With only plans that torch can split, rivals are cut where the plan may be cut, and none breaks a limit."""
    problem = made(16, 16, pipelining=True)
    n = problem.problem.graph.n_ops
    plan = PartitionPlan(problem.problem.graph.names, np.zeros(n, int), np.zeros(n, int))
    found = rivals(problem.problem, plan, problem.ops)
    assert all(x.problem == "" for x in found if x.by != "blocks") and found[0].objective is not None


def test_a_limit_that_is_not_memory_is_named() -> None:
    """Equal blocks that divide what has to stay together are said to do so, and not to be too large."""
    problem = made(16, 16, 16, whole=["upper"])
    n = problem.problem.graph.n_ops
    plan = PartitionPlan(problem.problem.graph.names, np.zeros(n, int), np.zeros(n, int))
    blocks = next(x for x in rivals(problem.problem, plan, problem.ops) if x.by == "blocks")
    assert blocks.objective is None and "memory" not in blocks.problem and blocks.problem


def test_what_another_cut_would_cost() -> None:
    """Of stages of 2 + 2 and 3 + 1 s, an op earlier makes 6 instead of 4 s, an op later 7; 16 bytes pass."""
    model = LoadedModel("four", nn.Sequential(*(nn.Linear(4, 4) for _ in range(4))), (torch.ones(1, 4),), {})
    ops = model_problem(model, devices=2, training=False).ops
    zero, none = np.zeros(4), np.full(4, -1)
    graph = OpGraph(
        tuple(op.name for op in ops.ops),
        ("gpu",),
        [[2.0, 2.0, 3.0, 1.0]],
        *(zero, zero, zero),
        *([0, 1, 2], [1, 2, 3], zero[:3]),
        *(none, none, zero > 0),
    )
    problem = PartitionProblem(graph, Cluster.flat((DeviceType("gpu"), 2), bandwidth=1.0))
    plan = PartitionPlan(graph.names, [0, 0, 1, 1], [0, 0, 1, 1])
    assert verify(problem, plan).objective == 4.0
    assert reasons(problem, plan, ops, [0, 0, 1, 1]) == ["passes 16 B; earlier costs 50.00%; later costs 75.00%"]
    alone = PartitionPlan(graph.names, [0, 1, 1, 1], [0, 1, 1, 1])
    assert reasons(problem, alone, ops, [0, 1, 1, 1])[0].endswith("earlier leaves a stage empty; later costs nothing")
