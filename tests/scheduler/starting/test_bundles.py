"""Gangs in bundles: one that fits an idle cluster starts on it, whatever decides how many workers a node takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import Level, TreeTopology
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler import Scheduler


def fleet(*gpus: int, **options: Any) -> Fleet:
    """Return nodes with so many GPUs."""
    m = len(gpus)
    made = Fleet(
        tuple(f"n{i}" for i in range(m)), ("A",), np.zeros(m, dtype=np.int32), np.array(gpus), np.full(m, 96.0),
        np.full(m, 1e12), np.full(m, 3e11), TreeTopology((Level("rack", 25e9),), np.zeros((1, m), dtype=np.int32)),
    )  # fmt: skip
    return replace(made, **options)


@pytest.mark.parametrize(
    ("nodes", "workers", "options", "held"),
    [
        (fleet(8, 8, 8, 8), 16, {"most_per_node": 4}, [4, 4, 4, 4]),
        (fleet(8, 8, 8, 8), 3, {"most_per_node": 1}, [1, 1, 1]),
        (fleet(8, 8), 8, {"worker": Demand(1, cpu=16)}, [2, 6]),
        (fleet(8, 8), 8, {"worker": Demand(1, memory=2e11)}, [3, 5]),
        (fleet(8, 4), 12, {}, [4, 8]),
        (fleet(8, 4), 10, {}, [4, 8]),
        (fleet(8, 5), 13, {}, [5, 8]),
        (fleet(16, 4, 4, 4), 12, {"requires": ("small",)}, [4, 4, 4]),
        (fleet(8, 8), 12, {}, [8, 8]),
        (fleet(8, 8), 8, {"together": True}, [8]),
        (fleet(8, 8, cpu=np.array([32.0, 96.0])), 8, {"worker": Demand(1, cpu=16)}, [2, 6]),
        (fleet(3, 3), 2, {"worker": Demand(2)}, [2, 2]),
        (fleet(8), 3, {"worker": Demand(1, cpu=32)}, [3]),
        (fleet(3), 3, {"worker": Demand(1, cpu=32.0 / 3)}, [3]),
    ],
)
def test_gang_that_fits_an_idle_cluster_starts(
    nodes: Fleet, workers: int, options: dict[str, Any], held: list[int]
) -> None:
    """By `most_per_node`, cores, memory, unlike nodes, labels or GPUs a worker: it starts at once, on few nodes."""
    small = nodes.gpus < 16
    scheduler = Scheduler(replace(nodes, labels=("small",), labelled=small[None]))
    options = {key: value for key, value in options.items() if key != "together"}
    scheduler.submit(GangJob("gang", "m", (workers,), **options), 1.0)
    (start,) = scheduler.decide(60.0).starts
    assert sorted(len(gpus) for gpus in start.nodes.values()) == held


def test_bundles_follow_nodes_that_are_up() -> None:
    """While the large node is down a gang that waits for it starts in smaller bundles, and a later one is whole."""
    scheduler = Scheduler(fleet(8, 4, 4))
    scheduler.submit(GangJob("first", "m", (8,)), 100.0)
    assert [*scheduler.decide(60.0).starts[0].nodes] == ["n0"]
    scheduler.submit(GangJob("next", "m", (8,)), 100.0)
    assert not scheduler.decide(60.0).starts
    scheduler.withdraw("first")
    scheduler.fail_node("n0")
    assert sorted(scheduler.decide(60.0).starts[0].nodes) == ["n1", "n2"]


def test_one_gang_that_does_not_fit_closes_no_other_in_wider_bundles() -> None:
    """Three workers of eight GPUs do not fit on two nodes; eight workers of one, a bundle of the same size, do."""
    scheduler = Scheduler(fleet(8, 8, 8))
    scheduler.fail_node(0)
    scheduler.submit(GangJob("three", "m", (3,), Demand(8)), 1.0)
    scheduler.submit(GangJob("eight", "m", (8,)), 2.0)
    assert [start.job for start in scheduler.decide(60.0).starts] == ["eight"]


def test_a_group_that_fits_on_no_node_keeps_nobody_waiting() -> None:
    """Memory for two workers a node is too little for groups of three that wait for other nodes, due or not."""
    scheduler = Scheduler(fleet(4, 4, memory=np.full(2, 8e9)))
    scheduler.submit(GangJob("three", "m", (3,), Demand(memory=4e9)), 10.0, now=0.0, group=3, await_nodes=True)
    scheduler.submit(GangJob("four", "m", (4,)), 10.0, now=1e6)
    assert [start.job for start in scheduler.decide(60.0).starts] == ["four"]
