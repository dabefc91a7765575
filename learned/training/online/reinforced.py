"""Reinforcement: evolution strategies on long runs of loaded clusters, opposite networks on the same arrivals.

Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning", arXiv 1703.03864. What a
run pays is the logarithm of its mean JCT less that of the rule, which cancels between opposites.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import torch

from gangplan.simulator.gangs.formula import FORMULAS
from gangplan.simulator.gangs.mixes import TRAINING
from gangplan.simulator.gangs.traffic import Draw, Episode

from ...graph.compiled import CompiledNetwork
from ...online.candidates import CandidateScratch
from ...online.episodes import play
from ...online.guard import EVERYTHING
from ...online.settings import GnnSettings
from ..imitation import Averaged
from ..network import GraphNetwork
from .labels import EPISODES

FIRST = 60_000
"""Number of the first episode of a seed: others are for labels."""
GPUS = range(256, 1025)
"""Of the clusters on which this is done, if the settings do not say otherwise."""
RUNS = 5
"""That each pair of opposites plays."""
MOST = 0.1
"""Difference that counts at most."""
LEAST = 0.02
"""Deviation of weights that are all alike."""
MOMENTUM, SLOWEST = 0.9, 0.1
"""Share of the last step in the next; what the rate goes down to, as a share of the first."""


def pays(given: Episode, net: CompiledNetwork, rule: str) -> float:
    """Return the logarithm of the mean JCT of a run in which the network decides, correcting a rule."""
    state, s = given.begin(), CandidateScratch(given.cluster)
    play(given.jobs, given.cluster, state, s, net, FORMULAS[rule], True, EVERYTHING, EVERYTHING)
    return log(given.mean_jct(state))


class Reinforced(Averaged):
    """Trains the last layer of a network, and what is added before it, by whole runs.

    Args:
        network, validate, more: see `Averaged`.
        settings: what is played, and how far apart opposites are.
        draw: from numbers to runs.
    """

    network: GraphNetwork

    def __init__(
        self, network: GraphNetwork, validate: Callable[[Any], dict[str, float]], settings: GnnSettings, draw: Draw,
        **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(network, validate, **more)
        self._settings, self._draw = settings, draw
        self._first = EPISODES * more["seed"] + FIRST
        self._moved = [network.last.weight, network.head.bias]
        self._spread = [settings.rl_spread * max(float(x.detach().std()), LEAST) for x in self._moved]
        groups = [{"params": [x]} for x in self._moved]
        self._optimizer = torch.optim.SGD(groups, self._rate, MOMENTUM, MOMENTUM)
        self.optimizers = {"optimizer": self._optimizer}

    def update(self, step: int) -> dict[str, float]:
        """Play pairs of opposites, and go towards those with the lower mean JCT, in units of their spread."""
        of, paid, noise = self._settings, [], []
        for pair in range(of.rl_pairs):
            first = self._first + RUNS * (of.rl_pairs * (step - 1) + pair)
            runs = [self._draw(first + i, of.rl_jobs, TRAINING) for i in range(RUNS)]
            noise.append([torch.from_numpy(self._rng.normal(size=x.shape)).float() for x in self._moved])
            one, other = (self._beside(noise[-1], sign) for sign in (1, -1))
            apart = [pays(x, one, of.rule) - pays(x, other, of.rule) for x in runs]
            paid.append(float(np.clip(apart, -MOST, MOST).mean()))
        weight = torch.tensor(paid) / (np.sqrt(np.mean(np.square(paid))) + 1e-6) / len(paid)
        rate = self._rate * max(1 - step / self._updates, SLOWEST)
        for i, group in enumerate(self._optimizer.param_groups):
            self._moved[i].grad = torch.tensordot(weight, torch.stack([drawn[i] for drawn in noise]), 1)
            group["lr"] = rate * self._spread[i]
        self._optimizer.step()
        self.average(step / (step + 1))
        return {"apart": float(np.abs(paid).mean())}

    def _beside(self, noise: list[torch.Tensor], sign: int) -> CompiledNetwork:
        """Return the network with noise added."""
        kept = [x.detach().clone() for x in self._moved]
        with torch.no_grad():
            for x, drawn, spread in zip(self._moved, noise, self._spread, strict=True):
                x.add_(sign * spread * drawn)
            made = self.network.compiled()
            for x, before in zip(self._moved, kept, strict=True):
                x.copy_(before)
        return made
