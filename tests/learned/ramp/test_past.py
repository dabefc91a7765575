"""Plans of past arrivals decide by what has come, and by nothing else."""

from __future__ import annotations

from gangplan.learned.ramp.past import PastPlans
from gangplan.learned.ramp.scenarios import Scenario
from gangplan.simulator.ramp import arrivals, check, make_policy, simulate


def test_blocks_less_than_a_constant(scenario: Scenario) -> None:
    """On published arrivals they block fewer jobs than a constant degree, in a valid outcome, and twice the same."""
    case = arrivals(scenario.types, "D", 1_000_950, n=120, load=1.5)
    once, again = (simulate(case, PastPlans(3)) for _ in range(2))
    check(once)
    assert once.blocked == again.blocked
    assert once.blocked < simulate(case, make_policy("constant-4")).blocked
