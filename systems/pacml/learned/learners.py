"""What trains the network: imitation of what every row of a decision is worth to the teachers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.ragged import rows_of, segment_max, soft_cross_entropy
from gangplan.learned.training.trainer import Trainer
from gangplan.solvers.compiled.kernel import Floats, Ints, kernel

from ..arrivals import DISTRIBUTIONS
from .features import MOST, SUMS, FeatureScratch, remember, turn_of, write_rows
from .network import BlockNetwork, Weights, forward
from .recipe import VALIDATION, PacmlSettings
from .tables import BlockTables, TypeTimes, start_job
from .teacher import Taught, TeacherLabels, corrected, taught
from .values import ArrivalEpisode, Scenario, published


@kernel
def run_episode(
    kind: Ints, beta: Floats, gap: Floats, tables: BlockTables, times: TypeTimes, weights: Weights,
    scratch: FeatureScratch, finish: Floats,
) -> int:  # fmt: skip
    """Play a case by the best score, write when each job ends (infinite: blocked), and return how many were accepted.

    Args:
        kind: type of each job, int64 (n,).
        beta: acceptable share of its sequential time, float64 (n,).
        gap: time since the job before, float64 (n,).
        finish: is written, float64 (n,).
    """
    end, sums, score = np.zeros(tables.n), np.zeros(SUMS), np.zeros(MOST, np.float32)
    now, accepted = 0.0, 0
    end[:] = -1.0
    for i in range(len(kind)):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], times.sequential[m], times.efficiency[m], gap[i])
        k = write_rows(end, now, turn_of(sums, tables.n), tables, times, m, beta[i], sums, scratch)
        forward(scratch.row, k, weights, score)
        choice = scratch.choice[np.argmax(score[:k])]
        finish[i] = np.inf
        if choice >= 0:
            finish[i] = start_job(end, now, choice, m, tables, times, scratch.published)
            accepted += 1
    return accepted


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
        self._scratch = scenario.scratch(choose=choose)

    def __call__(self, network: BlockNetwork) -> dict[str, float]:
        """Return the blocking rate of each setting, and their mean as ``score``."""
        found: dict[str, list[float]] = {}
        world, weights = self._scenario, network.compiled()
        for x in self._episodes:
            finish = np.zeros(len(x.kind))
            run_episode(x.kind, x.beta, x.gap, world.tables, world.times, weights, self._scratch, finish)
            found.setdefault(x.name, []).append(1 - float((finish <= x.horizon).mean()))
        rates = {name: float(np.mean(values)) for name, values in found.items()}
        return {"score": float(np.mean(list(rates.values()))), **rates}


class Training(Trainer[PacmlSettings]):
    """Imitate the teachers, then again with labels of states that the network comes to."""

    def __init__(self, settings: PacmlSettings, seed: int) -> None:
        super().__init__(settings, seed)
        scenario = published(settings.profiles, settings.units, settings.shorter, seed)
        self.scenario = scenario = replace(scenario, told=settings.variant == "op-graph")
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
        graphs = BlockNetwork.batch([x.graph for x in self.scenario.types]) if self.scenario.told else None
        return BlockNetwork(self.settings.width, self.settings.variant, graphs)

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
