"""Proximal policy optimisation over actions of which a mask allows some, in many episodes side by side.

Schulman et al., "Proximal Policy Optimization Algorithms", arXiv 1707.06347. Loss and advantages are by TorchRL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray

from ..policy.weights import Tensors
from .actor_critic import ActorCritic, Experience
from .checkpoint import prefixed, under
from .trainer import Trainer

CLIP = 0.2
"""How far a probability ratio counts."""
MINIBATCHES = 6
"""Of a pass over what was decided."""


def advantages(
    reward: Tensor, value: Tensor, done: Tensor, *, gamma: float, lam: float, last: Tensor
) -> tuple[Tensor, Tensor]:
    """Return advantages and value targets by generalised advantage estimation (arXiv 1506.02438), (T, B) each.

    Args:
        reward: of T decisions in B runs side by side, (T, B). Episodes follow one another.
        value: of the states decided in, alike.
        done: whether an episode ended with that decision, bool, alike.
        gamma, lam: the discounts of rewards and of the estimator.
        last: the values of the states after the last decisions, (B,).
    """
    from torchrl.objectives.value.functional import vec_generalized_advantage_estimate

    following = torch.cat([value[1:], last[None]])
    # TorchRL wants (runs, time, 1)
    runs = [x.T.unsqueeze(-1) for x in (value, following, reward, done.bool())]
    with torch.no_grad():
        advantage, target = vec_generalized_advantage_estimate(gamma, lam, *runs)
    return advantage.squeeze(-1).T, target.squeeze(-1).T


class Decisions(NamedTuple):
    """What was decided, N times.

    Attributes:
        mask: which actions were allowed, bool (N, actions), at least one each.
        action: the one taken, int64 (N,).
        log_probability: of that action when it was taken, (N,).
        advantage: of it, (N,).
    """

    mask: Tensor
    action: Tensor
    log_probability: Tensor
    advantage: Tensor


def clipped_loss(scores: Tensor, decisions: Decisions, *, entropy: float) -> tuple[Tensor, dict[str, float]]:
    """Return minus the clipped surrogate and `entropy` times the entropy, and the figures to log.

    Scores are of all actions, (N, actions).
    """
    from tensordict import TensorDict

    known = {
        "logits": _masked(scores, decisions.mask), "action": decisions.action,
        "action_log_prob": decisions.log_probability, "advantage": decisions.advantage.unsqueeze(-1),
    }  # fmt: skip
    found = _torchrl(entropy)(TensorDict(known, [len(scores)]))
    figures = {name: float(found[name].detach()) for name in ("entropy", "clip_fraction", "kl_approx")}
    return found["loss_objective"] + found["loss_entropy"], figures


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the scores, minus infinity where an action is not allowed."""
    return scores.masked_fill(~mask, float("-inf"))


@cache
def _torchrl(entropy: float) -> Any:
    """Return TorchRL's clipped loss of what has its logits already."""
    from tensordict.nn import ProbabilisticTensorDictModule, ProbabilisticTensorDictSequential
    from torchrl.objectives import ClipPPOLoss

    draw = ProbabilisticTensorDictModule(
        ["logits"], ["action"], distribution_class=torch.distributions.Categorical, return_log_prob=True
    )
    actor, given = ProbabilisticTensorDictSequential(draw), {"clip_epsilon": CLIP, "entropy_coeff": entropy}
    return ClipPPOLoss(actor, None, **given, critic_coeff=None, functional=False)


class Observed(NamedTuple):
    """The decisions in B episodes.

    Attributes:
        rows: what the network is shown, of any type, (B, ...).
        mask: which actions are allowed, bool (B, actions), at least one each.
        over: whether an episode ended before this decision, bool (B,).
    """

    rows: NDArray[Any]
    mask: NDArray[np.bool_]
    over: NDArray[np.bool_]


class Episodes(Protocol):
    """B episodes side by side; where one ends, another one begins."""

    count: int
    rng: np.random.Generator

    def look(self) -> Observed:
        """Go to the next decision in every episode, and return what there is to decide."""

    def take(self, action: NDArray[np.int64]) -> FloatArray:
        """Take an allowed action of each episode, and return the rewards, float64 (B,)."""

    def state(self) -> dict[str, FloatArray]:
        """Return all that changes, but the generator."""

    def load(self, state: dict[str, FloatArray]) -> None:
        """Go back to what `state` returned."""


class Ppo(ActorCritic):
    """Train a network by PPO, see `ActorCritic`.

    Args:
        training: its settings are `PpoSettings`; its critic gives a value a state, (B,).
        network: from what it is shown to a score an action, (B, actions).
        episodes: what is played.
        pay: what a reward of 1 counts.
    """

    LEAST = 0.03, 0.1
    CRITIC_PASSES, CRITIC_CLIP = 3, math.inf
    CRITIC_MINIBATCH = 1024

    def __init__(self, training: Trainer[Any], network: nn.Module, episodes: Episodes, *, pay: float = 1.0) -> None:
        super().__init__(training, network)
        self.episodes, self.pay, self._shuffles = episodes, pay, torch.Generator().manual_seed(training.seed)
        self.MINIBATCH = -(-self.settings.steps * episodes.count // MINIBATCHES)
        self.generators = {"random": self.rng, "torch": self._shuffles, "episodes": episodes.rng}

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        tensors, plain = super().state()
        arrays = {name: torch.from_numpy(a.copy()) for name, a in self.episodes.state().items()}
        return tensors | prefixed("episodes", arrays), plain

    def load(self, tensors: Tensors, plain: Any) -> None:
        """Go back to what `state` returned."""
        super().load(tensors, plain)
        self.episodes.load({name: a.numpy() for name, a in under("episodes", tensors).items()})

    def shuffled(self, count: int, size: int) -> Sequence[Tensor]:
        """Return the numbers below `count` in minibatches."""
        parts: Sequence[Tensor] = torch.randperm(count, generator=self._shuffles).split(size)
        return parts

    def play(self, step: int) -> tuple[Tensor, ...]:
        """Return rows, masks, actions, log-probabilities, rewards, and what had ended, (steps, B, ...) each."""
        with torch.no_grad():
            played = [self._decide() for _ in range(self.settings.steps)]
        return tuple(torch.stack(x) for x in zip(*played, strict=True))

    def lesson(self, played: tuple[Tensor, ...]) -> Experience:
        """Return what was decided in all steps but the last, whose values end the estimates."""
        (*known, reward, over), of = played, self.settings
        with torch.no_grad():
            values = [self.critic(x) for x in known[0].flatten(0, 1).split(self.CRITIC_MINIBATCH)]
        value, paid = torch.cat(values).reshape(reward.shape), self.pay * reward
        # an episode that begins at step t + 1 ended with step t
        found = advantages(paid[:-1], value[:-1], over[1:], gamma=of.gamma, lam=of.lam, last=value[-1])
        advantage, target = (x.flatten() for x in found)
        spread = advantage - advantage.mean()
        normal = spread / (spread.square().mean().sqrt() + 1e-8)
        rows, *taken = (x[:-1].flatten(0, 1) for x in known)

        def error(chosen: Tensor) -> Tensor:
            return (self.critic(rows[chosen]) - target[chosen]).square().mean()

        def loss(chosen: Tensor) -> tuple[Tensor, dict[str, float]]:
            part = Decisions(*(x[chosen] for x in (*taken, normal)))
            return clipped_loss(self.network(rows[chosen]), part, entropy=of.entropy)

        return Experience(len(target), error, len(target), loss, {"reward": float(reward.mean())})

    def _decide(self) -> tuple[Tensor, ...]:
        """Decide once in every episode."""
        seen = self.episodes.look()
        rows, mask = torch.from_numpy(seen.rows), torch.from_numpy(seen.mask)
        log = torch.log_softmax(_masked(self.network(rows), mask), dim=1)
        # the largest of log-probabilities with Gumbel noise is a draw from them
        noisy = log.numpy().astype(np.float64)
        noisy[seen.mask] += self.rng.gumbel(size=int(seen.mask.sum()))
        action = noisy.argmax(axis=1)
        reward = torch.from_numpy(self.episodes.take(action)).float()
        taken = torch.from_numpy(action)
        return rows, mask, taken, log.gather(1, taken[:, None])[:, 0], reward, torch.from_numpy(seen.over)
