"""PPO over ragged sets of actions: estimator and loss are what their formulas say, and a bandit is learned."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gangplan.learned.training.ppo import Decisions, PpoLoss, PpoUpdate, advantages
from gangplan.learned.training.segments import segment_log_softmax


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
    alone, _ = advantages(*(x[:, 0] for x in arrays), gamma=0.9, lam=0.8, last=torch.tensor(last[0]))
    assert np.allclose(alone, expected[:, 0])


def test_an_unfinished_run_needs_its_last_value() -> None:
    """Taking the value of a state that is not the end for zero would be a mistake nobody sees."""
    with pytest.raises(ValueError, match="last"):
        advantages(torch.ones(3), torch.ones(3), torch.tensor([True, False, False]), gamma=0.9, lam=0.8)


def test_loss() -> None:
    """The loss is the clipped surrogate, the entropy over allowed actions and the error of the values."""
    scores = torch.tensor([0.3, -0.2, 1.0, 0.0, 2.0], requires_grad=True)
    index, value = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0.5, -1.0], requires_grad=True)
    taken = Decisions(
        torch.tensor([1, 2]), torch.tensor([-1.0, -2.0]), torch.tensor([-1.0, 1.5]), torch.tensor([0.0, 1.0])
    )
    loss, shown = PpoLoss(clip=0.2, entropy=0.1, critic=0.5)(scores, index, value, taken)
    p, q = (torch.softmax(x.detach(), 0) for x in (scores[:2], scores[2:]))
    ratio = torch.stack([p[1] / np.exp(-1.0), q[2] / np.exp(-2.0)])
    gain = torch.minimum(ratio * taken.advantage, ratio.clamp(0.8, 1.2) * taken.advantage).mean()
    entropy = -((p @ p.log()) + (q @ q.log())) / 2
    error = (value.detach() - taken.target).square().mean()
    assert loss.item() == pytest.approx((-gain - 0.1 * entropy + 0.5 * error).item(), rel=1e-5)
    assert shown["entropy"] == pytest.approx(entropy.item(), rel=1e-5)
    loss.backward()
    assert scores.grad is not None and value.grad is not None
    assert bool(scores.grad.isfinite().all()) and value.grad.tolist() == pytest.approx([0.25, -1.0])


def test_a_bandit_is_learned() -> None:
    """With two to five arms a state, of which the longest bar pays, the policy comes to take it, from its pay alone."""
    rng, generator = np.random.default_rng(1), torch.Generator().manual_seed(1)
    weight = torch.nn.Parameter(torch.zeros(2))
    update = PpoUpdate(torch.optim.Adam([weight], lr=0.05), PpoLoss(), generator, minibatch=64)
    pay = []
    for _ in range(25):
        size = rng.integers(2, 6, 128)
        index = torch.tensor(np.repeat(np.arange(128), size))
        bar = torch.tensor(rng.random(len(index)), dtype=torch.float32)
        first = torch.tensor(np.cumsum(size) - size)

        def evaluate(chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            parts = [torch.nonzero(index == i).squeeze(1) for i in chosen]  # noqa: B023
            which = torch.repeat_interleave(torch.arange(len(chosen)), torch.tensor([len(x) for x in parts]))
            return weight[0] * bar[torch.cat(parts)], which, weight[1].expand(len(chosen))  # noqa: B023

        with torch.no_grad():
            log_p = segment_log_softmax(weight[0] * bar, index, 128)
        noise = torch.tensor(rng.gumbel(size=len(index)))
        taken = torch.stack([x.argmax() for x in (log_p + noise).split(size.tolist())])
        reward = bar[first + taken]
        pay.append(reward.mean().item())
        update(evaluate, Decisions(taken, log_p[first + taken], reward - weight[1].detach(), reward))
    assert pay[-1] > pay[0] + 0.15
    assert weight[0].item() > 3
