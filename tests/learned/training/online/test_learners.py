"""Imitation of the teacher: regrets are counted, jobs are done sooner, and curves go on."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.graph.compiled import score
from gangplan.learned.online.episodes import BOUND
from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.schema import SCHEMA
from gangplan.learned.online.settings import GnnSettings
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.network import GraphNetwork
from gangplan.learned.training.online import labels
from gangplan.learned.training.online.labels import DecisionLabel, label_episode
from gangplan.learned.training.online.learners import CAP, GnnTraining, Judged, Lessons
from gangplan.learned.training.trainer import start
from gangplan.simulator.gangs.mixes import TRAINING
from gangplan.simulator.gangs.traffic import TRAIN

from ...conftest import drawn, short

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = GnnSettings(
    width=8, rounds=2, labels=400, tries=6, futures=6, ahead=12, updates=150, rate=1e-2, minibatch=64,
    validation_seeds=1,
)  # fmt: skip


BUSY, EXACT = range(50), 4
"""Episodes; of those that are labelled exactly, how many."""


def labelled(numbers: range) -> list[DecisionLabel]:
    """Return labels of the decisions of some episodes."""
    net = drawn(0, 0.0).net
    return [x for n in numbers for x in label_episode(short(n, 360), SETTINGS, net, n)]


@pytest.fixture(scope="module")
def taught() -> list[DecisionLabel]:
    """Return what networks are taught."""
    return labelled(BUSY[:36])


@pytest.fixture(scope="module")
def training() -> GnnTraining:
    """Return what judges by a workload of each kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gangplan.learned.training.online.learners.episode", short)
        return GnnTraining(SETTINGS, 0)


@pytest.fixture
def made(training: GnnTraining, taught: list[DecisionLabel], monkeypatch: pytest.MonkeyPatch) -> list[Imitation]:
    """Return two that train first weights by the same labels."""
    monkeypatch.setattr("gangplan.learned.training.online.learners.make_labels", lambda *x, **y: taught)
    return [training.rollouts(start(training.network, 0, None)) for _ in range(2)]


def rated(network: GraphNetwork, label: DecisionLabel) -> np.ndarray:
    """Return the scores of those tried."""
    scores = BOUND * np.tanh(score(label.graph, network.compiled())[:, 0].astype(float) / BOUND)
    scores += label.graph.x[: label.graph.kind[1], BY_RULE]
    return scores[label.tried]


def lost(network: GraphNetwork, label: DecisionLabel) -> tuple[float, float]:
    """Return the regret beyond the rule's that is expected of a draw from the softmax, and how far that is from it."""
    rule = label.graph.x[label.tried, BY_RULE].astype(float)
    own, usual = (SETTINGS.sharp * x - np.logaddexp.reduce(SETTINGS.sharp * x) for x in (rated(network, label), rule))
    beyond = label.regret - label.regret[np.argmax(rule)]
    beyond = np.sign(beyond) * np.maximum(abs(beyond) - SETTINGS.noise, 0)
    return float(np.exp(own) @ np.minimum(beyond, CAP)), float(np.exp(usual) @ (usual - own))


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_loss_is_the_regret_that_is_expected(taught: list[DecisionLabel], spread: float) -> None:
    """Of some decisions, one of them twice, the mean; the anchor holds at the rule, and at nothing else."""
    torch.manual_seed(0)
    network = GraphNetwork(SCHEMA, 8, 2, ranged=True)
    for x in network.parameters():
        torch.nn.init.normal_(x, std=spread)
    lessons, chosen = Lessons(taught), np.array([3, 0, 7, 7, 30])
    assert lessons.count == len(taught) > 200
    regret, apart = np.mean([lost(network, taught[i]) for i in chosen], axis=0)
    plain, more = (float(lessons.loss(network, chosen, GnnSettings(anchor=weight)).detach()) for weight in (0.0, 1.0))
    assert plain == pytest.approx(regret, rel=1e-3, abs=1e-5)
    assert more - plain == pytest.approx(apart, rel=1e-3, abs=1e-5) and (apart > 0.01) == (spread > 0)


def test_the_untrained_network_is_judged_to_be_the_rule(training: GnnTraining) -> None:
    """Its mean JCT over that of the rule is 1, of each kind, and so is the score; another network's is not."""
    figures = training.validate(training.network())
    assert figures == {"score": pytest.approx(1.0)} | {"powers-48": pytest.approx(1.0)}
    torch.manual_seed(0)
    network = training.network()
    torch.nn.init.normal_(network.last.weight, std=5.0)
    worse = training.validate(network)
    assert abs(worse["score"] - 1) > 1e-3
    assert worse["score"] == pytest.approx(worse["powers-48"])
    assert Judged(1, short).judge(network) == worse


def test_it_learns(made: list[Imitation]) -> None:
    """The regret of its choices falls, in decisions that it never saw."""
    learner, others = made[0], labelled(BUSY[36:])
    network: Any = learner.networks["policy"]  # the average of the weights
    mean = [float(np.mean([x.regret[np.argmax(rated(network, x))] for x in others]))]
    for step in range(1, SETTINGS.updates + 1):
        learner.update(step)
    mean.append(float(np.mean([x.regret[np.argmax(rated(network, x))] for x in others])))
    assert mean[1] < 0.97 * mean[0]


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


def test_what_cp_sat_proved_is_learned(training: GnnTraining, monkeypatch: pytest.MonkeyPatch) -> None:
    """By exact labels a network's choices come to lose half as much; by the same ones, shuffled, they do not."""
    monkeypatch.setattr(labels, "SOLVED", 2)
    monkeypatch.setattr(labels, "KEPT", 0.3)
    settings, rng = replace(SETTINGS, exact=1.0, tries=4, ahead=6), np.random.default_rng(0)
    made = [
        x
        for n in range(EXACT)
        for x in islice(label_episode(TRAIN[2].episode(TRAINING + n, 60), settings, drawn(0, 0.0).net, n), 12)
        if x.exact and x.regret.max() > 0
    ]
    regret = []
    for taught in ([], made, [replace(x, regret=rng.permutation(x.regret)) for x in made]):
        network: Any = start(training.network, 0, None)
        torch.nn.init.ones_(network.last.weight)
        if taught:
            learner = training._imitation(network, Lessons(taught), 1e-2, 60)
            for step in range(1, 61):
                learner.update(step)
        regret.append(np.mean([x.regret[np.argmax(rated(network, x))] for x in made]))
    before, learned, shuffled = regret
    assert len(made) > 30 and learned < 0.5 * min(before, shuffled)
