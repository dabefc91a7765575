"""The guard goes by a rule that leads, and by the policy where none does; compiled rules do what the simulator's do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gangplan.instances.arrays import FloatArray
from gangplan.systems.pacml.arrivals import ArrivalCase, arrivals
from gangplan.systems.pacml.baselines import make_policy
from gangplan.systems.pacml.learned.guard import FIRST, LEAD, RULES, WIDE_RULES, jobs_to_come
from gangplan.systems.pacml.learned.policy import RampDecider, RampObservation
from gangplan.systems.pacml.learned.tables import DEGREES, Clusters, TypeTimes, tables
from gangplan.systems.pacml.learned.values import Scenario
from gangplan.systems.pacml.simulate import Acceptance, RampState, simulate


class Rule:
    """Decides by a compiled rule."""

    def __init__(self, case: ArrivalCase, rule: tuple[int, int]) -> None:
        self._clusters, self._times, self._rule = Clusters(tables(case.blocks), 2), TypeTimes(case.types), rule

    def decide(self, state: RampState) -> Acceptance | None:
        """Return the rule's choice."""
        np.asarray(self._clusters.ends)[1], found = state.ends, np.full(2, -1)
        kind = state.case.model[state.index]
        self._clusters.go_on(found, state.now, self._times, kind, state.limit, np.array([self._rule]))
        block = int(found[1])
        return None if block < 0 else Acceptance(int(state.blocks.degree[block]), block)


class Fixed(RampDecider):
    """Rejects every job, or takes the candidate of the fewest servers."""

    def __init__(self, *, rejects: bool, guarded: bool = True) -> None:
        super().__init__(guarded=guarded)
        self._rejects = rejects

    def rate(self, observation: RampObservation) -> FloatArray:
        """Return -1 for every block if it rejects, else less than 0 for rejecting."""
        accepts = observation.block >= 0
        return np.where(accepts, -1.0 if self._rejects else -0.01 * np.arange(len(accepts)), -9.0 * (not self._rejects))


@pytest.fixture
def case(scenario: Scenario) -> ArrivalCase:
    """Return a hundred jobs."""
    return arrivals(scenario.types, "A", 2, n=100, load=1.2)


@pytest.mark.parametrize(
    "name", ["constant-2+first", "constant-8+first", "about-4+best", "about-8+best", "about-4+first"]
)
def test_rules(case: ArrivalCase, name: str) -> None:
    """A compiled rule accepts the same jobs on the same blocks as the simulator's of that name."""
    kind, degree = name.split("+", maxsplit=1)[0].split("-")
    rule = DEGREES.index(int(degree)), 1 if kind == "constant" else 2 * name.endswith("first")
    assert rule in [tuple(x) for x in (*RULES.tolist(), *WIDE_RULES.tolist())]
    mine, known = simulate(case, Rule(case, rule)), simulate(case, make_policy(name))
    assert np.array_equal(mine.block, known.block) and 0 < known.admitted.sum() < case.n_jobs


def test_a_rule_takes_over(case: ArrivalCase) -> None:
    """Beside a policy that rejects all, a rule decides from when it has accepted more than the margin."""
    assert simulate(case, Fixed(rejects=True, guarded=False)).admitted.sum() == 0
    found = simulate(case, Fixed(rejects=True)).admitted
    alone = [simulate(case, Rule(case, (rule[0], rule[1]))).admitted for rule in RULES.tolist()]
    lead = np.cumsum(alone, axis=1).max(axis=0)
    begins = int(np.argmax(lead > LEAD))
    assert not found[:begins].any() and found[begins]
    assert found.sum() > 0.8 * (max(x.sum() for x in alone) - LEAD)


def test_a_policy_that_leads_decides(scenario: Scenario) -> None:
    """Where all jobs fit, no rule leads, and the policy decides as it does without a guard."""
    calm = arrivals(scenario.types, "D", 3, n=60, load=0.1)
    one, other = (simulate(calm, Fixed(rejects=False, guarded=x)) for x in (True, False))
    assert np.array_equal(one.block, other.block) and other.admitted.mean() > 0.9


def test_on_several_pods_who_would_do_most_of_the_jobs_to_come_decides(make_scenario: Callable[..., Scenario]) -> None:
    """A policy that rejects all decides on the first jobs only; then nearly as many are done as by the best rule."""
    large = make_scenario((8, 8, 2), 2, kinds=1)
    case = arrivals(large.types, "A", 0, n=100)
    found = simulate(case, Fixed(rejects=True)).admitted
    best = max(simulate(case, Rule(case, (rule[0], rule[1]))).admitted[FIRST:].sum() for rule in WIDE_RULES.tolist())
    assert not found[:FIRST].any()
    assert found[FIRST:].sum() > 0.9 * best > 0


def test_jobs_to_come_are_like_those_so_far(scenario: Scenario) -> None:
    """What is drawn has arrived before, follows the past at its mean gap, and is the same each time."""
    case = arrivals(scenario.types, "A", 2, n=100)
    state = RampState(case, 40, float(case.limit[40]), np.zeros(32), np.zeros(40, bool))
    one, other = jobs_to_come(state, 500), jobs_to_come(state, 500)
    assert one.n_jobs == 541 and np.array_equal(one.model[:41], case.model[:41])
    known = set(zip(case.model[:41].tolist(), case.fraction[:41].tolist(), strict=True))
    assert set(zip(one.model.tolist(), one.fraction.tolist(), strict=True)) == known
    assert np.diff(one.submit) == pytest.approx(case.submit[40] / 40)
    assert np.array_equal(one.model, other.model) and one.horizon == pytest.approx(one.submit[-1])
