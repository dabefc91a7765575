"""What trains the network: imitation of a rule, then an actor and a critic with experience replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray
from gangplan.learned.interference.ensemble import Model
from gangplan.learned.training.checkpoint import Tensors, prefixed, under
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.learner import NetworkLearner, clipped_step

from ..interference.cases import TRAINING, VALIDATION
from .episodes import Seen, log_probabilities, play
from .rewards import environment, make_log
from .settings import Settings
from .teacher import labelled

MINIBATCH, CRITIC_MINIBATCH, CRITIC_PASSES = 2048, 512, 2
LEAST = 0.05
"""What the learning rates end at, as a share of the first."""


def validate(network: nn.Module, settings: Settings, model: Model | None) -> dict[str, float]:
    """Return the mean JCT in minutes as ``score``, by the best action, in cases of twice the jobs of an episode."""
    seeds = range(VALIDATION, VALIDATION + settings.validation_seeds)
    envs = [environment(settings, model, seed, 2 * settings.jobs) for seed in seeds]
    play(envs, settings, network, model, None)
    return {"score": float(np.mean([(env.finish - env.case.jobs.submit).mean() / 60 for env in envs]))}


def imitation(network: nn.Module, settings: Settings, model: Model | None, seed: int) -> Imitation:
    """Return what trains a network on the teacher's decisions."""
    rows, mask, action = labelled(settings, model, seed)

    def draw(rng: np.random.Generator) -> Tensor:
        chosen = torch.from_numpy(rng.integers(0, len(rows), settings.minibatch))
        return -log_probabilities(network, rows[chosen], mask[chosen]).gather(1, action[chosen, None]).mean()

    rate, updates = settings.imitation_rate, settings.imitation_updates
    return Imitation(network, draw, lambda x: validate(x, settings, model), rate=rate, updates=updates, seed=seed)


def corrected(
    value: FloatArray, reward: FloatArray, discount: FloatArray, ratio: FloatArray, lam: float
) -> tuple[FloatArray, FloatArray]:
    """Return targets of the values, and advantages, of decisions taken by another policy, (N,) each.

    They are those of V-trace (Espeholt et al., arXiv 1802.01561) with ratios cut off at 1. All decisions of an interval
    share its reward: nothing is discounted between them, and `lam` counts once an interval.

    Args:
        value: by the critic, of N decisions, episode after episode.
        reward, discount: see `Seen`.
        ratio: probability of each action by the policy over that by the one that took it.
        lam: how much later values count against the next.
    """
    cut = np.minimum(ratio, 1.0)
    target, advantage = np.zeros(len(value)), np.zeros(len(value))
    later = later_value = 0.0
    for i in range(len(value) - 1, -1, -1):
        trace = discount[i] * cut[i] * (1.0 if discount[i] == 1.0 else lam)
        error = cut[i] * (reward[i] + discount[i] * later_value - value[i])
        advantage[i] = reward[i] + discount[i] * later - value[i]
        target[i] = value[i] + error + trace * (later - later_value)
        later, later_value = target[i], value[i]
    return target, advantage


class ActorCritic(NetworkLearner):
    """Trains a network by episodes and by earlier ones again, see `gangplan.learned.training.Learner`.

    Args:
        network: scores actions.
        critic: from rows to values.
        settings: of the training.
        model: predicts the rewards; None: the true cluster pays, in no more intervals than made the log.
        seed: of the cases and of what is drawn.
    """

    def __init__(
        self, network: nn.Module, critic: nn.Module, settings: Settings, model: Model | None, seed: int
    ) -> None:
        self.network, self.critic, self.settings, self.model = network, critic, settings, model
        self._seed, self._kept = seed, list[Seen]()
        self._left = len(make_log(settings, seed).now) if model is None else -1
        self.rng = np.random.default_rng(seed)
        self._policy = torch.optim.Adam(network.parameters(), settings.rl_rate)
        self._value = torch.optim.Adam(critic.parameters(), settings.critic_rate)
        self.networks = {"policy": network, "critic": critic}
        self.optimizers = {"optimizer": self._policy, "critic_optimizer": self._value}
        self.generators = {"random": self.rng}

    def update(self, step: int) -> dict[str, float]:
        """Play episodes, and learn from them and from some that were kept."""
        settings = self.settings
        share = max(1 - (step - 1) / settings.rl_updates, LEAST)
        self._policy.param_groups[0]["lr"] = settings.rl_rate * share
        self._value.param_groups[0]["lr"] = settings.critic_rate * share
        seen, figures = self._play(step), dict[str, float]()
        again = self.rng.permutation(len(self._kept))[: settings.replays]
        for old in [self._kept[i] for i in again.tolist()]:
            figures |= {f"replayed_{name}": x for name, x in self._learn(old, step).items()}
        if seen is not None:
            figures |= self._learn(seen, step) | {"decisions": float(len(seen.action))}
            self._kept = [*self._kept, seen][-settings.replay :] if settings.replay else []
        return figures

    def validate(self) -> dict[str, float]:
        """Return figures on the validation seeds."""
        return validate(self.network, self.settings, self.model)

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        found, plain = super().state()
        for i, seen in enumerate(self._kept):
            found |= prefixed(f"kept{i}", seen._asdict())
        return found, plain | {"kept": len(self._kept), "left": self._left}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        super().load(tensors, plain)
        self._kept = [Seen(**under(f"kept{i}", tensors)) for i in range(plain["kept"])]
        self._left = plain["left"]

    def _play(self, step: int) -> Seen | None:
        """Return what was seen in new episodes; in those of the true cluster, as many as are left."""
        settings, first = self.settings, TRAINING + 1_000_000 + 500_000 * self._seed + (step - 1) * self.settings.lanes
        seeds = range(first, first + settings.lanes)
        if self.model is not None:
            envs = [environment(settings, self.model, seed, settings.jobs) for seed in seeds]
            return play(envs, settings, self.network, self.model, self.rng)
        parts = []
        for seed in seeds if self._left > 0 else ():
            seen = play([environment(settings, None, seed, settings.jobs)], settings, self.network, None, self.rng)
            assert seen is not None
            self._left -= int((seen.reward > 0).sum())
            if self._left < 0:  # an episode that goes beyond what is left is not learned from
                break
            parts.append(seen)
        return Seen(*(torch.cat(x) for x in zip(*parts, strict=True))) if parts else None

    def _learn(self, seen: Seen, step: int) -> dict[str, float]:
        """Pass over decisions once, and return figures."""
        pieces = list(zip(*(x.split(MINIBATCH) for x in seen), strict=True))
        with torch.no_grad():
            value = torch.cat([self.critic(part[0].float())[:, 0] for part in pieces])
            logs = torch.cat([log_probabilities(self.network, part[0], part[1]) for part in pieces])
        ratio = (logs.gather(1, seen.action[:, None])[:, 0] - seen.behaviour).exp()
        given = [x.double().numpy() for x in (value, seen.reward, seen.discount, ratio)]
        found = corrected(given[0], given[1], given[2], given[3], self.settings.lam)
        target, advantage = (torch.from_numpy(x).float() for x in found)
        choice = seen.mask.sum(dim=1) > 1
        spread = advantage - advantage[choice].mean()
        advantage = spread / (spread[choice].square().mean().sqrt() + 1e-8)
        error = 0.0
        for _ in range(CRITIC_PASSES):
            for chosen in torch.from_numpy(self.rng.permutation(len(target))).split(CRITIC_MINIBATCH):
                loss = (self.critic(seen.rows[chosen].float())[:, 0] - target[chosen]).square().mean()
                error = float(loss.detach())
                clipped_step(self._value, loss, self.critic)
        shown = {"critic": error, "paid": float(seen.reward.sum() / (seen.discount != 1).sum())}
        if step > self.settings.warm:
            free = torch.from_numpy(self.rng.permutation(choice.nonzero()[:, 0].numpy()))
            each = [self._improve(seen, chosen, advantage) for chosen in free.split(MINIBATCH)]
            shown |= {name: float(np.mean([x[name] for x in each])) for name in each[0]}
        return shown

    def _improve(self, seen: Seen, chosen: Tensor, advantage: Tensor) -> dict[str, float]:
        """Make a step by the gradient of the policy, each action by its ratio up to 1, and of the entropy."""
        logs = log_probabilities(self.network, seen.rows[chosen], seen.mask[chosen])
        taken = logs.gather(1, seen.action[chosen, None])[:, 0]
        ratio = (taken.detach() - seen.behaviour[chosen]).exp().clamp(max=1.0)
        allowed = logs.masked_fill(
            ~seen.mask[chosen], 0.0
        )  # before the product: 0 times minus infinity has no gradient
        entropy = -(logs.exp() * allowed).sum(dim=1).mean()
        loss = -(ratio * advantage[chosen] * taken).mean() - self.settings.entropy * entropy
        return {"entropy": float(entropy.detach()), "gradient": clipped_step(self._policy, loss, self.network)}
