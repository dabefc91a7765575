"""Training: imitation of the rules that come near the best known plan, then a policy gradient on the objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..graph.compiled import score
from ..graph.network import GraphNetwork, Packed
from ..graph.schema import Schema
from ..training.imitation import Imitation
from ..training.ragged import segment_sum, soft_cross_entropy
from ..training.trainer import Trainer
from .graphs import Index
from .lessons import Example, examples, task_of
from .recipe import OfflineSettings
from .task import SAMPLES, ranked

DRAWS = (1, 4)
"""Plans of which the best counts, with the same weight."""
TIMES = 10
"""How much larger problems of the policy gradient are."""


def cross_entropy(scores: Tensor, values: Tensor, temperature: float) -> Tensor:
    """Return the mean cross-entropy to the targets softmax(-values / temperature); all (problems, rules)."""
    count, rules = scores.shape
    index = torch.arange(count).repeat_interleave(rules)
    return soft_cross_entropy(scores.flatten(), index, values.flatten(), count, temperature=temperature)


def expected_best(scores: Tensor, values: Tensor, cap: float, draws: Sequence[int] = DRAWS) -> Tensor:
    """Return the mean of the least value of so many draws from softmax(scores), values cut off at `cap`.

    With v_1 <= v_2 <= ... and q_j the probability that a draw is worse than the j-th, that is the sum of
    (v_j - v_(j-1)) q_(j-1)^draws.
    """
    ordered, place = values.clamp(max=cap).sort(dim=1)
    worse = 1 - scores.softmax(dim=1).gather(1, place).cumsum(dim=1)[:, :-1]
    step = ordered.diff(dim=1)
    least = [ordered[:, 0] + (step * worse.clamp(min=0) ** k).sum(dim=1) for k in draws]
    return torch.stack(least).mean()


class Learning(Trainer[OfflineSettings]):
    """What learns which plans are good: its network, and learners by a loss.

    Attributes:
        schema: of the graphs.
    """

    schema: Schema

    def network(self) -> GraphNetwork:
        """Return a network whose scores are 0."""
        s = self.settings
        return GraphNetwork(self.schema, s.width, s.rounds, messages=s.messages)

    def _packed(self, known: list[Example]) -> tuple[Packed, Tensor]:
        graphs, values = [x.graph for x in known], np.array([x.values for x in known], np.float32)
        return Packed(self.schema, graphs), torch.from_numpy(values)

    def learner_of(
        self, network: GraphNetwork, packed: Packed, loss: Callable[..., Tensor], rate: float, updates: int
    ) -> Imitation:
        """Return what learns by a loss of (scores, problem of each, numbers of the problems)."""

        def draw(rng: np.random.Generator) -> Tensor:
            chosen = rng.integers(packed.count, size=self.settings.minibatch)
            batch = packed.batch(chosen)
            return loss(network(batch), batch[self.schema.scored].batch, chosen)

        return Imitation(network, draw, self.validate, rate=rate, updates=updates, seed=self.seed, average=0.98)


class Training(Learning):
    """The examples of one problem's policy, and its stages.

    The values of all rules are known for each example, so that the gradient of the expected objective is exact: nothing
    is drawn, and no baseline is needed.
    """

    def __init__(self, objective: str, settings: OfflineSettings, seed: int) -> None:
        super().__init__(settings, seed)
        self.schema = task_of(objective).schema(len(settings.rules))
        self.validation = examples(objective, settings, "validation", settings.validation)
        self.validation += examples(objective, settings, "validation", settings.larger // 8, TIMES)
        known = examples(objective, settings, "train", settings.lessons)
        larger = examples(objective, settings, "train", settings.larger, TIMES) or known
        self.known, self.larger = self._packed(known), self._packed(larger)

    def validate(self, network: GraphNetwork) -> dict[str, float]:
        """Return what plans are above the best known: of the first rule, the best of many, and of the classic one."""
        weights, gaps, every = network.compiled(), [], range(len(self.settings.rules))
        for x in self.validation:
            order = ranked(np.asarray(score(x.graph, weights), np.float64), every)
            gaps.append([x.values[order[0]], x.values[order[:SAMPLES]].min(), x.values[0]])
        one, many, rule = np.minimum(np.array(gaps), self.settings.cap).mean(axis=0).tolist()
        return {"score": (one + many) / 2, "one": one, "many": many, "rule": rule}

    def imitation(self, network: GraphNetwork) -> Imitation:
        """Return what learns which rules come near the best known plan."""
        s = self.settings
        loss = partial(cross_entropy, temperature=s.temperature)
        return self._stage(network, self.known, loss, s.imitation_rate, s.imitation_updates)

    def rl(self, network: GraphNetwork) -> Imitation:
        """Return what follows the gradient of the expected objective, of one plan and of the best of some."""
        s = self.settings
        return self._stage(network, self.larger, partial(expected_best, cap=s.cap), s.rl_rate, s.rl_updates)

    def _stage(
        self, network: GraphNetwork, known: tuple[Packed, Tensor], loss: partial[Tensor], rate: float, updates: int
    ) -> Imitation:
        packed, values = known

        def ranks(scores: Tensor, of: Tensor, chosen: Index) -> Tensor:
            count = len(chosen)
            mean = torch.stack([segment_sum(x, of, count) for x in scores.T], dim=1)
            return loss(mean / torch.bincount(of, minlength=count)[:, None], values[torch.from_numpy(chosen)])

        return self.learner_of(network, packed, ranks, rate, updates)


throughput = partial(Training, "throughput")
step = partial(Training, "step")
