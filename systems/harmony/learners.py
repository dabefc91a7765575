"""What trains the network: imitation of a rule, then an actor and a critic with experience replay."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray
from gangplan.learned.policy.weights import Tensors
from gangplan.learned.training.actor_critic import ActorCritic, Experience
from gangplan.learned.training.checkpoint import prefixed, under
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.interference.models import SpeedPredictor
from gangplan.learned.training.trainer import Trainer

from ..interference.case import InterferenceCase
from ..interference.cases import TRAINING, VALIDATION
from .episodes import Predicted, Seen, end_intervals, environment, make_log, play, reward_model
from .observe import Lane
from .policy import FeedForward, log_probabilities, policy_network
from .recipe import HarmonySettings

Label = tuple[np.ndarray, np.ndarray, int]
"""What was seen, which actions were allowed, and which one was taken."""


class Watched(Predicted):
    """An environment that remembers what was seen before each task was placed, and which action that was."""

    def __init__(self, case: InterferenceCase, settings: HarmonySettings) -> None:
        super().__init__(case)
        self.kept, self._begun, self._lane = list[Label](), 0, Lane(self, settings)

    def place(self, job: int, kind: int, server: int) -> None:
        """Place a task; one of a job that is not in sight is not remembered."""
        lane = self._lane
        if self.current < 0:
            self._begun = len(self.kept)
        lane.look()
        if job in lane.sight:
            shape = (len(lane.mask) // (2 * len(self.free)), 2, len(self.free))
            action = np.ravel_multi_index((lane.sight.index(job), kind, server), shape)
            self.kept.append((lane.seen.astype(np.float16), lane.mask, int(action)))
        super().place(job, kind, server)

    def take_back(self) -> None:
        """Forget the job that is begun, too."""
        if self.current >= 0:
            del self.kept[self._begun :]
        super().take_back()

    def end_interval(self) -> float:
        """End it, and remember that, where it could be seen to be allowed and was no must."""
        self._lane.look()
        mask = self._lane.mask
        if mask[-1] and mask.sum() > 1:
            self.kept.append((self._lane.seen.astype(np.float16), mask, len(mask) - 1))
        return super().end_interval()


def labelled(settings: HarmonySettings, model: SpeedPredictor | None, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows, masks and actions of the teacher in episodes, as many as asked for: see `Seen`."""
    rule, kept, at = settings.rule(settings.teacher), list[Label](), 0
    while len(kept) < settings.labels:
        case = environment(settings, model, TRAINING + 500_000 + 10_000 * seed + at, settings.jobs).case
        env = Watched(case, settings)
        while not env.done:
            rule.place(env)
            end_intervals([env], model)
        kept, at = kept + env.kept, at + 1
    rows, masks, actions = (torch.from_numpy(np.array(x)) for x in zip(*kept[: settings.labels], strict=True))
    return rows, masks, actions


class HarmonyTraining(Trainer[HarmonySettings]):
    """Imitation of a rule and actor-critic, both paid by one reward model."""

    make, values = policy_network, partial(FeedForward, outputs=1)

    def __init__(self, settings: HarmonySettings, seed: int) -> None:
        super().__init__(settings, seed)
        self.model = reward_model(settings, seed)

    def validate(self, network: nn.Module) -> dict[str, float]:
        """Return the mean JCT in minutes as ``score``, by the best action, in cases of twice the jobs of an episode."""
        of = self.settings
        seeds = range(VALIDATION, VALIDATION + of.validation_seeds)
        envs = [environment(of, self.model, seed, 2 * of.jobs) for seed in seeds]
        play(envs, of, network, self.model, None)
        return {"score": float(np.mean([(env.finish - env.case.jobs.submit).mean() / 60 for env in envs]))}

    def imitation(self, network: nn.Module) -> Imitation:
        """Return what trains a network on the teacher's decisions."""
        of, (rows, mask, action) = self.settings, labelled(self.settings, self.model, self.seed)

        def draw(rng: np.random.Generator) -> Tensor:
            chosen = torch.from_numpy(rng.integers(0, len(rows), of.minibatch))
            return -log_probabilities(network, rows[chosen], mask[chosen]).gather(1, action[chosen, None]).mean()

        rate, updates = of.imitation_rate, of.imitation_updates
        return Imitation(network, draw, self.validate, rate=rate, updates=updates, seed=self.seed)

    def rl(self, network: nn.Module) -> Replaying:
        """Return what trains a network by what it plays."""
        return Replaying(self, network)


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


class Replaying(ActorCritic):
    """Learn from episodes and from earlier ones again, see `ActorCritic`.

    Without a reward model the true cluster pays, in no more intervals than made the log.
    """

    def __init__(self, training: HarmonyTraining, network: nn.Module) -> None:
        super().__init__(training, network)
        self.model, self.seed, self._kept = training.model, training.seed, list[Seen]()
        self._left = len(make_log(self.settings, self.seed).now) if self.model is None else -1

    def update(self, step: int) -> dict[str, float]:
        """Play episodes, and learn from them and from some that were kept."""
        of = self.settings
        self.slow_down(step)
        seen, figures = self.play(step), dict[str, float]()
        again = self.rng.permutation(len(self._kept))[: of.replays]
        for old in [self._kept[i] for i in again.tolist()]:
            figures |= {f"replayed_{name}": x for name, x in self.learn(old, step).items()}
        if seen is not None:
            figures |= self.learn(seen, step) | {"decisions": float(len(seen.action))}
            self._kept = [*self._kept, seen][-of.replay :] if of.replay else []
        return figures

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        tensors, plain = super().state()
        for i, seen in enumerate(self._kept):
            tensors |= prefixed(f"kept{i}", seen._asdict())
        return tensors, plain | {"kept": len(self._kept), "left": self._left}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        super().load(tensors, plain)
        self._kept = [Seen(**under(f"kept{i}", tensors)) for i in range(plain["kept"])]
        self._left = plain["left"]

    def play(self, step: int) -> Seen | None:
        """Return what was seen in new episodes; in those of the true cluster, as many as are left."""
        of, first = self.settings, TRAINING + 1_000_000 + 500_000 * self.seed + (step - 1) * self.settings.lanes
        seeds = range(first, first + of.lanes)
        if self.model is not None:
            envs = [environment(of, self.model, seed, of.jobs) for seed in seeds]
            return play(envs, of, self.network, self.model, self.rng)
        parts = []
        for seed in seeds if self._left > 0 else ():
            seen = play([environment(of, None, seed, of.jobs)], of, self.network, None, self.rng)
            assert seen is not None
            self._left -= int((seen.reward > 0).sum())
            if self._left < 0:  # an episode that goes beyond what is left is not learned from
                break
            parts.append(seen)
        return Seen(*(torch.cat(x) for x in zip(*parts, strict=True))) if parts else None

    def lesson(self, played: Seen) -> Experience:
        """Return targets of V-trace, and the gradient of the policy: each action by its ratio up to 1."""
        pieces = list(zip(*(x.split(self.MINIBATCH) for x in played), strict=True))
        with torch.no_grad():
            value = torch.cat([self.critic(part[0].float())[:, 0] for part in pieces])
            logs = torch.cat([log_probabilities(self.network, part[0], part[1]) for part in pieces])
        ratio = (logs.gather(1, played.action[:, None])[:, 0] - played.behaviour).exp()
        given = [x.double().numpy() for x in (value, played.reward, played.discount, ratio)]
        found = corrected(given[0], given[1], given[2], given[3], self.settings.lam)
        target, advantage = (torch.from_numpy(x).float() for x in found)
        free = (played.mask.sum(dim=1) > 1).nonzero()[:, 0]
        spread = advantage - advantage[free].mean()
        normal = spread / (spread[free].square().mean().sqrt() + 1e-8)

        def error(chosen: Tensor) -> Tensor:
            square: Tensor = (self.critic(played.rows[chosen].float())[:, 0] - target[chosen]).square()
            return square.mean()

        def loss(chosen: Tensor) -> tuple[Tensor, dict[str, float]]:
            rows, mask, action, behaviour = (x[free[chosen]] for x in played[:4])
            logs = log_probabilities(self.network, rows, mask)
            taken = logs.gather(1, action[:, None])[:, 0]
            ratio = (taken.detach() - behaviour).exp().clamp(max=1.0)
            allowed = logs.masked_fill(~mask, 0.0)  # before the product: 0 times minus infinity has no gradient
            entropy = -(logs.exp() * allowed).sum(dim=1).mean()
            gain = (ratio * normal[free[chosen]] * taken).mean()
            return -gain - self.settings.entropy * entropy, {"entropy": float(entropy.detach())}

        paid = float(played.reward.sum() / (played.discount != 1).sum())
        return Experience(len(target), error, len(free), loss, {"paid": paid})
