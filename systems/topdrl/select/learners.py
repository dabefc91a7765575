"""What trains the network: imitation of what every candidate of a decision comes to."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.perceptron import Perceptron
from gangplan.learned.training.ragged import expected_regret, rows_of, soft_cross_entropy
from gangplan.learned.training.trainer import Trainer
from gangplan.simulator.gangs.arrays import begin, cluster_of, jobs_of

from ..rules import rule
from ..suites import VALIDATION, suite
from .candidates import scratch_of
from .episodes import RULES, play
from .features import WIDTH
from .recipe import JUDGED, SelectSettings
from .rollouts import labels

AVERAGED = 0.995
"""Of the average of the weights, that is left after an update."""
CAP = 20.0
"""Regret that counts at most, in mean lengths of a job."""


class Training(Trainer[SelectSettings]):
    """Imitation of a teacher; workloads that judge it are drawn once."""

    def __init__(self, settings: SelectSettings, seed: int) -> None:
        super().__init__(settings, seed)
        self._cases = []
        for name in JUDGED:
            made = suite(name)
            cluster = cluster_of(made.fleet, made.proximity)
            for number in range(VALIDATION, VALIDATION + settings.validation_seeds):
                work, told = made.draw(number)
                jobs = jobs_of(work, made.proximity, told)
                state = begin(jobs, cluster)
                rule("least_work").finish(jobs, cluster, state)
                self._cases.append((name, jobs, cluster, float((state.finish - jobs.submit).mean())))
        self._scratch = scratch_of(cluster, WIDTH)

    def network(self) -> Perceptron:
        """Return the network of the settings."""
        return Perceptron(WIDTH, self.settings.width)

    def validate(self, network: Perceptron) -> dict[str, float]:
        """Return the mean JCT of each suite over that of least work, and their geometric mean as ``score``."""
        weights = network.compiled()
        found: dict[str, list[float]] = {}
        for name, jobs, cluster, base in self._cases:
            state = begin(jobs, cluster)
            play(jobs, cluster, state, self._scratch, weights, RULES[0], True, len(jobs.submit) + 1)
            found.setdefault(name, []).append(float((state.finish - jobs.submit).mean()) / base)
        ratios = {name: float(np.mean(values)) for name, values in found.items()}
        return {"score": float(np.exp(np.mean(np.log(list(ratios.values()))))), **ratios}

    def imitation(self, network: Perceptron) -> Imitation:
        """Return what trains a network on labels of decisions.

        Regrets are means over few futures. What is minimised is the regret that a draw from the network's softmax has:
        it is linear in the regrets, so that their noise averages out over decisions; the cross-entropy is there at the
        beginning, when a softmax that is sure of the wrong candidates would learn nothing.
        """
        of, taught = self.settings, labels(self.settings, self.seed)
        rows, regret = torch.from_numpy(taught.rows), torch.from_numpy(taught.regret.astype(np.float32))
        d = len(taught.first) - 1

        def draw(rng: np.random.Generator) -> Tensor:
            chosen = rng.integers(0, d, of.minibatch)
            at, index = rows_of(taught.first, chosen)
            scores, n = network(rows[at]), len(chosen)
            likely = soft_cross_entropy(scores, index, regret[at], n, temperature=of.temperature)
            return expected_regret(scores, index, regret[at], n, cap=CAP) + of.cross_entropy * likely

        given = (network, draw, self.validate)
        return Imitation(*given, rate=of.rate, updates=of.updates, seed=self.seed, average=AVERAGED)
