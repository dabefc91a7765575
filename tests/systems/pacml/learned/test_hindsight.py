"""Plans of sampled futures count what the simulator's search counts, and know what a job costs those to come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.native import Random
from gangplan.systems.pacml.arrivals import ArrivalCase, arrivals
from gangplan.systems.pacml.baselines import make_policy
from gangplan.systems.pacml.check import check
from gangplan.systems.pacml.learned.features import DegreeDecision, Past
from gangplan.systems.pacml.learned.hindsight import FIRST, Futures, PastPlans
from gangplan.systems.pacml.learned.policy import RampDecider, RampObservation
from gangplan.systems.pacml.learned.tables import TypeTimes
from gangplan.systems.pacml.learned.values import Scenario
from gangplan.systems.pacml.learned.worth import FUTURES, HORIZON, Plans
from gangplan.systems.pacml.plans import search
from gangplan.systems.pacml.simulate import Decides, simulate


def valued(
    times: TypeTimes, scenario: Scenario, end: FloatArray, gap: float, kind: int, beta: float, later: tuple[int, float]
) -> FloatArray:
    """Return what the candidates of a decision are worth where there is but one job to draw."""
    decision, plans = DegreeDecision(scenario.tables), Plans(scenario.tables, times, Random(0))
    k = decision.look(end, 0.0, gap, times, kind, beta, Past())
    plans.draw_from(np.full(9, later[0]), np.full(9, later[1]))
    return plans.values(end, 0.0, gap, kind, np.asarray(decision.block)[:k])


@pytest.mark.parametrize("seed", [0, 1])
def test_counts_what_the_search_counts(scenario: Scenario, seed: int) -> None:
    """Of one known future the best candidate is worth what a wide beam of the simulator accepts, within one job."""
    kind, gap, end = seed, scenario.times.sequential[seed] / 24, np.full(32, -1.0)
    out = valued(scenario.times, scenario, end, gap, kind, 0.7, (kind, 0.7))
    submit = gap * np.arange(HORIZON + 1)
    case = ArrivalCase(scenario.types, submit, np.full(HORIZON + 1, kind), np.full(HORIZON + 1, 0.7), float(submit[-1]))
    known = search(case, width=200).accepted
    assert len(out) > 1 and known - 1 <= out.max() <= HORIZON + 1
    assert abs(out.max() - known) <= 1


def one_server(scenario: Scenario) -> TypeTimes:
    """Return times of a job that holds one server for good, and of a short one; neither runs on more servers."""
    tables = scenario.tables
    alone = np.asarray(tables.degree)[np.unique(tables.shape, return_index=True)[1]] == 0
    kind = scenario.types[0]
    return TypeTimes([replace(kind, jct=np.where(alone, x, np.inf), sequential=x) for x in (1000.0, 0.5)])


def test_knows_what_a_job_costs(scenario: Scenario) -> None:
    """One server is free: a job that holds it for good costs all short jobs to come."""
    end = np.full(32, 1e6)
    end[7] = -1.0
    for accept, after in ((1.0, HORIZON), (0.01, 0)):  # whether those to come can be done in time at all
        out = valued(one_server(scenario), scenario, end, 1.0, 0, 1.0, (1, accept))
        assert out == pytest.approx([after, 1.0]) and FUTURES > 1


class Largest(RampDecider):
    """Prefers the block that takes the most servers at once, by a little."""

    def rate(self, observation: RampObservation) -> FloatArray:
        """Return a thousandth of a job for each candidate before."""
        return np.arange(len(observation.block)) * 1e-3


def blocked(case: ArrivalCase, policy: Decides) -> float:
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
    first, second, third = (outcome.admitted for outcome in outcomes)
    assert (first[:FIRST] == second[:FIRST]).all() and (second == third).all()


def test_not_on_clusters_of_parts(make_scenario: Callable[..., Scenario]) -> None:
    """On 512 servers the policy decides alone."""
    large = make_scenario((8, 8, 8), 2)
    case = arrivals(large.types, "D", 1_000_952, n=60, load=1.5)
    assert len({blocked(case, Largest(guarded=False, futures=futures)) for futures in (None, Futures(1))}) == 1
