"""Imitation and PPO learn on a tiny scenario, resume exactly, and settings that make no sense are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned.ramp import learners
from gangplan.learned.ramp.episodes import ParallelEpisodes
from gangplan.learned.ramp.evaluate import Validation
from gangplan.learned.ramp.network import Network
from gangplan.learned.ramp.recipe import RECIPE
from gangplan.learned.ramp.scenarios import Scenario
from gangplan.learned.ramp.settings import Settings
from gangplan.learned.ramp.teacher import label
from gangplan.learned.ramp.values import SHAPE
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.ppo import Ppo

TINY = Settings(
    width=16, minibatch=64, imitation_rate=5e-3, lanes=8, steps=24, warm=0, rl_updates=40, rl_rate=3e-3, passes=2
)


def network() -> Network:
    """Return the same random weights every time."""
    torch.manual_seed(0)
    return Network(TINY.width)


def imitation(small: Scenario, updates: int = 60) -> Imitation:
    """Return a learner of what a table says of one episode."""
    (name,) = small.sets
    table = np.zeros(SHAPE) + 0.01 * np.arange(SHAPE[2])
    made = label(small, small.draw(name, "D", 0, 200), table, 1.0, 0, ahead=None)
    judge = Validation([(small, [small.draw(name, "A", 9, 100)])])
    return learners.imitation(network(), [(small, made)], judge, TINY, TINY.imitation_rate, updates, 0)


def reinforce(small: Scenario) -> Ppo:
    """Return a learner from its own episodes, of which some end during an update."""
    (name,) = small.sets
    episodes = [
        ParallelEpisodes(small, lambda rng: small.draw(name, "D", int(rng.integers(99)), 60, load=1.2), count, seed)
        for seed, count in enumerate((5, 3))
    ]
    return learners.reinforcement(network(), episodes, Validation([(small, [small.draw(name, "A", 9, 100)])]), TINY, 0)


@pytest.mark.parametrize("make", [imitation, reinforce])
def test_resumes_exactly(small: Scenario, make: Callable[[Scenario], Any]) -> None:
    """Two updates, saved, loaded into a fresh learner, and two more: digit for digit those of four in a row."""
    whole, part = make(small), make(small)
    figures = [whole.update(step) for step in range(1, 5)]
    assert [part.update(step) for step in (1, 2)] == figures[:2]
    tensors, plain = part.state()
    tensors = {key: value.clone() for key, value in tensors.items()}
    part.update(3)  # what was saved is not touched by what comes after
    other = make(small)
    other.update(1)
    other.load(tensors, plain)
    assert [other.update(step) for step in (3, 4)] == figures[2:]
    for key, value in whole.state()[0].items():
        assert torch.equal(value, other.state()[0][key]), key
    assert whole.validate() == other.validate()


def test_imitation_learns(small: Scenario) -> None:
    """The loss falls by a quarter in 60 updates."""
    learner = imitation(small)
    loss = [learner.update(step)["loss"] for step in range(1, 61)]
    assert np.mean(loss[-10:]) < 0.75 * np.mean(loss[:3])


def test_reinforcement_learns(small: Scenario) -> None:
    """From random choices on, more and more jobs are accepted."""
    learner = reinforce(small)
    accepted = [learner.update(step)["reward"] for step in range(1, 41)]
    assert np.mean(accepted[-8:]) > np.mean(accepted[:8]) + 0.04


def test_warm_up(small: Scenario) -> None:
    """While only the critic warms up, the policy stays what it was."""
    learner = reinforce(small)
    learner.settings = replace(TINY, warm=2)
    before = {key: value.clone() for key, value in learner.network.state_dict().items()}
    learner.update(1)
    assert all(torch.equal(value, before[key]) for key, value in learner.network.state_dict().items())
    learner.update(3)
    assert any(not torch.equal(value, before[key]) for key, value in learner.network.state_dict().items())


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"width": 0}, "width"),
        ({"lanes": 0}, "lanes"),
        ({"rounds": 0}, "rounds"),
        ({"steps": 1}, "steps"),
        ({"rl_updates": -1}, "rl_updates"),
        ({"entropy": -0.1}, "entropy"),
        ({"rl_rate": 0.0}, "rl_rate"),
        ({"temperature": -1.0}, "temperature"),
        ({"gamma": 1.0}, "gamma"),
        ({"lam": 1.5}, "lam"),
        ({"units": ()}, "units"),
        ({"units": ("physical", "physical")}, "units"),
        ({"share_various": 1.0}, "share_various"),
        ({"share_various": 0.9, "lanes": 4}, "share_various"),
    ],
)
def test_bad_settings(values: dict[str, Any], field: str) -> None:
    """Settings that make no sense are refused by name."""
    with pytest.raises(InstanceError) as error:
        Settings(**values)
    assert error.value.field == field


def test_nothing_to_train() -> None:
    """A configuration without imitation and without RL is refused; without either one there is the other."""
    with pytest.raises(InstanceError, match="nothing would be trained"):
        RECIPE.stages(replace(TINY, imitation_updates=0, rl_updates=0), "cpu", 0)
    assert [x.name for x in RECIPE.stages(TINY, "cpu", 0)] == ["imitation", "correction", "rl"]
    assert [x.name for x in RECIPE.stages(replace(TINY, imitation_updates=0), "cpu", 0)] == ["rl"]
    assert [x.name for x in RECIPE.stages(replace(TINY, rl_updates=0), "cpu", 0)] == ["imitation", "correction"]
