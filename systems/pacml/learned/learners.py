"""What trains the network: imitation of what every row of a decision is worth to the teachers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.ragged import rows_of, segment_max, soft_cross_entropy
from gangplan.learned.training.trainer import Trainer

from ..arrivals import DISTRIBUTIONS
from .features import DegreeDecision
from .network import BlockNetwork, Weights
from .recipe import VALIDATION, PacmlSettings
from .tables import TypeTimes
from .teacher import Taught, TeacherLabels, corrected, taught
from .values import ArrivalEpisode, Scenario, published


def run_episode(episode: ArrivalEpisode, times: TypeTimes, weights: Weights, decision: DegreeDecision) -> FloatArray:
    """Play a case by the best score, and return when each job ends, infinite of those blocked, float64 (n,)."""
    finish, row = np.full(len(episode.kind), np.inf), np.asarray(decision.row)
    decision.begin(times)
    for i, job in enumerate(episode.jobs()):
        k = decision.arrive(*job)
        decision.write(k)
        best = int(np.argmax(weights.scores(row[:k])))
        if best > 0:
            finish[i] = decision.accept(best)
    return finish


AVERAGED = 0.995
"""Of the average of the weights, that is left after an update. The weights of single updates block up to three points
more or less than those a hundred updates before, at equal loss."""


class Validation:
    """Blocking rates by setting, published way of counting: jobs that end after the horizon are blocked.

    Args:
        episodes: in it; those of one name are averaged.
    """

    def __init__(self, scenario: Scenario, episodes: Sequence[ArrivalEpisode], *, choose: bool = True) -> None:
        self._scenario, self._episodes = scenario, episodes
        self._decision = scenario.decision(choose=choose)

    def __call__(self, network: BlockNetwork) -> dict[str, float]:
        """Return the blocking rate of each setting, and their mean as ``score``."""
        found: dict[str, list[float]] = {}
        weights = network.weights()
        for x in self._episodes:
            finish = run_episode(x, self._scenario.times, weights, self._decision)
            found.setdefault(x.name, []).append(1 - float((finish <= x.horizon).mean()))
        rates = {name: float(np.mean(values)) for name, values in found.items()}
        return {"score": float(np.mean(list(rates.values()))), **rates}


class PacmlTraining(Trainer[PacmlSettings]):
    """Imitate the teachers, then again with labels of states that the network comes to."""

    def __init__(self, settings: PacmlSettings, seed: int) -> None:
        super().__init__(settings, seed)
        self.scenario = scenario = published(settings.profiles, settings.units, settings.shorter, seed)
        cases = [
            scenario.draw(unit, name, VALIDATION + i, 1000, label=f"{unit} {name}")
            for unit in scenario.sets
            for name in DISTRIBUTIONS
            for i in range(settings.validation_seeds)
        ]
        self._judge = Validation(scenario, cases, choose=settings.blocks)

    def validate(self, network: BlockNetwork) -> dict[str, float]:
        """Return blocking rates, see `Validation`."""
        return self._judge(network)

    @cached_property
    def teachers(self) -> list[Taught]:
        """What the teachers say; a run that is resumed at the correction has them to make anew."""
        return taught(self.scenario, self.settings, self.seed)

    def network(self) -> BlockNetwork:
        """Return the network of the settings."""
        return BlockNetwork(self.settings.width)

    def imitation(self, network: BlockNetwork) -> Imitation:
        """Return what trains a network on the teachers' labels."""
        of, labels = self.settings, [(*x.searched, *x.quick) for x in self.teachers]
        return imitation(network, labels, self.validate, of, of.imitation_rate, of.imitation_updates, self.seed)

    def correction(self, network: BlockNetwork) -> Imitation:
        """Return what trains it on those of states that it comes to as well, and no quick ones."""
        of = self.settings
        labels = [x.searched for x in corrected(self.teachers, network, of, self.seed)]
        return imitation(network, labels, self.validate, of, of.corrected_rate, of.corrected_updates, self.seed + 1)


def imitation(
    network: BlockNetwork,
    labelled: Sequence[Sequence[TeacherLabels]],
    validate: Callable[[BlockNetwork], dict[str, float]],
    settings: PacmlSettings,
    rate: float,
    updates: int,
    seed: int,
) -> Imitation:
    """Return what trains a network on labels of decisions.

    Args:
        labelled: labels of decisions by teacher; a minibatch is of one of these, of each teacher equally often.
        updates: after which the learning rate has gone down to nothing.
    """
    every = [x for own in labelled for x in own]
    rows = [torch.from_numpy(x.rows) for x in every]
    values = [torch.from_numpy(x.value) for x in every]
    share = [(len(x.first) - 1) / sum(len(y.first) - 1 for y in own) for own in labelled for x in own]
    weight = np.array(share) / sum(share)

    def draw(rng: np.random.Generator) -> Tensor:
        i = int(rng.choice(len(every), p=weight))
        labels = every[i]
        chosen = rng.integers(0, len(labels.first) - 1, settings.minibatch)
        at, index = rows_of(labels.first, chosen)
        value, n = values[i][at], len(chosen)
        regret = segment_max(value, index, n)[index] - value
        scores = network(rows[i][at])
        return soft_cross_entropy(scores, index, regret, n, temperature=settings.temperature)

    return Imitation(network, draw, validate, rate=rate, updates=updates, seed=seed, clip=math.inf, average=AVERAGED)
