"""What trains the networks: imitation, then PPO with a central critic (Yu et al., arXiv 2103.01955)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import FloatArray
from gangplan.learned.interference.ensemble import Model
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.learner import NetworkLearner, clipped_step
from gangplan.learned.training.ppo import CLIP, advantages
from gangplan.learned.training.ragged import segment_sum

from ..interference.cases import TRAINING, VALIDATION
from .episodes import Interval, Lane, Step, batch, play
from .network import Actor, Critic, racks_of
from .rewards import episodes
from .settings import Settings

LEAST = 0.05
"""What the learning rates end at, as a share of the first."""
MINIBATCH, STEPS, CRITIC_PASSES, PAY = 16, 128, 2, 0.1
"""Intervals and steps in a minibatch of critic and policy; passes of the critic; what a reward of 1 counts."""


def validate(network: Actor, settings: Settings, models: Mapping[str, Model]) -> dict[str, float]:
    """Return the mean JCT in minutes as ``score``, by the best actions, under the predicted speeds."""
    count = settings.validation_seeds * len(settings.cases)
    lanes, paying = episodes(settings, models, range(VALIDATION, VALIDATION + count))
    play(lanes, paying, network, keep=False)
    return {"score": mean_jct(lanes)}


def mean_jct(lanes: Sequence[Lane]) -> float:
    """Return the mean JCT of lanes that were played to their ends, minutes."""
    return float(np.mean([(x.env.finish - x.env.case.jobs.submit).mean() / 60 for x in lanes]))


def labelled(
    settings: Settings, models: Mapping[str, Model], seed: int, network: Actor | None = None, turn: int = 0
) -> list[Step]:
    """Return steps with the teacher's word, of as many intervals as asked for; the network, if any, decides."""
    found, first = list[Interval](), TRAINING + 500_000 + 10_000 * (seed * 10 + turn)
    while len(found) < settings.labels:
        lanes, paying = episodes(settings, models, range(first, first + len(settings.cases)), teach=True)
        play(lanes, paying, network)
        found += [x for lane in lanes for x in lane.played if x.steps]
        first += len(settings.cases)
    return [step for x in found for step in x.steps]


def imitation(network: Actor, settings: Settings, models: Mapping[str, Model], seed: int, turn: int = 0) -> Imitation:
    """Return what trains a network on the teacher's word; any of several right actions will do."""
    known = labelled(settings, models, seed) + (labelled(settings, models, seed, network, turn) if turn else [])

    def draw(rng: np.random.Generator) -> Tensor:
        chosen = [known[i] for i in rng.integers(0, len(known), settings.minibatch)]
        asked, told = batch(network, chosen)
        right = torch.from_numpy(np.concatenate([mask for x in chosen for mask in x.right]))
        chance = segment_sum(network(asked, told).exp() * right, asked.action, len(asked.job))
        return -(chance + 1e-6).log().mean()

    rate, updates = settings.imitation_rate / (1 + turn), settings.imitation_updates
    return Imitation(network, draw, lambda x: validate(x, settings, models), rate=rate, updates=updates, seed=seed)


class Agents(NetworkLearner):
    """Trains agents that share a network by PPO, see `gangplan.learned.training.Learner`.

    Args:
        network: scores actions.
        critic: values of all agents.
        settings: of the training.
        models: predict the rewards.
        seed: of the cases and of what is drawn.
    """

    def __init__(
        self, network: Actor, critic: Critic, settings: Settings, models: Mapping[str, Model], seed: int
    ) -> None:
        self.network, self.critic, self.settings, self.models, self._seed = network, critic, settings, models, seed
        self.rng = np.random.default_rng(seed)
        self._policy = torch.optim.Adam(network.parameters(), settings.rl_rate)
        self._value = torch.optim.Adam(critic.parameters(), settings.critic_rate)
        self.networks = {"policy": network, "critic": critic}
        self.optimizers = {"optimizer": self._policy, "critic_optimizer": self._value}
        self.generators = {"random": self.rng}

    def update(self, step: int) -> dict[str, float]:
        """Play episodes, and learn from them."""
        of = self.settings
        share = max(1 - (step - 1) / of.rl_updates, LEAST)
        self._policy.param_groups[0]["lr"] = of.rl_rate * share
        self._value.param_groups[0]["lr"] = of.critic_rate * share
        first = TRAINING + 1_000_000 + 500_000 * self._seed + (step - 1) * of.lanes
        lanes, paying = episodes(of, self.models, range(first, first + of.lanes))
        play(lanes, paying, self.network, self.rng)
        advantage, target = self._judge([lane.played for lane in lanes])
        intervals = [x for lane in lanes for x in lane.played]
        decisions = sum(len(step.seen) for x in intervals for step in x.steps)
        figures = {
            "jct": mean_jct(lanes), "decisions": float(decisions), "critic": self._fit(intervals, target)
        }  # fmt: skip
        return figures | (self._improve(intervals, advantage) if step > of.warm else {})

    def validate(self) -> dict[str, float]:
        """Return figures on the validation seeds."""
        return validate(self.network, self.settings, self.models)

    def _values(self, intervals: Sequence[Interval]) -> Tensor:
        """Return the values of all agents in intervals, one interval after the other."""
        shapes = [shape for x in intervals for shape in x.plan.inside]
        racks = racks_of(self.critic.body.graph, shapes, np.concatenate([x.racks for x in intervals]))
        pods = [int(x.plan.pod.max()) + 1 for x in intervals]
        pod = np.concatenate([x.plan.pod + at for x, at in zip(intervals, np.cumsum(pods) - pods, strict=True)])
        core, extras = np.repeat(np.arange(len(pods)), pods), np.concatenate([x.extras for x in intervals])
        found: Tensor = self.critic(racks, torch.from_numpy(extras), torch.from_numpy(pod), torch.from_numpy(core))
        return found

    def _judge(self, played: Sequence[Sequence[Interval]]) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return advantages and targets of each agent in each interval."""
        of, advantage, target = self.settings, list[FloatArray](), list[FloatArray]()
        for one in played:
            with torch.no_grad():
                value = self._values(one).view(len(one), -1)
            reward = PAY * torch.from_numpy(np.stack([x.reward for x in one])).float()
            done = torch.zeros_like(reward)
            done[-1] = 1.0
            own, wanted = advantages(reward, value, done, gamma=of.gamma, lam=of.lam, last=torch.zeros_like(value[0]))
            mixed = (1 - of.team) * own + of.team * own.mean(dim=1, keepdim=True)
            advantage += list(mixed.double().numpy())
            target += list(wanted.double().numpy())
        return advantage, target

    def _fit(self, intervals: Sequence[Interval], target: Sequence[FloatArray]) -> float:
        """Fit the critic to targets; return the mean squared error of the last pass."""
        error = list[float]()
        for _ in range(CRITIC_PASSES):
            error.clear()
            for chosen in np.array_split(self.rng.permutation(len(intervals)), -(-len(intervals) // MINIBATCH)):
                wanted = torch.from_numpy(np.concatenate([target[i] for i in chosen])).float()
                loss = (self._values([intervals[i] for i in chosen]) - wanted).square().mean()
                clipped_step(self._value, loss, self.critic)
                error.append(float(loss.detach()))
        return float(np.mean(error))

    def _improve(self, intervals: Sequence[Interval], advantage: Sequence[FloatArray]) -> dict[str, float]:
        """Pass over the decisions, and return figures of the last pass."""
        steps = [
            (step, a[[x.agent for x in step.seen]])
            for x, a in zip(intervals, advantage, strict=True)
            for step in x.steps
        ]
        counted, shown = np.concatenate([a for _, a in steps]), list[dict[str, float]]()
        mean, spread = float(counted.mean()), float(counted.std()) + 1e-8
        for _ in range(self.settings.passes):
            shown.clear()
            for chosen in np.array_split(self.rng.permutation(len(steps)), -(-len(steps) // STEPS)):
                given = np.concatenate([steps[i][1] for i in chosen])
                part = [steps[i][0] for i in chosen]
                shown.append(self._pass(part, torch.from_numpy((given - mean) / spread).float()))
        return {name: float(np.mean([x[name] for x in shown])) for name in shown[0]}

    def _pass(self, part: Sequence[Step], advantage: Tensor) -> dict[str, float]:
        asked, told = batch(self.network, part)
        log = self.network(asked, told)
        first = torch.from_numpy(np.cumsum([0, *(len(d.mask) for x in part for d in x.seen)])[:-1])
        taken = log[first + torch.tensor([a for x in part for a in x.action])]
        before = torch.tensor([b for x in part for b in x.behaviour], dtype=torch.float32)
        ratio = (taken - before).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        entropy = -(log.exp() * log.masked_fill(~asked.mask, 0.0)).sum() / len(taken)
        norm = clipped_step(self._policy, -gain - self.settings.entropy * entropy, self.network)
        shown = {"entropy": entropy, "clipped": ((ratio - 1).abs() > CLIP).float().mean()}
        return {name: float(x.detach()) for name, x in shown.items()} | {"gradient": norm}
