"""PPO of the graph policy: what it learns from is what was played, and it learns what pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.graph.network import GraphNetwork
from gangplan.learned.online.candidates import WAIT
from gangplan.learned.online.graph import SCHEMA
from gangplan.learned.online.recipe import GnnSettings
from gangplan.learned.online.reinforced import Choice, Choices, Reinforced, corrected, play_choices

from .conftest import short

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = GnnSettings(
    width=8, rounds=2, minibatch=32, ahead=6, ppo_updates=8, ppo_rate=1e-2, ppo_episodes=4, ppo_depth=5
)  # fmt: skip


def network(spread: float) -> GraphNetwork:
    """Return a network that is the rule, or one whose every number is drawn."""
    torch.manual_seed(0)
    made = GraphNetwork(SCHEMA, SETTINGS.width, SETTINGS.rounds, ranged=True)
    for x in made.parameters() if spread else ():
        torch.nn.init.normal_(x, std=spread)
    return made


def learner(of: GraphNetwork) -> Reinforced:
    """Return what trains it; nobody judges."""
    return Reinforced(of, lambda x: {}, SETTINGS, short, rate=SETTINGS.ppo_rate, updates=8, seed=0, average=0.9)


def played(of: GraphNetwork, numbers: range = range(8)) -> list[Choice]:
    """Return the choices in some episodes."""
    return [x for n in numbers for x in play_choices(short(n, 150), of.compiled(), SETTINGS, n)]


def log_probabilities(of: GraphNetwork, choice: Choice) -> np.ndarray:
    """Return those of all candidates that may be taken."""
    choices = Choices([choice])
    scores = corrected(of, choices.packed.batch(np.array([0]))).detach().double().numpy()
    scores[0] -= 1e9 * choice.barred
    return np.asarray(scores - np.logaddexp.reduce(scores))


def test_what_is_kept_is_what_the_network_said() -> None:
    """Log-probabilities are those of the kept graphs, and the loss, before any step, minus the mean advantage."""
    of = network(0.3)
    made = played(of)
    assert len(made) > 50 and {len(x.action) > 1 for x in made} == {True, False}
    assert {x.barred for x in made} == {True, False}
    for x in made:
        log = log_probabilities(of, x)
        assert np.allclose(log[x.action], x.log_probability, atol=1e-4)
        assert np.argmax(log) not in x.action and x.graph.kind[1] == len(log)
    choices, chosen = Choices(made), np.array([3, 0, 7, 7, 30])
    with torch.no_grad():
        loss, figures = choices.loss(of, chosen)
    every = np.concatenate([x.advantage for x in made])
    mean = np.concatenate([made[i].advantage for i in chosen]).mean() / np.sqrt((every**2).mean())
    assert abs(every).max() < 4 and loss.item() == pytest.approx(-mean, abs=1e-4)
    assert figures["kl_approx"] == pytest.approx(0, abs=1e-4) and figures["clip_fraction"] == 0


def test_the_same_seed_has_the_same_choices() -> None:
    """Of one episode and network; and the network's best one, drawn, is no choice."""
    first, second = (played(network(0.3), range(2)) for _ in range(2))
    assert len(first) == len(second) > 10
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a.graph, b.graph, strict=True))
        assert all(np.array_equal(getattr(a, x), getattr(b, x)) for x in ("action", "log_probability", "advantage"))


def test_the_same_curve() -> None:
    """What was saved after an update goes on as if it had not been, with the average of the weights."""
    first, second = (learner(network(0.3)) for _ in range(2))
    first.update(1)
    tensors, plain = first.state()
    tensors = {name: x.clone() for name, x in tensors.items()}
    second.load(tensors, plain)
    figures = [x.update(2) for x in (first, second)]
    assert figures[0] == figures[1] and figures[0]["choices"] > 10
    kept = [x.state()[0] for x in (first, second)]
    assert all(torch.equal(kept[0][name], kept[1][name]) for name in kept[0])
    assert not torch.equal(kept[0]["policy.last.weight"], tensors["policy.last.weight"])


def test_what_pays_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule waits seldom; where to wait is all that pays, the network comes to wait."""

    def rigged(*given: Any) -> None:
        scratch, tried, value = given[3], given[8], given[10]
        value[:, 0] = -1000.0 * (scratch.place[tried] == WAIT)

    monkeypatch.setattr("gangplan.learned.online.reinforced.foresee", rigged)
    of = network(0.0)
    free = [x for x in played(of) if not x.barred]
    before = np.mean([np.exp(log_probabilities(of, x)[0]) for x in free])
    trained = learner(of)
    for step in range(1, SETTINGS.ppo_updates + 1):
        trained.update(step)
    after = np.mean([np.exp(log_probabilities(of, x)[0]) for x in free])
    assert len(free) > 20 and before < 0.4 and after > before + 0.2
