"""`Scheduler` in the simulator: it keeps the contract of policies."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.hybrid.online.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import check_policy


@pytest.mark.parametrize("options", [{}, {"price": 60.0}, {"policy": "heuristic", "told": False}])
def test_contract_of_the_simulator(options: dict[str, Any]) -> None:
    """Traces run through it, with failures: every job is done, twice alike, every schedule passes the check."""
    check_policy(lambda: SchedulerPolicy(**options), traces=1)
