"""Training: imitation of near-optimal plans, then a policy gradient on what the decoder makes of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.method import suite
from gangplan.solvers.run import Run

from ..graph.compiled import Graph, score
from ..graph.network import GraphNetwork
from ..graph.packed import Packed
from ..training.imitation import Imitation
from ..training.learner import NetworkLearner, clipped_step
from ..training.ragged import segment_sum
from ..training.trainer import Trainer
from .graphs import basis, graph, schema
from .lessons import labels, problem_of, task_of
from .recipe import OfflineSettings
from .task import Decoder, Lesson, Told, candidates

_HOUR = 3600.0
_WORST = 1.5
"""What a plan counts at most, in terms of the rule's."""
_GAIN = 0.05
"""What of the rule's objective a gain of one is: the gradient is of problems where there is much to gain."""
_OTHERS = 0.1
"""What the columns that do not fit a plan best learn from it."""


class Example(NamedTuple):
    """A problem to learn from: its decoder, graph, the rule's objective, the best known one, what its plans teach."""

    decoder: Decoder
    graph: Graph
    basis: FloatArray
    rule: float
    best: float
    lessons: Sequence[Lesson]

    @property
    def ops(self) -> int:
        """The number of ops."""
        return int(self.graph.kind[1])


class Training(Trainer[OfflineSettings]):
    """The examples of one problem's policy, and its stages."""

    def __init__(self, objective: str, settings: OfflineSettings, seed: int) -> None:
        super().__init__(settings, seed)
        self.task = task_of(objective)
        self.schema = schema(self.task.outputs)
        self.validation = self._examples("validation", settings.validation)
        self.examples = self._examples("train", settings.lessons)
        self.packed = Packed(self.schema, [x.graph for x in self.examples])

    def network(self) -> GraphNetwork:
        """Return a network whose scores are 0."""
        s = self.settings
        return GraphNetwork(self.schema, s.width, s.rounds, messages=s.messages)

    def _examples(self, split: str, count: int) -> list[Example]:
        task, s, found = self.task, self.settings, list[Example]()
        for i, known in enumerate(labels(task.objective, s, split, count)):
            if not known.plans:
                continue
            prepared = suite(task.objective).prepare(Run(problem_of(task.objective, split, i, s.ops), time_limit=_HOUR))
            decoder = task.decoder(prepared)
            made = graph(task.split(prepared))
            rule = None if decoder is None else decoder.decode(np.zeros((int(made.kind[1]), task.outputs)))
            if decoder is not None and rule is not None:
                taught = [task.lesson(decoder, plan) for plan in known.plans]
                found.append(Example(decoder, made, basis(made), rule.value, min(rule.value, known.values[0]), taught))
        return found

    def validate(self, network: GraphNetwork) -> dict[str, float]:
        """Return how much longer than the best known plans are: of the scores, the best of samples, and the rule's."""
        weights, gaps = network.compiled(), []
        for i, x in enumerate(self.validation):
            told = Told(np.asarray(score(x.graph, weights), np.float64), x.basis)
            values = [c.value for c in candidates(self.task, x.decoder, told, np.random.default_rng(i))]
            gaps.append([values[0] / x.best - 1, min(values) / x.best - 1, x.rule / x.best - 1])
        one, many, rule = np.minimum(np.array(gaps), 1.0).mean(axis=0).tolist()
        return {"score": (one + many) / 2, "one": one, "many": many, "rule": rule}

    def imitation(self, network: GraphNetwork) -> Imitation:
        """Return what imitates near-optimal plans."""
        s, draw = self.settings, partial(self._imitation_loss, network)
        return Imitation(
            network, draw, self.validate, rate=s.imitation_rate, updates=s.imitation_updates, seed=self.seed
        )  # type: ignore[arg-type]

    def _imitation_loss(self, network: GraphNetwork, rng: np.random.Generator) -> Tensor:
        chosen = rng.integers(len(self.examples), size=self.settings.minibatch)
        scores = network(self.packed.batch(chosen))
        rows, of, first = [], [], 0
        for i, example in enumerate(self.examples[k] for k in chosen):
            one = example.lessons[int(rng.integers(len(example.lessons)))]
            rows.append(one._replace(more=one.more + first, less=np.where(one.less < 0, -1, one.less + first)))
            of.append(np.full(len(one.more), i))
            first += example.ops
        lesson = Lesson(*(np.concatenate(x) for x in zip(*rows, strict=True)))
        index, less = torch.from_numpy(np.concatenate(of)), torch.from_numpy(lesson.less)
        apart = scores[torch.from_numpy(lesson.more)] - scores[less.clamp(min=0)] * (less >= 0)[:, None]
        signs, offset = torch.from_numpy(lesson.sign)[:, None], torch.from_numpy(lesson.offset)[:, None]
        # the columns of an order are in its own unit
        loss = functional.softplus(-signs * (offset + self.task.sharp * apart))
        column = torch.from_numpy(lesson.column)
        if len(column) and column[0] >= 0:
            return loss.gather(1, column[:, None]).mean()
        mean = torch.stack([segment_sum(x, index, len(chosen)) for x in loss.T], dim=1)
        mean = mean / torch.bincount(index, minlength=len(chosen)).clamp(min=1)[:, None]
        return ((1 - _OTHERS) * mean.min(dim=1).values + _OTHERS * mean.mean(dim=1)).mean()

    def rl(self, network: GraphNetwork) -> SelfCritical:
        """Return what follows the policy gradient."""
        return SelfCritical(network, self)


class SelfCritical(NetworkLearner):
    """A policy gradient on the objective of several samples, against their mean and the plan of the scores alone."""

    def __init__(self, network: GraphNetwork, training: Training) -> None:
        self.network, self.training, s = network, training, training.settings
        self._task = replace(training.task, spread=tuple(s.rl_spread * x for x in training.task.spread))
        self._optimizer = torch.optim.Adam(network.parameters(), s.rl_rate)
        self._rng = np.random.default_rng(training.seed)
        self.networks: dict[str, nn.Module] = {"policy": network}
        self.optimizers, self.generators = {"optimizer": self._optimizer}, {"random": self._rng}

    def update(self, step: int) -> dict[str, float]:
        """Sample plans of some problems and make those likelier that are better."""
        of, s, rng = self.training, self.training.settings, self._rng
        self._optimizer.param_groups[0]["lr"] = s.rl_rate * max(1 - (step - 1) / s.rl_updates, 0.05)
        chosen = rng.integers(len(of.examples), size=s.rl_problems)
        scores = self.network(of.packed.batch(chosen))
        told, pulls, first, ratios = scores.detach().numpy().astype(np.float64), [], 0, []
        for example in (of.examples[k] for k in chosen):
            own = told[first : first + example.ops]
            pull, ratio = self._pull(example, own)
            pulls.append(pull)
            ratios.append(ratio)
            first += example.ops
        loss = -(scores * torch.from_numpy(np.concatenate(pulls).astype(np.float32))).sum() / s.rl_problems
        norm = clipped_step(self._optimizer, loss, self.network)
        return {"ratio": float(np.mean(ratios)), "gradient": norm}

    def _pull(self, example: Example, scores: FloatArray) -> tuple[FloatArray, float]:
        """Return the gradient for the scores of one problem, and the objective of their plan in terms of the rule's."""
        task, s = self._task, self.training.settings
        noises = [np.zeros_like(scores), *(task.noise(self._rng, example.basis) for _ in range(s.samples))]
        made = [example.decoder.decode(scores + noise) for noise in noises]
        values = np.array([_WORST if x is None else min(x.value / example.rule, _WORST) for x in made])
        spread = float(values.std())
        if spread < 1e-6:
            return np.zeros_like(scores), float(values[0])
        gains = (values.mean() - values)[1:] / _GAIN
        pulls = np.array([task.pull(noise, example.basis) for noise in noises[1:]])
        size = np.sqrt((pulls**2).sum(axis=(1, 2)).mean())
        return np.tensordot(gains, pulls, 1) / (size * s.samples), float(values[0])

    def validate(self) -> dict[str, float]:
        """Return figures on the validation problems."""
        return self.training.validate(self.network)


throughput = partial(Training, "throughput")
step = partial(Training, "step")
