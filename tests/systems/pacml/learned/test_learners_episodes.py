"""In episodes and in the simulator the same weights decide alike."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gangplan.systems.pacml.arrivals import ArrivalCase, arrivals
from gangplan.systems.pacml.check import check
from gangplan.systems.pacml.learned.features import WIDTH
from gangplan.systems.pacml.learned.learners import Validation, run_episode
from gangplan.systems.pacml.learned.network import BlockNetwork
from gangplan.systems.pacml.learned.policy import RampPolicy
from gangplan.systems.pacml.learned.recipe import PacmlSettings
from gangplan.systems.pacml.learned.values import Scenario
from gangplan.systems.pacml.simulate import simulate


def network(seed: int = 0) -> BlockNetwork:
    """Return random weights that do not reject everything."""
    torch.manual_seed(seed)
    found = BlockNetwork(24)
    with torch.no_grad():
        found.rows.weight[:, WIDTH - 8] = found.rows.weight[:, WIDTH - 8].abs() + 1  # whether a block is taken
        found.hidden.weight.abs_()
        found.out.weight.abs_()
    return found


@pytest.mark.parametrize(("choose", "seed"), [(True, 0), (False, 1)])
def test_the_same_decisions(scenario: Scenario, choose: bool, seed: int) -> None:
    """Episodes and the simulator with the policy accept the same jobs until the same times; check agrees."""
    case = arrivals(scenario.types, "A", seed, n=150, load=1.2, poisson=seed == 1)
    (name,) = scenario.sets
    episode, weights = scenario.episode(name, case), network(seed)
    finish = run_episode(episode, scenario.times, weights.weights(), scenario.decision(choose=choose))
    accepted = np.isfinite(finish).sum()
    outcome = simulate(case, RampPolicy(weights, PacmlSettings(blocks=choose), guarded=False))
    if not choose:  # there a time on an empty cluster stands for that on the shapes that first fit finds
        assert abs(accepted - outcome.admitted.sum()) <= 6 and check(outcome) == []
        assert 0.2 < outcome.blocked < 0.8 and set(outcome.reason.tolist()) <= {0, 1}
        return
    assert np.allclose(outcome.finish, finish, rtol=1e-12)
    assert check(outcome) == []
    assert accepted == outcome.admitted.sum() and 0.2 < outcome.blocked < 0.8
    assert set(outcome.reason.tolist()) <= {0, 1}  # what it chooses is free and in time
    judged = Validation(scenario, [episode], choose=choose)(weights)
    assert judged["score"] == judged[name] == pytest.approx(outcome.blocked_or_running)


def test_a_server_that_is_free_but_for_rounding(scenario: Scenario) -> None:
    """A job that arrives a rounding before servers are free does not get them: the simulator would refuse."""
    kind = scenario.types[0]
    one = float(kind.jct[kind.blocks.shape[0]])
    submit = np.array([0.0] * kind.blocks.n_servers + [one * (1 - 1e-15)])
    assert submit[-1] < one
    n = len(submit)
    case = ArrivalCase((kind,), submit, np.zeros(n, np.int32), np.ones(n), one * 2)

    class Greedy(RampPolicy):
        def score(self, observation):  # type: ignore[no-untyped-def]
            size = observation.rows[:, -7]
            return np.where(observation.block < 0, -9.0, -size)

    outcome = simulate(case, Greedy(network()))
    assert outcome.reason.tolist() == [0] * (n - 1) + [1]


def test_a_case_played_twice(scenario: Scenario) -> None:
    """A policy keeps nothing of the case before: played again, or after another one, it does the same."""
    first, second = (arrivals(scenario.types, "C", seed, n=60) for seed in (0, 1))
    policy = RampPolicy(network())
    before = simulate(first, policy)
    simulate(second, policy)
    for again in (simulate(first, policy), simulate(first, policy), simulate(first, RampPolicy(network()))):
        assert np.array_equal(before.block, again.block)
