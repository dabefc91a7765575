"""Training: imitation of proved optima, then a policy gradient on the objective of plans by drawn scores."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.solvers.method import suite
from gangplan.solvers.run import Run

from ...graph.compiled import Graph, score
from ...offline.graphs import Index, standard
from ...offline.policy import OfflineSettings
from ...offline.task import PlanLesson, ScoreDecoder, affinity, drawn
from ..imitation import Imitation
from ..network import GraphNetwork, Packed
from ..trainer import Trainer
from .lessons import HOUR, ExactLabel, labels, problem_of, task_of

SHARP = 3.0
"""How sure an order is of two items whose keys are one deviation apart, as log odds."""
TIMES = 10
"""How much larger problems of the policy gradient are."""
_FIRST = 0.1
"""Deviation of the last layer at first where there are several scores, which else would all stay the same."""
_PAIRS = 0.5
"""What pairs count in imitation, beside orders."""
_OTHERS = 0.1
"""What the mean of all orders counts in imitation, beside the order that is nearest to the optimum."""
_STEADY = 1e-3
"""Added to the deviation of the values of a problem's plans, by which they are divided."""


class Known(NamedTuple):
    """A problem with its decoder, what its optimum says if there is a proof, and what best and classic plan cost."""

    graph: Graph
    decoder: ScoreDecoder
    lesson: PlanLesson | None
    best: float
    classic: float


def listwise(keys: Tensor, rank: Tensor) -> Tensor:
    """Return how unlikely an order is by keys, the mean of all places (Plackett and Luce).

    Each item competes with those of higher rank: of equal ones the order does not matter.
    """
    order = rank.argsort(stable=True)
    ordered, rank = -SHARP * keys[order], rank[order]
    rest = torch.cat([ordered.flip(0).logcumsumexp(0).flip(0), ordered.new_full((1,), -torch.inf)])
    return (torch.logaddexp(ordered, rest[torch.searchsorted(rank, rank, right=True)]) - ordered).mean()


def pairwise(odds: Tensor, shares: Tensor) -> Tensor:
    """Return how unlikely shares of pairs are by log odds beside their mean, the mean of all pairs of two."""
    two = ~torch.eye(len(shares), dtype=torch.bool)
    mean = shares[two].mean().clamp(0.01, 0.99)
    return nn.functional.binary_cross_entropy_with_logits(odds[two] + torch.logit(mean), shares[two].to(odds.dtype))


class OfflineTraining(Trainer[OfflineSettings]):
    """The problems of a policy that scores items, and its stages."""

    def __init__(self, objective: str, settings: OfflineSettings, seed: int) -> None:
        super().__init__(settings, seed)
        s, task = settings, task_of(objective)
        self.orders, self.schema = task.scores[0], task.schema(sum(task.scores))
        self.known = self.problems(objective, "train", s.lessons)
        self.more = self.problems(objective, "train", s.larger, TIMES) or self.known
        self.validation = self.problems(objective, "validation", s.validation)
        self.validation += self.problems(objective, "validation", s.larger // 8, TIMES)

    def problems(self, objective: str, split: str, count: int, times: int = 1) -> list[Known]:
        """Return the first problems of a split that have a classic plan, those of the first size with labels."""
        found, task, ops = list[Known](), task_of(objective), self.settings.ops * times
        known = (
            labels(objective, self.settings, split, count) if times == 1 else [ExactLabel(None, np.inf, 0.0)] * count
        )
        for i, label in enumerate(known):
            prepared = suite(objective).prepare(Run(problem_of(objective, split, i, ops), time_limit=HOUR))
            decoder: Any = task.decoder(prepared)
            classic = None if decoder is None else decoder.decode(0)
            if classic is not None:
                lesson = decoder.lesson(label.plan) if label.proved else None
                best = min(classic.value, label.value)
                found.append(Known(task.graph(prepared), decoder, lesson, best, classic.value))
        return found

    def network(self) -> GraphNetwork:
        """Return a network."""
        s = self.settings
        made = GraphNetwork(self.schema, s.width, s.rounds, messages=s.messages)
        nn.init.normal_(made.last.weight, std=_FIRST)
        return made

    def validate(self, network: GraphNetwork) -> dict[str, float]:
        """Return what plans are above the best known: of scores, the best of many as in `solve`, the classic one."""
        weights, s, gaps = network.compiled(), self.settings, []
        for x in self.validation:
            choices = drawn(np.asarray(score(x.graph, weights), np.float64), s.noise, self.seed)
            values = self.values(x, choices)
            gaps.append([values[0], values.min(), x.classic / x.best - 1])
        one, many, rule = np.minimum(np.array(gaps), s.cap).mean(axis=0).tolist()
        return {"score": many, "one": one, "many": many, "rule": rule}

    def values(self, known: Known, choices: list[FloatArray]) -> FloatArray:
        """Return what plans of scores are above the best known, as a share, cut off at the cap."""
        made = (known.decoder.decode(x) for x in choices)
        return np.minimum([np.inf if x is None else x.value / known.best - 1 for x in made], self.settings.cap)

    def imitation(self, network: GraphNetwork) -> Imitation:
        """Return what learns proved optima: where items stand, by the order that comes nearest, and which share."""
        s, known = self.settings, [x for x in self.known if x.lesson is not None]
        if not known:
            raise InstanceError("label_seconds", f"{s.label_seconds} are too few: no lesson has a proved optimum")
        lessons = [[torch.from_numpy(np.asarray(x)) for x in k.lesson or () if x is not None] for k in known]

        def loss(scores: Tensor, of: Tensor, chosen: Index) -> Tensor:
            parts = []
            for mine, i in zip(scores.split(torch.bincount(of).tolist()), chosen, strict=True):
                rank, keys, *together = lessons[i]
                apart = torch.stack([listwise(keys + x, rank) for x in mine[:, : self.orders].T])
                parts.append((1 - _OTHERS) * apart.min() + _OTHERS * apart.mean())
                for shares in together:
                    parts[-1] = parts[-1] + _PAIRS * pairwise(affinity(mine[:, self.orders :]), shares)
            return torch.stack(parts).mean()

        packed = Packed(self.schema, [x.graph for x in known])
        return self.learner_of(network, packed, loss, s.imitation_rate, s.imitation_updates)

    def rl(self, network: GraphNetwork) -> Imitation:
        """Return what follows the gradient of the objective of scores with noise, drawn in pairs of opposites.

        That is REINFORCE of normal scores, each plan's baseline being its opposite. Noise is a sum over the figures of
        the items, so that alike ones move together: of many independent numbers some hundred plans say little.
        """
        s, rng = self.settings, np.random.default_rng(self.seed)
        packed = Packed(self.schema, [x.graph for x in self.more])
        figures = [standard(np.asarray(x.graph.x[: x.graph.kind[1]], np.float64)) for x in self.more]

        def loss(scores: Tensor, of: Tensor, chosen: Index) -> Tensor:
            at, slopes = 0, np.zeros(scores.shape, np.float32)
            mean = scores.detach().numpy().astype(np.float64)
            for i in chosen:
                known = self.more[i]
                upto, width = at + len(figures[i]), figures[i].shape[1]
                noise = figures[i] @ rng.standard_normal((s.draws, width, mean.shape[1])) / width**0.5
                both = self.values(known, [mean[at:upto] + sign * s.noise * x for x in noise for sign in (1, -1)])
                gain = (both[::2] - both[1::2]) / (both.std() + _STEADY)
                slopes[at:upto] = np.einsum("k,kij->ij", gain, noise) / (2 * s.noise * s.draws)
                at = upto
            return (scores * torch.from_numpy(slopes)).sum() / len(chosen)

        return self.learner_of(network, packed, loss, s.rl_rate, s.rl_updates)

    def learner_of(self, network: GraphNetwork, packed: Packed, loss: Any, rate: float, updates: int) -> Imitation:
        """Return what learns by a loss of (scores, problem of each, numbers of the problems)."""

        def draw(rng: np.random.Generator) -> Tensor:
            chosen = rng.integers(packed.count, size=self.settings.minibatch)
            batch = packed.batch(chosen)
            found: Tensor = loss(network(batch), batch[self.schema.scored].batch, chosen)
            return found

        return Imitation(network, draw, self.validate, rate=rate, updates=updates, seed=self.seed, average=0.98)


throughput = partial(OfflineTraining, "throughput")
placement = partial(OfflineTraining, "placement")
