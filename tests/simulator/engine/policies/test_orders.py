"""Priority classes before a policy's order."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import check_policy, simulate_named
from gangplan.simulator.engine.policies import SRTF, Classes, Fixed, Tiresias
from gangplan.simulator.engine.policies.orders import in_classes


def test_order_in_classes() -> None:
    """Numbers are ordered as pairs of priority and key are, and equal only where these are."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 30))
        priority, keys = rng.integers(-3, 3, n), rng.choice([0.0, 1.5, 2.0, np.inf], n)
        rank = in_classes(priority, keys)
        pairs = list(zip((-priority).tolist(), keys.tolist(), strict=True))
        for i in range(n):
            for j in range(n):
                assert (rank[i] < rank[j]) == (pairs[i] < pairs[j])


@pytest.mark.parametrize("policy", [Fixed, SRTF, Tiresias])
def test_contract(policy: type) -> None:
    """With classes a policy keeps the contract."""
    check_policy(lambda: Classes(policy()), traces=1)


def test_by_hand() -> None:
    """A job of a higher class goes first, and stops one of a lower class where the policy stops jobs."""
    jobs = Workload(
        ("a", "b", "c"),
        np.array([0.0, 1, 2]),
        np.array([2, 2, 2]),
        np.array([10.0, 5, 20]),
        priority=np.array([0, 0, 5]),
    )
    assert simulate_named(jobs, 1, 2, "fifo", priorities=True).start.tolist() == [0, 30, 10]
    # at 1 b has less to do than a; at 2 c stops b, which goes on from 22 to 26, and a after it to 35
    assert simulate_named(jobs, 1, 2, "srtf", priorities=True).finish.tolist() == [35, 26, 22]
    with pytest.raises(InstanceError, match="priorities: are not known to optimus"):
        simulate_named(jobs, 1, 2, "optimus", priorities=True)
