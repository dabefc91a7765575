"""What the benchmark of evictions runs: the rules make room, and none is below the least cost."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.eviction import GPUS, KINDS, RULES, STUDY, cluster, greedy, rooms, tasks
from benchmarks.rows import Row
from benchmarks.study import Options
from gangplan.solvers.placement.eviction import cheapest_eviction


@pytest.mark.parametrize("kind", KINDS)
def test_rules_are_not_below_the_least_cost(kind: str) -> None:
    """On 32 nodes in racks no rule's set costs less than the one that is proved."""
    of, age = cluster(32, kind, True, 3)
    assert (of.free[0] == 0).all() and (of.free >= 0).all()
    need = np.array([GPUS, 16])
    of = type(of)(of.free, of.most // GPUS, of.domain, of.job, of.node, of.used, of.blocks, of.cost)
    best = cheapest_eviction(of, need, 3, time_limit=10.0)
    assert best is not None and best.proved
    assert all(greedy(of, need, 3, age, rule) >= best.cost * (1 - 1e-9) for rule in RULES)


def test_the_table() -> None:
    """It has a line for each size and domain, and the figures of its rows."""
    rows = [
        Row(task, {"ms": 1.5, "most_ms": 20.0, "proved": 0.9, "gap": 0.031} if task.policy == "cheapest"
            else {"dearer": 0.25}, "", "")
        for task in tasks(Options(seeds=2))
    ]  # fmt: skip
    from benchmarks.found import Found

    lines = rooms(Found(rows, STUDY.alike)).splitlines()
    assert len(lines) == 2 + 6
    assert lines[2] == "| 64 | anywhere | 1.5, 20 | 90% | 3.1% | +25% | +25% | +25% |"
    assert lines[-1] == "| 12,500 | one rack | 1.5, 20 | 90% | 3.1% |  |  |  |"
