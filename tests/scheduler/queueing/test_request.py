"""What is said of a job, where it is wrong."""

from __future__ import annotations

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler


@pytest.mark.parametrize("priority", [2**63, 2**70, -(2**70)])
def test_a_class_beyond_64_bits(priority: int) -> None:
    """It is refused when it is said, and nothing has changed; the largest class that is not runs."""
    s = Scheduler(Fleet.regular(1, 1, 2))
    before = s.snapshot()
    with pytest.raises(InstanceError, match=r"priority: .* does not fit into 64 bits"):
        s.submit(GangJob("a", "any", (1,)), 1.0, now=0.0, priority=priority)
    assert s.snapshot() == before
    s.submit(GangJob("a", "any", (1,)), 1.0, now=0.0, priority=2**63 - 1)
    assert [start.job for start in s.decide(60.0).starts] == ["a"]
