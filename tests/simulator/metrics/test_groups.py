"""What users, queues and sizes got of a schedule."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import Outages, simulate_named
from gangplan.simulator.metrics import groups, summary
from gangplan.simulator.metrics.groups import GROUPINGS

WORK = Workload(
    ("a", "b", "c"),
    np.array([0.0, 1.0, 2.0]),
    np.array([1, 2, 1]),
    np.array([10.0, 5.0, 8.0]),
    queue=("x", "x", "y"),
    user=("ann", "bob", "ann"),
)


def test_by_hand() -> None:
    """On two GPUs, first in first out, a runs from 0 to 10, b from 10 to 15 and c from 15 to 23."""
    outcome = simulate_named(WORK, 1, 2)
    ann, bob = groups(outcome, "user", gpu_hour_price=3600.0)  # a GPU-second costs 1
    assert (ann.name, ann.jobs, ann.mean_wait, ann.mean_jct, ann.cost) == ("ann", 2, 6.5, 15.5, 18.0)  # waits 0 and 13
    assert ann.p95_wait == pytest.approx(0.95 * 13)  # the line between the two
    assert (bob.name, bob.jobs, bob.mean_wait, bob.p95_jct, bob.cost) == ("bob", 1, 9.0, 14.0, 10.0)
    assert ann.share == pytest.approx(18 / 46)  # of two GPUs from 0 to 23
    assert [group.name for group in groups(outcome, "queue")] == ["x", "y"]  # 20 GPU-seconds before 8
    assert [(group.name, group.jobs) for group in groups(outcome, "size")] == [("1 GPU", 2), ("2 GPUs", 1)]
    assert groups(outcome, "size")[0].cost is None


@pytest.mark.parametrize("by", GROUPINGS)
def test_groups_add_up(by: str) -> None:
    """Jobs, GPU-hours and shares of groups add up to those of all, with stops and nodes that fail."""
    jobs = arrivals(60, 0.01, seed=3, gpus="1:4,2:3,4:2,8:1", duration="lognormal", mean=900.0)
    users = tuple(f"u{i % 5}" for i in range(60))
    work = Workload(jobs.names, jobs.submit, jobs.gpus, jobs.duration, queue=users, user=users)
    outcome = simulate_named(work, 3, 4, "srtf", preempt_cost=20.0, outages=Outages(mtbf=9000.0, mttr=600.0, seed=1))
    parts, whole = groups(outcome, by), summary(outcome)
    assert sum(part.jobs for part in parts) == whole.jobs
    assert sum(part.share for part in parts) == pytest.approx(whole.utilisation)
    assert sum(part.gpu_hours for part in parts) == pytest.approx(float(outcome.held.sum()) / 3600)
    assert sum(part.mean_jct * part.jobs for part in parts) / whole.jobs == pytest.approx(whole.mean_jct)


def test_unknown_grouping() -> None:
    """Another grouping is refused."""
    with pytest.raises(InstanceError, match="by: 'team' is not one of user, queue, size"):
        groups(simulate_named(WORK, 1, 2), "team")
