"""What trains the network: imitation of what every candidate of a decision comes to."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.ragged import expected_regret, rows_of, soft_cross_entropy

from ..arrays import begin, cluster_of, jobs_of
from ..rules import rule
from ..suites import VALIDATION, suite
from .candidates import scratch_of
from .episodes import play
from .features import WIDTH
from .guard import RULES
from .network import Network, compiled
from .settings import JUDGED, Settings
from .teacher import Labels

AVERAGED = 0.995
"""Of the average of the weights, that is left after an update."""
CAP = 20.0
"""Regret that counts at most, in mean lengths of a job."""


class Validation:
    """Mean JCT by suite, over that of least work.

    Args:
        seeds: workloads of each suite.
    """

    def __init__(self, seeds: int) -> None:
        self._cases = []
        for name in JUDGED:
            made = suite(name)
            cluster = cluster_of(made.fleet, made.proximity)
            for seed in range(VALIDATION, VALIDATION + seeds):
                work, told = made.draw(seed)
                jobs = jobs_of(work, made.proximity, told)
                state = begin(jobs, cluster)
                rule("least_work").finish(jobs, cluster, state)
                self._cases.append((name, jobs, cluster, float((state.finish - jobs.submit).mean())))
        self._scratch = scratch_of(cluster, WIDTH)

    def __call__(self, network: Network) -> dict[str, float]:
        """Return the ratio of each suite, and their geometric mean as ``score``."""
        weights = compiled(network)
        found: dict[str, list[float]] = {}
        for name, jobs, cluster, base in self._cases:
            state = begin(jobs, cluster)
            play(jobs, cluster, state, self._scratch, weights, RULES[0], True, len(jobs.submit) + 1)
            found.setdefault(name, []).append(float((state.finish - jobs.submit).mean()) / base)
        ratios = {name: float(np.mean(values)) for name, values in found.items()}
        return {"score": float(np.exp(np.mean(np.log(list(ratios.values()))))), **ratios}


def imitation(network: Network, labels: Labels, judge: Validation, settings: Settings, seed: int) -> Imitation:
    """Return what trains a network on labels of decisions.

    Regrets are means over few futures. What is minimised is the regret that a draw from the network's softmax has: it
    is linear in the regrets, so that their noise averages out over decisions; the cross-entropy is there at the
    beginning, when a softmax that is sure of the wrong candidates would learn nothing.
    """
    rows, regret = torch.from_numpy(labels.rows), torch.from_numpy(labels.regret.astype(np.float32))
    d = len(labels.first) - 1

    def draw(rng: np.random.Generator) -> Tensor:
        chosen = rng.integers(0, d, settings.minibatch)
        at, index = rows_of(labels.first, chosen)
        scores, n = network(rows[at]), len(chosen)
        likely = soft_cross_entropy(scores, index, regret[at], n, temperature=settings.temperature)
        return expected_regret(scores, index, regret[at], n, cap=CAP) + settings.cross_entropy * likely

    rate, updates = settings.rate, settings.updates
    return Imitation(network, draw, judge, rate=rate, updates=updates, seed=seed, clip=1.0, average=AVERAGED)
