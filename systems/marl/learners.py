"""What trains the networks: imitation, then PPO with a central critic (Yu et al., arXiv 2103.01955)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.actor_critic import ActorCritic, Experience
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.interference.models import SpeedPredictor
from gangplan.learned.training.ppo import CLIP, advantages
from gangplan.learned.training.ragged import segment_sum
from gangplan.learned.training.trainer import Trainer

from ..harmony.episodes import Predicted, fitted, logged
from ..interference.agents import AgentTable
from ..interference.baselines import baselines
from ..interference.cases import TRAINING, VALIDATION
from .network import Actor, CentralCritic, racks_of
from .policy import JointStep, PlayedInterval, PlayedLane, batch, play
from .recipe import MarlSettings

_RULES = ("lif", "tetris", "lb", "lif-published", "tetris-published", "lb-published")


def reward_models(settings: MarlSettings, seed: int) -> dict[str, SpeedPredictor]:
    """Return the model that pays in each case, fitted to what its true cluster reported under the rules."""
    found = dict[str, SpeedPredictor]()
    for name in settings.cases:
        cases = [settings.make(name, TRAINING + 100 * seed + at) for at in range(len(_RULES))]
        rules = [baselines()[rule](case) for rule, case in zip(_RULES, cases, strict=True)]
        log = logged(cases, rules, settings.samples, settings.noise, seed)
        found[name] = fitted(settings.reward_model, cases[0], log, settings.samples, seed)
    return found


def episodes(
    settings: MarlSettings, models: Mapping[str, SpeedPredictor], seeds: Sequence[int], *, teach: bool = False
) -> tuple[list[PlayedLane], list[SpeedPredictor]]:
    """Return lanes that run by a model, the cases in turn, and the models."""
    names = [settings.cases[i % len(settings.cases)] for i in range(len(seeds))]
    cases = [settings.make(name, seed) for name, seed in zip(names, seeds, strict=True)]
    each = zip(names, cases, seeds, strict=True)
    lanes = [
        PlayedLane(Predicted(replace(case, truth=models[name])), AgentTable(case, seed), settings.types, teach=teach)
        for name, case, seed in each
    ]
    return lanes, [models[name] for name in names]


PAY = 0.1
"""Value of a reward of 1."""


class MarlTraining(Trainer[MarlSettings]):
    """Rounds of imitation and PPO, paid by one reward model a case."""

    make, values = Actor, CentralCritic

    def __init__(self, settings: MarlSettings, seed: int) -> None:
        super().__init__(settings, seed)
        self.models = reward_models(settings, seed)

    def validate(self, network: Actor) -> dict[str, float]:
        """Return the mean JCT in minutes as ``score``, by the best actions, under the predicted speeds."""
        count = self.settings.validation_seeds * len(self.settings.cases)
        lanes, paying = episodes(self.settings, self.models, range(VALIDATION, VALIDATION + count))
        play(lanes, paying, network, keep=False)
        return {"score": mean_jct(lanes)}

    def labelled(self, network: Actor | None = None, turn: int = 0, seed: int | None = None) -> list[JointStep]:
        """Return steps with the teacher's word, of as many intervals as asked for; the network, if any, decides."""
        of, seed = self.settings, self.seed if seed is None else seed
        found, first = list[PlayedInterval](), TRAINING + 500_000 + 10_000 * (seed * 10 + turn)
        while len(found) < of.labels:
            lanes, paying = episodes(of, self.models, range(first, first + len(of.cases)), teach=True)
            play(lanes, paying, network)
            found += [x for lane in lanes for x in lane.played if x.steps]
            first += len(of.cases)
        return [step for x in found for step in x.steps]

    def imitation(self, network: Actor, turn: int = 0) -> Imitation:
        """Return what trains a network on the teacher's word; any of several right actions will do."""
        of, known = self.settings, self.labelled() + (self.labelled(network, turn) if turn else [])

        def draw(rng: np.random.Generator) -> Tensor:
            chosen = [known[i] for i in rng.integers(0, len(known), of.minibatch)]
            asked, told = batch(network, chosen)
            right = torch.from_numpy(np.concatenate([mask for x in chosen for mask in x.right]))
            chance = segment_sum(network(asked, told).exp() * right, asked.action, len(asked.job))
            return -(chance + 1e-6).log().mean()

        rate, updates = of.imitation_rate / (1 + turn), of.imitation_updates
        return Imitation(network, draw, self.validate, rate=rate, updates=updates, seed=self.seed)

    def rl(self, network: Actor) -> AgentsLearner:
        """Return what trains a network by PPO."""
        return AgentsLearner(self, network)


def mean_jct(lanes: Sequence[PlayedLane]) -> float:
    """Return the mean JCT of lanes that were played to their ends, minutes."""
    return float(np.mean([(x.env.finish - x.env.case.jobs.submit).mean() / 60 for x in lanes]))


class AgentsLearner(ActorCritic):
    """Train agents that share a network by PPO, see `ActorCritic`: 16 intervals, then 128 steps in a minibatch."""

    CRITIC_MINIBATCH, MINIBATCH = 16, 128

    training: MarlTraining
    network: Actor
    critic: CentralCritic

    def shuffled(self, count: int, size: int) -> Sequence[Tensor]:
        """Return the numbers below `count` in minibatches of about the same size."""
        parts: Sequence[Tensor] = torch.from_numpy(self.rng.permutation(count)).tensor_split(-(-count // size))
        return parts

    def play(self, step: int) -> list[PlayedLane]:
        """Return lanes that were played to their ends."""
        first = TRAINING + 1_000_000 + 500_000 * self.training.seed + (step - 1) * self.settings.lanes
        lanes, paying = episodes(self.settings, self.training.models, range(first, first + self.settings.lanes))
        play(lanes, paying, self.network, self.rng)
        return lanes

    def lesson(self, played: Sequence[PlayedLane]) -> Experience:
        """Return intervals, which the critic learns, and steps, in which agents decide at the same time."""
        advantage, target = self.estimates([lane.played for lane in played])
        intervals = [x for lane in played for x in lane.played]
        steps = [
            (step, a[[x.agent for x in step.seen]])
            for x, a in zip(intervals, advantage, strict=True)
            for step in x.steps
        ]
        counted = np.concatenate([a for _, a in steps])
        mean, spread = float(counted.mean()), float(counted.std()) + 1e-8

        def error(chosen: Tensor) -> Tensor:
            wanted = torch.from_numpy(np.concatenate([target[i] for i in chosen.tolist()])).float()
            return (self._values([intervals[i] for i in chosen.tolist()]) - wanted).square().mean()

        def loss(chosen: Tensor) -> tuple[Tensor, dict[str, float]]:
            part = [steps[i] for i in chosen.tolist()]
            given = np.concatenate([a for _, a in part])
            return self._loss([step for step, _ in part], torch.from_numpy((given - mean) / spread).float())

        figures = {"jct": mean_jct(played), "decisions": float(sum(len(step.seen) for step, _ in steps))}
        return Experience(len(intervals), error, len(steps), loss, figures)

    def estimates(self, played: Sequence[Sequence[PlayedInterval]]) -> tuple[list[FloatArray], list[FloatArray]]:
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

    def _values(self, intervals: Sequence[PlayedInterval]) -> Tensor:
        """Return the values of all agents in intervals, one interval after the other."""
        shapes = [shape for x in intervals for shape in x.plan.inside]
        racks = racks_of(shapes, np.concatenate([x.racks for x in intervals]))
        pods = [int(x.plan.pod.max()) + 1 for x in intervals]
        pod = np.concatenate([x.plan.pod + at for x, at in zip(intervals, np.cumsum(pods) - pods, strict=True)])
        core, extras = np.repeat(np.arange(len(pods)), pods), np.concatenate([x.extras for x in intervals])
        return self.critic(racks, torch.from_numpy(extras), torch.from_numpy(pod), torch.from_numpy(core))

    def _loss(self, part: Sequence[JointStep], advantage: Tensor) -> tuple[Tensor, dict[str, float]]:
        asked, told = batch(self.network, part)
        log = self.network(asked, told)
        first = torch.from_numpy(np.cumsum([0, *(len(d.mask) for x in part for d in x.seen)])[:-1])
        taken = log[first + torch.tensor([a for x in part for a in x.action])]
        before = torch.tensor([b for x in part for b in x.behaviour], dtype=torch.float32)
        ratio = (taken - before).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        entropy = -(log.exp() * log.masked_fill(~asked.mask, 0.0)).sum() / len(taken)
        shown = {"entropy": entropy, "clipped": ((ratio - 1).abs() > CLIP).float().mean()}
        loss = -gain - self.settings.entropy * entropy
        return loss, {name: float(x.detach()) for name, x in shown.items()}
