"""Imitation of the selector's teacher: regrets are counted, jobs are done sooner, and curves go on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.perceptron import Perceptron
from gangplan.learned.training.trainer import start
from gangplan.systems.topdrl.select.learners import CAP, Training
from gangplan.systems.topdrl.select.recipe import JUDGED, SelectSettings
from gangplan.systems.topdrl.select.rollouts import Labels, labels

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = SelectSettings(
    width=16, labels=1000, futures=8, ahead=12, updates=150, rate=1e-2, minibatch=64, validation_seeds=1
)


@pytest.fixture(scope="module")
def taught() -> Labels:
    """Return labels of a few decisions."""
    return labels(SETTINGS, 0)


@pytest.fixture(scope="module")
def training() -> Training:
    """Return what judges by a workload of each suite."""
    return Training(SETTINGS, 0)


@pytest.fixture
def made(training: Training, taught: Labels, monkeypatch: pytest.MonkeyPatch) -> list[Imitation]:
    """Return two that train first weights by the same labels."""
    monkeypatch.setattr("gangplan.systems.topdrl.select.learners.labels", lambda settings, seed: taught)
    return [training.imitation(start(training.network, 0, None)) for _ in range(2)]


def expected(network: Perceptron, taught: Labels) -> float:
    """Return the mean regret of a draw from the network's softmax, decision by decision."""
    with torch.no_grad():
        scores = network(torch.from_numpy(taught.rows)).double().numpy()
    parts = [slice(a, b) for a, b in zip(taught.first[:-1], taught.first[1:], strict=True)]
    chance = [np.exp(scores[x] - scores[x].max()) for x in parts]
    regret = np.minimum(taught.regret, CAP)
    return float(np.mean([(p / p.sum() * regret[x]).sum() for p, x in zip(chance, parts, strict=True)]))


def test_it_learns(taught: Labels, made: list[Imitation]) -> None:
    """The regret that is expected of its choices falls by half, and workloads of validation end sooner."""
    found = made[0]
    network, before = found.network, found.validate()
    assert isinstance(network, Perceptron)
    regret = expected(network, taught)
    for step in range(1, 151):
        found.update(step)
    assert expected(network, taught) < regret / 2
    after = found.validate()
    assert after["score"] < before["score"]
    assert after["score"] == pytest.approx(np.exp(np.mean([np.log(after[name]) for name in JUDGED])))


def test_the_same_curve(made: list[Imitation]) -> None:
    """What was saved after two updates goes on as if it had not been, and so does the average of the weights."""
    first, second = made
    for step in (1, 2):
        first.update(step)
    tensors, plain = first.state()
    second.load({name: x.clone() for name, x in tensors.items()}, plain)
    assert [first.update(step) for step in (3, 4)] == [second.update(step) for step in (3, 4)]
    kept = [x.state()[0] for x in (first, second)]
    assert all((kept[0][name] == kept[1][name]).all() for name in kept[0])
