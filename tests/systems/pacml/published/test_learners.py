"""Training: episodes are those of the simulator, and what was saved goes on to the same curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gangplan.learned.training.recipe import recipe, train_policy
from gangplan.systems.pacml.arrivals import ArrivalCase, arrivals
from gangplan.systems.pacml.learned.values import Scenario
from gangplan.systems.pacml.published import learners
from gangplan.systems.pacml.published.learners import JOBS, Arriving
from gangplan.systems.pacml.published.network import Policies
from gangplan.systems.pacml.published.policy import PublishedPolicy
from gangplan.systems.pacml.published.recipe import PublishedSettings
from gangplan.systems.pacml.simulate import simulate

pytestmark = pytest.mark.usefixtures("one_thread")


def test_episodes_are_those_of_the_simulator(scenario: Scenario) -> None:
    """What a policy blocks in episodes is what the simulator says, but for times of first fit that shapes change."""
    torch.manual_seed(1)
    network = Policies(PublishedSettings())
    network.of["D"].graphs = learners.batch_of([learners.op_rows(x.graph) for x in scenario.types])
    drawn: list[ArrivalCase] = [arrivals(scenario.types, "D", seed, n=JOBS) for seed in (7, 8)]
    policy = PublishedPolicy(network, PublishedSettings())
    rates = [simulate(case, policy).blocked_or_running for case in drawn]
    episodes = Arriving(scenario, "D", 7, 2)
    with torch.no_grad():
        for _ in range(JOBS):
            seen = episodes.look()
            scores = network.of["D"](torch.from_numpy(seen.rows)).numpy()
            episodes.take(np.where(seen.mask, scores, -np.inf).argmax(axis=1))
    np.testing.assert_allclose(1 - episodes.timely / JOBS, rates, atol=0.005)
    assert 0 < np.mean(rates) < 1
    assert episodes.look().over.all() and (episodes.at == 0).all()


def test_rewards_and_masks(scenario: Scenario) -> None:
    """A job that is rejected or late is -1, one accepted 1, and its servers are busy."""
    episodes = Arriving(scenario, "D", 0, 2)
    episodes.beta[:] = 100.0
    before = episodes.look()
    assert before.mask.all()
    assert episodes.take(np.array([0, 2])).tolist() == [-1, 1]
    assert (episodes.end[0] <= 0).all() and (episodes.end[1] > 0).sum() >= 2
    episodes.beta[:] = 0.01
    assert episodes.take(np.array([1, 1])).tolist() == [-1, -1]
    assert not episodes.look().over.any() and episodes.timely.tolist() == [0, 1]


def test_recipe(scenario: Scenario, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two updates of each distribution train to weights that load, can be resumed, and change only their own."""
    monkeypatch.setattr(learners, "published", lambda profiles, units: scenario)
    monkeypatch.setattr(learners, "JOBS", 40)
    text = (
        'policy = "pacml-published"\nrl_updates = 2\nlanes = 4\nsteps = 8\nwarm = 0\nstarts = 2\nvalidation_seeds = 2\n'
    )
    (tmp_path / "own.toml").write_text(f"{text}validate_every = 1\nunits = 'physical'\n")
    done = train_policy(tmp_path / "own.toml", tmp_path / "run")
    assert [*done.reports] == ["ppo-0", "ppo-1", "ppo-2", "ppo-3"] and done.weights is not None
    assert done.card is not None and set(done.card.validation) == {"score", *"ABCD"}
    again = train_policy(tmp_path / "own.toml", tmp_path / "run", resume=True)
    assert [*again.reports.values()][-1].best == [*done.reports.values()][-1].best
    assert isinstance(recipe("pacml-published").load(done.weights), PublishedPolicy)


def test_the_same_curve(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was saved after two updates goes on as if it had not been."""
    monkeypatch.setattr(learners, "published", lambda profiles, units: scenario)
    monkeypatch.setattr(learners, "JOBS", 40)
    settings = PublishedSettings(rl_updates=4, lanes=4, steps=16, warm=1, starts=1, validation_seeds=2)
    training = learners.PublishedTraining(settings, 0)
    first, second = (training.learner("ppo-1", None) for _ in range(2))
    for step in (1, 2):
        first.update(step)
    tensors, plain = first.state()
    second.load({name: x.clone() for name, x in tensors.items()}, plain)
    assert [first.update(step) for step in (3, 4)] == [second.update(step) for step in (3, 4)]
    assert first.validate() == second.validate()
