"""The mixes of TopDRL's experiments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.systems.topdrl.workloads import SMALL


def test_a_rush_changes_arrivals_only() -> None:
    """The middle third of the jobs comes twice as fast, and the jobs are the same."""
    calm, rush = SMALL.draw(3), replace(SMALL, rush=2.0).draw(3)
    gaps, fast = np.diff(calm.submit), np.diff(rush.submit)
    assert np.array_equal(fast[49:99], gaps[49:99] / 2)
    assert np.array_equal(np.delete(fast, range(49, 99)), np.delete(gaps, range(49, 99)))
    assert np.array_equal(calm.duration, rush.duration) and np.array_equal(calm.gpus, rush.gpus)
    with pytest.raises(InstanceError, match="rush"):
        replace(SMALL, rush=0)
