"""Training of MARL's agents: the market's word is learned, advantages are shared, and curves go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.training.trainer import start
from gangplan.systems.marl.learners import AgentsLearner, MarlTraining
from gangplan.systems.marl.network import Actor
from gangplan.systems.marl.policy import batch
from gangplan.systems.marl.recipe import MarlSettings

pytestmark = pytest.mark.usefixtures("one_thread")
TINY: dict[str, Any] = {
    "cases": ("leaf-spine",), "servers": 16, "jobs": 15, "width": 8, "reward_model": "mean ratio", "samples": 100,
    "labels": 6, "minibatch": 8, "imitation_rate": 1e-2, "imitation_updates": 40, "lanes": 2, "warm": 1, "passes": 1,
    "validation_seeds": 1,
}  # fmt: skip
SETTINGS = MarlSettings(**TINY)


@pytest.fixture(scope="module")
def training() -> MarlTraining:
    """Return what the stages share, with the model that pays."""
    return MarlTraining(SETTINGS, 0)


def learner(training: MarlTraining) -> AgentsLearner:
    """Return what trains first weights by PPO."""
    return training.rl(start(training.network, 0, None))


def chance_of_right(network: Actor, steps: list[Any]) -> float:
    """Return the mean probability that a decision is right by the teacher's word."""
    with torch.no_grad():
        chance = network(*batch(network, steps)).exp().double().numpy()
    sizes = [len(mask) for x in steps for mask in x.right]
    parts = np.split(chance, np.cumsum(sizes)[:-1])
    return float(np.mean([p[mask].sum() for p, mask in zip(parts, (m for x in steps for m in x.right), strict=True)]))


def test_imitation(training: MarlTraining) -> None:
    """The teacher is followed more often, also in episodes that were not learned from; figures are those of play."""
    apart = training.labelled(seed=1)
    found = training.imitation(start(training.network, 0, None))
    network = found.network
    assert isinstance(network, Actor)
    before = chance_of_right(network, apart)
    for step in range(1, 41):
        found.update(step)
    assert chance_of_right(network, apart) > before + 0.1
    assert found.validate() == training.validate(network)


def test_later_rounds_see_what_the_network_comes_to(training: MarlTraining) -> None:
    """Steps that the network plays carry the teacher's word, which it does not always follow."""
    network = start(lambda: Actor(SETTINGS), 0, None)
    for steps, followed in ((training.labelled(), True), (training.labelled(network, 1), False)):
        right = [bool(mask[a]) for x in steps for mask, a in zip(x.right, x.action, strict=True)]
        assert right and all(right) == followed


def test_the_same_curve(training: MarlTraining) -> None:
    """What was saved after two updates goes on as if it had not been; the policy stays until the critic is warm."""
    first, second = learner(training), learner(training)
    before = {name: x.clone() for name, x in first.network.state_dict().items()}
    assert "entropy" not in first.update(1)
    assert all((before[name] == x).all() for name, x in first.network.state_dict().items())
    assert {"entropy", "clipped", "gradient"} <= set(first.update(2))
    assert any((before[name] != x).any() for name, x in first.network.state_dict().items())
    tensors, plain = first.state()
    second.load({name: x.clone() for name, x in tensors.items()}, plain)
    assert first.update(3) == second.update(3)


@pytest.mark.parametrize("team", [0.0, 0.5, 1.0])
def test_advantages_are_shared(training: MarlTraining, team: float) -> None:
    """An advantage is the agent's own and the mean of all, in the shares of the settings; targets are its own."""
    found = learner(training)
    settings = MarlSettings(**TINY | {"team": team})
    played = [lane.played for lane in found.play(1)]
    found.settings = MarlSettings(**TINY | {"team": 0.0})
    own, wanted = found.estimates(played)
    found.settings = settings
    mixed, same = found.estimates(played)
    agents = len(played[0][0].plan.pod)
    assert agents > 1
    for a, b in zip(own, mixed, strict=True):
        assert b == pytest.approx((1 - team) * a + team * a.mean(), abs=1e-6)
    assert all((a == b).all() for a, b in zip(wanted, same, strict=True))
