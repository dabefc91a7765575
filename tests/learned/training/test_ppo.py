"""PPO over masked actions: estimator and loss are what their formulas say, and a bandit is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.policy.settings import PpoSettings
from gangplan.learned.training.ppo import Decisions, Observed, Ppo, advantages, clipped_loss
from gangplan.learned.training.trainer import Trainer


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
    scores = torch.tensor([[0.3, 9.0, -0.2], [1.0, 0.0, 2.0]], requires_grad=True)
    mask = torch.tensor([[True, False, True], [True, True, True]])
    taken = Decisions(mask, torch.tensor([2, 2]), torch.tensor([-1.0, -2.0]), torch.tensor([-1.0, 1.5]))
    loss, shown = clipped_loss(scores, taken, entropy=0.1)
    p, q = (torch.softmax(x.detach(), 0) for x in (scores[0, [0, 2]], scores[1]))
    ratio = torch.stack([p[1] / np.exp(-1.0), q[2] / np.exp(-2.0)])
    gain = torch.minimum(ratio * taken.advantage, ratio.clamp(0.8, 1.2) * taken.advantage).mean()
    entropy = -((p @ p.log()) + (q @ q.log())) / 2
    assert loss.item() == pytest.approx((-gain - 0.1 * entropy).item(), rel=1e-5)
    assert shown["entropy"] == pytest.approx(entropy.item(), rel=1e-5)
    assert shown["clip_fraction"] == 0.5
    loss.backward()
    assert scores.grad is not None and bool(scores.grad.isfinite().all())


class Doors:
    """Bandits of five arms, of which one to four are locked, and each other pays the length of its bar."""

    count = 64

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def look(self) -> Observed:
        """Return other bandits: of a locked arm the bar is longer than of any other."""
        self._open = np.arange(5) == self.rng.integers(0, 5, self.count)[:, None]
        self._open |= self.rng.random((self.count, 5)) < 0.5
        self._bars = np.where(self._open, self.rng.random((self.count, 5)), 2.0).astype(np.float32)
        return Observed(self._bars, self._open, np.ones(self.count, np.bool_))

    def take(self, action: Any) -> Any:
        """Return what the arms pay."""
        assert self._open[np.arange(self.count), action].all()
        return self._bars[np.arange(self.count), action].astype(float)

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

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a score an arm."""
        return rows * self.weight


class Mean(torch.nn.Module):
    """Values all states alike."""

    def __init__(self) -> None:
        super().__init__()
        self.value = torch.nn.Parameter(torch.zeros(1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a value a row."""
        return self.value.expand(len(rows))


class Bandit(Trainer[PpoSettings]):
    """Trains on bandits."""

    def critic(self) -> Mean:
        """Return what values all alike."""
        return Mean()


def test_a_bandit_is_learned() -> None:
    """The best of the arms that the mask allows is learned, from its pay alone."""
    settings = PpoSettings(rl_updates=100, rl_rate=0.05, critic_rate=0.02, steps=5, warm=0, passes=4)
    network = Arms()
    learner = Ppo(Bandit(settings, 0), network, Doors())
    pay = [learner.update(step)["reward"] for step in range(1, 26)]
    assert pay[-1] > pay[0] + 0.1
    assert network.weight.item() > 3
