"""What trains the network: imitation of a teacher, then PPO."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.ppo import Ppo
from gangplan.learned.training.ragged import soft_cross_entropy

from ..suites import VALIDATION
from .episodes import Picking, Placing
from .network import Critic, Network
from .settings import Settings
from .teacher import labelled, stagger

TEMPERATURE = 0.05
"""Of the teacher's regrets, as shares of the mean JCT or so."""


class Validation:
    """Mean JCT in workloads of validation seeds, by the best score.

    Args:
        settings: of the training.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, network: nn.Module) -> dict[str, float]:
        """Return the mean JCT in seconds as ``score``."""
        with torch.inference_mode():
            return {"score": mean_jct(cast(Network, network), self._settings)}


def mean_jct(network: Network, settings: Settings) -> float:
    """Return the mean JCT in the workloads of validation."""
    seeds = range(VALIDATION, VALIDATION + settings.validation_seeds)
    episodes = kind(settings)(settings, 0, draw=[settings.mix.draw(x) for x in seeds], count=len(seeds))
    while (mask := episodes.mask).any():
        scores = network(torch.from_numpy(episodes.see())).numpy()
        episodes.take(np.where(mask, scores, -np.inf).argmax(axis=1))
    return float(np.mean([x.mean_jct for x in episodes.batch.finished]))


def kind(settings: Settings) -> type[Picking]:
    """Return the episodes of what is decided."""
    return Picking if settings.decides == "job" else Placing


def imitation(network: Network, settings: Settings, seed: int) -> Imitation:
    """Return what trains a network on the teacher's decisions."""
    labels = labelled(settings, seed)

    def draw(rng: np.random.Generator) -> Tensor:
        chosen = torch.from_numpy(rng.integers(0, len(labels.rows), settings.minibatch))
        mask = labels.mask[chosen]
        scores, regret = network(labels.rows[chosen])[mask], labels.regret[chosen][mask]
        index = mask.nonzero()[:, 0]
        return soft_cross_entropy(scores, index, regret, len(chosen), temperature=TEMPERATURE)

    updates, judge = settings.imitation_updates, Validation(settings)
    return Imitation(network, draw, judge, rate=settings.imitation_rate, updates=updates, seed=seed)


def ppo(network: Network, critic: Critic, settings: Settings, seed: int) -> Ppo:
    """Return what trains a network by PPO."""
    episodes = kind(settings)(settings, seed)
    stagger(episodes)
    return Ppo(network, critic, episodes, Validation(settings), settings, seed, pay=settings.pay)
