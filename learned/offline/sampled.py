"""Training of scores: imitation of optimal plans, then a policy gradient on the objective of plans by drawn scores."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.method import suite
from gangplan.solvers.run import Run

from ..graph.compiled import Graph, score
from ..graph.network import GraphNetwork, Packed
from ..training.imitation import Imitation
from .graphs import Index
from .lessons import HOUR, Label, labels, problem_of, task_of
from .recipe import OfflineSettings
from .task import Lesson, ScoreDecoder, drawn
from .training import TIMES, Learning

SHARP = 3.0
"""How sure an order is of two items whose keys are one deviation apart, as log odds."""


class Known(NamedTuple):
    """A problem with its decoder, what its best known plan says, and what that and the classic one cost."""

    graph: Graph
    decoder: ScoreDecoder
    lesson: Lesson | None
    best: float
    classic: float


def listwise(keys: Tensor, rank: Tensor) -> Tensor:
    """Return how unlikely an order is by keys, the mean of all places (Plackett and Luce)."""
    ordered = -SHARP * keys[rank.argsort()]
    return (ordered.flip(0).logcumsumexp(0).flip(0) - ordered).mean()


class Sampled(Learning):
    """The problems of a policy that scores items, and its stages."""

    def __init__(self, objective: str, settings: OfflineSettings, seed: int) -> None:
        super().__init__(settings, seed)
        s, self.schema = settings, task_of(objective).schema(2)
        self.known = self.problems(objective, "train", s.lessons)
        self.more = self.known + self.problems(objective, "train", s.larger, TIMES)
        self.validation = self.problems(objective, "validation", s.validation)
        self.validation += self.problems(objective, "validation", s.larger // 8, TIMES)

    def problems(self, objective: str, split: str, count: int, times: int = 1) -> list[Known]:
        """Return the first problems of a split that have a classic plan, those of the first size with labels."""
        found, task, ops = list[Known](), task_of(objective), self.settings.ops * times
        known = labels(objective, self.settings, split, count) if times == 1 else [Label((), (), 0.0)] * count
        for i, label in enumerate(known):
            prepared = suite(objective).prepare(Run(problem_of(objective, split, i, ops), time_limit=HOUR))
            decoder: Any = task.decoder(prepared)
            classic = None if decoder is None else decoder.decode(0)
            if classic is not None:
                lesson = decoder.lesson(label.plans[0]) if label.plans else None
                best = min(classic.value, *label.values[:1], np.inf)
                found.append(Known(task.graph(prepared), decoder, lesson, best, classic.value))
        return found

    def validate(self, network: GraphNetwork) -> dict[str, float]:
        """Return what plans are above the best known: of scores, the best of many drawn, and the classic one."""
        weights, s, gaps = network.compiled(), self.settings, []
        for x in self.validation:
            choices = drawn(np.asarray(score(x.graph, weights), np.float64), s.noise, self.seed)
            values = self.values(x, choices)
            gaps.append([values[0], values.min(), x.classic / x.best - 1])
        one, many, rule = np.minimum(np.array(gaps), s.cap).mean(axis=0).tolist()
        return {"score": (one + many) / 2, "one": one, "many": many, "rule": rule}

    def values(self, known: Known, choices: list[FloatArray]) -> FloatArray:
        """Return what plans of scores are above the best known, as a share, cut off at the cap."""
        made = (known.decoder.decode(x) for x in choices)
        return np.minimum([np.inf if x is None else x.value / known.best - 1 for x in made], self.settings.cap)

    def imitation(self, network: GraphNetwork) -> Imitation:
        """Return what learns the order of optimal plans, and scores within the bounds that these leave."""
        s, known = self.settings, [x for x in self.known if x.lesson is not None]
        lessons = [[torch.from_numpy(np.asarray(x, np.float32)) for x in k.lesson or ()] for k in known]

        def loss(scores: Tensor, of: Tensor, chosen: Index) -> Tensor:
            parts = []
            for mine, i in zip(scores.split(torch.bincount(of).tolist()), chosen, strict=True):
                rank, keys, low, high = lessons[i]
                outside = torch.relu(low - mine[:, 1]) + torch.relu(mine[:, 1] - high)
                parts.append(listwise(keys + mine[:, 0], rank) + outside.clamp(max=3.0).mean())
            return torch.stack(parts).mean()

        packed = Packed(self.schema, [x.graph for x in known])
        return self.learner_of(network, packed, loss, s.imitation_rate, s.imitation_updates)

    def rl(self, network: GraphNetwork) -> Imitation:
        """Return what follows the gradient of the objective of scores with noise, drawn in pairs of opposites."""
        s, rng, packed = (
            self.settings,
            np.random.default_rng(self.seed),
            Packed(self.schema, [x.graph for x in self.more]),
        )

        def loss(scores: Tensor, of: Tensor, chosen: Index) -> Tensor:
            at, slopes = 0, np.zeros(scores.shape, np.float32)
            mean = scores.detach().numpy().astype(np.float64)
            for i in chosen:
                known = self.more[i]
                upto = at + known.graph.kind[1]
                noise = rng.standard_normal((s.draws, upto - at, 2))
                both = self.values(known, [mean[at:upto] + sign * s.noise * x for x in noise for sign in (1, -1)])
                slopes[at:upto] = np.einsum("k,kij->ij", both[::2] - both[1::2], noise) / (2 * s.noise * s.draws)
                at = upto
            return (scores * torch.from_numpy(slopes)).sum() / len(chosen)

        return self.learner_of(network, packed, loss, s.rl_rate, s.rl_updates)


schedule = partial(Sampled, "schedule")
placement = partial(Sampled, "placement")
