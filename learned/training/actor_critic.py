"""An actor and a critic: play, fit the critic to what was seen, and once it is warm improve the policy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .learner import NetworkLearner, clipped_step
from .trainer import Trainer, start


class Experience(NamedTuple):
    """What was played, to be learned from.

    Attributes:
        states: number of states that the critic is fitted to.
        error: from some of these, by their numbers, to the loss of the critic.
        decisions: number of decisions that the policy learns from.
        loss: from some of these, by their numbers, to the loss of the policy and figures to log.
        figures: to log.
    """

    states: int
    error: Callable[[Tensor], Tensor]
    decisions: int
    loss: Callable[[Tensor], tuple[Tensor, dict[str, float]]]
    figures: dict[str, float]


class ActorCritic(NetworkLearner):
    """Train a network by what it plays, see `gangplan.learned.training.Learner`; `play` and `lesson` are left open.

    Args:
        training: has the critic, whose optimizer is its own, for its gradients are large; what validates; the seed of
            what is drawn; and of settings `rl_updates`, `rl_rate`, `critic_rate`, `warm`, updates that train the critic
            only, and perhaps `passes` over the decisions of a lesson.
        network: scores actions.

    Attributes:
        LEAST: what the learning rates of policy and critic end at, as shares of the first.
        CRITIC_PASSES, CRITIC_CLIP: over the states of a lesson; norm that the critic's gradients are scaled down to.
        CRITIC_MINIBATCH, MINIBATCH: states and decisions of a step.
    """

    LEAST = 0.05, 0.05
    CRITIC_PASSES, CRITIC_CLIP = 2, 1.0
    CRITIC_MINIBATCH, MINIBATCH = 512, 2048

    def __init__(self, training: Trainer[Any], network: nn.Module) -> None:
        self.training, self.settings, self.network = training, training.settings, network
        self.critic = start(training.critic, training.seed + 1, None)
        self.rng = np.random.default_rng(training.seed)
        self.networks = {"policy": network, "critic": self.critic}
        self._rates = self.settings.rl_rate, self.settings.critic_rate
        parts = zip(self.networks.values(), self._rates, strict=True)
        self._steps = [torch.optim.Adam(x.parameters(), rate) for x, rate in parts]
        self.optimizers = dict(zip(("optimizer", "critic_optimizer"), self._steps, strict=True))
        self.generators = {"random": self.rng}

    @abstractmethod
    def play(self, step: int) -> Any:
        """Return what was played for update number `step`, from 1 on."""

    @abstractmethod
    def lesson(self, played: Any) -> Experience:
        """Return what there is to learn from what was played."""

    def update(self, step: int) -> dict[str, float]:
        """Play, and learn from it."""
        self.slow_down(step)
        return self.learn(self.play(step), step)

    def validate(self) -> dict[str, float]:
        """Return figures on the validation seeds."""
        return self.training.validate(self.network)

    def slow_down(self, step: int) -> None:
        """Set the learning rates of an update."""
        for optimizer, rate, least in zip(self._steps, self._rates, self.LEAST, strict=True):
            optimizer.param_groups[0]["lr"] = rate * max(1 - (step - 1) / self.settings.rl_updates, least)

    def shuffled(self, count: int, size: int) -> Sequence[Tensor]:
        """Return the numbers below `count` in minibatches."""
        parts: Sequence[Tensor] = torch.from_numpy(self.rng.permutation(count)).split(size)
        return parts

    def learn(self, played: Any, step: int) -> dict[str, float]:
        """Fit the critic and improve the policy; return the figures of the last pass of each, averaged."""
        lesson, error = self.lesson(played), 0.0
        for _ in range(self.CRITIC_PASSES):
            error = 0.0
            for chosen in self.shuffled(lesson.states, self.CRITIC_MINIBATCH):
                loss = lesson.error(chosen)
                clipped_step(self._steps[1], loss, self.critic, self.CRITIC_CLIP)
                error += float(loss.detach()) * len(chosen) / lesson.states
        figures, shown = lesson.figures | {"critic": error}, list[dict[str, float]]()
        for _ in range(getattr(self.settings, "passes", 1) if step > self.settings.warm else 0):
            parts = map(lesson.loss, self.shuffled(lesson.decisions, self.MINIBATCH))
            shown = [told | {"gradient": clipped_step(self._steps[0], loss, self.network)} for loss, told in parts]
        return figures | {name: sum(x[name] for x in shown) / len(shown) for name in (shown[0] if shown else ())}
