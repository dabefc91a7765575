"""Plans of past arrivals decide by what has come, and by nothing else, alone and between the blocks of a policy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.systems.pacml.arrivals import Case, arrivals
from gangplan.systems.pacml.baselines import make_policy
from gangplan.systems.pacml.check import check
from gangplan.systems.pacml.learned.past import FIRST, Futures, PastPlans
from gangplan.systems.pacml.learned.policy import Decider, Observation
from gangplan.systems.pacml.learned.scenarios import Scenario
from gangplan.systems.pacml.simulate import Policy, simulate


class Largest(Decider):
    """Prefers the block that takes the most servers at once, by a little."""

    def rate(self, observation: Observation) -> FloatArray:
        """Return a thousandth of a job for each candidate before."""
        return np.arange(len(observation.block)) * 1e-3


def blocked(case: Case, policy: Policy) -> float:
    """Return the blocked share of a valid outcome."""
    outcome = simulate(case, policy)
    check(outcome)
    return outcome.blocked


def test_blocks_less_than_a_constant(scenario: Scenario) -> None:
    """On published arrivals they block fewer jobs than a constant, twice the same; so do those of two futures."""
    case = arrivals(scenario.types, "D", 1_000_950, n=120, load=1.5)
    once, again, brief = (blocked(case, PastPlans(3, count)) for count in (16, 16, 2))
    assert once == again
    assert max(once, brief) < blocked(case, make_policy("constant-4"))


def test_between_the_blocks_of_a_policy(scenario: Scenario) -> None:
    """They reject what a poor policy would accept, from the 31st job on, and twice the same."""
    case = arrivals(scenario.types, "D", 1_000_951, n=150, load=1.5)
    alone, planned = (Largest(guarded=False, futures=futures) for futures in (None, Futures(1)))
    assert blocked(case, planned) < blocked(case, alone) - 0.02
    outcomes = [simulate(case, policy) for policy in (alone, planned, planned)]
    first, second, third = (outcome.accepted for outcome in outcomes)
    assert (first[:FIRST] == second[:FIRST]).all() and (second == third).all()


def test_not_on_clusters_of_parts(make_scenario: Callable[..., Scenario]) -> None:
    """On 512 servers the policy decides alone."""
    large = make_scenario((8, 8, 8), 2)
    case = arrivals(large.types, "D", 1_000_952, n=60, load=1.5)
    assert len({blocked(case, Largest(guarded=False, futures=futures)) for futures in (None, Futures(1))}) == 1
