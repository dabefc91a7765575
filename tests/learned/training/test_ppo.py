"""PPO over ragged sets of actions: estimator and loss are what their formulas say, and a bandit is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.policy.settings import PpoSettings
from gangplan.learned.training.ppo import Decisions, Observed, Ppo, advantages, clipped_loss


def test_advantages() -> None:
    """Advantages are the discounted sums of the temporal differences, which stop where an episode does."""
    rng = np.random.default_rng(0)
    reward, value, last = rng.normal(size=(7, 2)), rng.normal(size=(7, 2)), rng.normal(size=2)
    done = np.zeros((7, 2), dtype=bool)
    done[2, 0] = done[5, 1] = True
    expected, following, ahead = np.zeros((7, 2)), last, np.zeros(2)
    for t in reversed(range(7)):
        ahead = reward[t] + 0.9 * following * ~done[t] - value[t] + 0.9 * 0.8 * ahead * ~done[t]
        expected[t], following = ahead, value[t]
    arrays = [torch.tensor(x) for x in (reward, value, done)]
    found, target = advantages(*arrays, gamma=0.9, lam=0.8, last=torch.tensor(last))
    assert np.allclose(found, expected) and np.allclose(target, expected + value)


def test_loss() -> None:
    """The loss is the clipped surrogate and the entropy over allowed actions."""
    scores = torch.tensor([0.3, -0.2, 1.0, 0.0, 2.0], requires_grad=True)
    index = torch.tensor([0, 0, 1, 1, 1])
    taken = Decisions(
        torch.tensor([1, 2]), torch.tensor([-1.0, -2.0]), torch.tensor([-1.0, 1.5]), torch.tensor([0.0, 1.0])
    )
    loss, shown = clipped_loss(scores, index, taken, entropy=0.1)
    p, q = (torch.softmax(x.detach(), 0) for x in (scores[:2], scores[2:]))
    ratio = torch.stack([p[1] / np.exp(-1.0), q[2] / np.exp(-2.0)])
    gain = torch.minimum(ratio * taken.advantage, ratio.clamp(0.8, 1.2) * taken.advantage).mean()
    entropy = -((p @ p.log()) + (q @ q.log())) / 2
    assert loss.item() == pytest.approx((-gain - 0.1 * entropy).item(), rel=1e-5)
    assert shown["entropy"] == pytest.approx(entropy.item(), rel=1e-5)
    assert shown["clip_fraction"] == 0.5
    loss.backward()
    assert scores.grad is not None and bool(scores.grad.isfinite().all())


class Bars:
    """Bandits of two to five arms, of which each pays the length of its bar."""

    count = 64

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def look(self) -> Observed:
        """Return other bandits."""
        size = self.rng.integers(2, 6, self.count)
        self._first = np.concatenate([[0], np.cumsum(size)])
        self._bar = self.rng.random((self._first[-1], 1)).astype(np.float32)
        return Observed(self._bar, self._first, np.zeros(self.count, np.int64), np.ones(self.count, np.bool_))

    def act(self, place: Any) -> Any:
        """Return what the arms pay."""
        return self._bar[self._first[:-1] + place, 0].astype(float)

    def state(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Do nothing."""


class Arms(torch.nn.Module):
    """Scores arms by their bars."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, rows: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """Return a score a row."""
        return rows[:, 0] * self.weight + 0 * vectors[:, 0]


class Mean(torch.nn.Module):
    """Values all states alike."""

    def __init__(self) -> None:
        super().__init__()
        self.value = torch.nn.Parameter(torch.zeros(1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a value a row."""
        return self.value.expand(len(rows))


def test_a_bandit_is_learned() -> None:
    """With two to five arms a state, of which the longest bar pays, the policy comes to take it, from its pay alone."""
    settings = PpoSettings(rl_updates=100, rl_rate=0.05, critic_rate=0.02, steps=5, warm=0, passes=4)
    network = Arms()
    learner = Ppo(network, Mean(), [Bars()], lambda: [torch.zeros(1, 1)], lambda x: {"score": 0.0}, settings, 0)
    pay = [learner.update(step)["reward"] for step in range(1, 26)]
    assert pay[-1] > pay[0] + 0.15
    assert network.weight.item() > 3


class Doors(Bars):
    """Bandits of five arms, of which one to four are locked."""

    def look(self) -> Observed:
        """Return other bandits: of a locked arm the bar is longer than of any other."""
        self._open = np.arange(5) == self.rng.integers(0, 5, self.count)[:, None]
        self._open |= self.rng.random((self.count, 5)) < 0.5
        self._bars = np.where(self._open, self.rng.random((self.count, 5)), 2.0).astype(np.float32)
        none = np.zeros(self.count, np.int64)
        return Observed(self._bars, np.arange(self.count + 1), none, np.ones(self.count, np.bool_), self._open)

    def act(self, place: Any) -> Any:
        """Return what the arms pay."""
        arm = np.argsort(~self._open, axis=1, kind="stable")[np.arange(self.count), place]
        assert self._open[np.arange(self.count), arm].all()
        return self._bars[np.arange(self.count), arm].astype(float)


class Fixed(Arms):
    """Scores all arms of a state in its one row."""

    def forward(self, rows: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """Return a score an arm."""
        return rows * self.weight


def test_a_masked_bandit_is_learned() -> None:
    """Where all states have the same actions, the best of those that the mask allows is learned, from its pay alone."""
    settings = PpoSettings(rl_updates=100, rl_rate=0.05, critic_rate=0.02, steps=5, warm=0, passes=4)
    network = Fixed()
    learner = Ppo(network, Mean(), [Doors()], None, lambda x: {"score": 0.0}, settings, 0)
    pay = [learner.update(step)["reward"] for step in range(1, 26)]
    assert pay[-1] > pay[0] + 0.1
    assert network.weight.item() > 3
