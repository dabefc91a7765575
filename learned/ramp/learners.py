"""What trains the network: imitation of what every row of a decision is worth to the teacher, and PPO."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..training.checkpoint import seeded
from ..training.imitation import Imitation
from ..training.ppo import Ppo
from ..training.ragged import rows_of, segment_max, soft_cross_entropy
from .episodes import ParallelEpisodes
from .evaluate import Validation
from .network import Critic, Network
from .scenarios import Scenario
from .settings import Settings
from .teacher import Labels

AVERAGED = 0.995
"""Of the average of the weights, that is left after an update. The weights of single updates block up to three points
more or less than those a hundred updates before, at equal loss."""
PAID = 0.2
"""For a job accepted: returns are then about 10, whatever the blocking."""


def imitation(
    network: Network,
    labelled: Sequence[tuple[Scenario, Labels]],
    validation: Validation,
    settings: Settings,
    rate: float,
    updates: int,
    seed: int,
) -> Imitation:
    """Return what trains a network on labels of decisions, a minibatch of one scenario at a time.

    Args:
        network: is trained.
        labelled: scenarios, and labels of decisions in them.
        validation: judges it.
        settings: temperature, minibatch.
        rate: of learning, at first.
        updates: after which the learning rate has gone down to nothing.
        seed: of the shuffles.
    """
    rows = [torch.from_numpy(x.rows) for _, x in labelled]
    values = [torch.from_numpy(x.value) for _, x in labelled]
    weight = np.array([len(x.kind) for _, x in labelled], dtype=float)

    def draw(rng: np.random.Generator) -> Tensor:
        i = int(rng.choice(len(labelled), p=weight / weight.sum()))
        scenario, labels = labelled[i]
        chosen = rng.integers(0, len(labels.kind), settings.minibatch)
        at, index = rows_of(labels.first, chosen)
        value, n = values[i][at], len(chosen)
        regret = segment_max(value, index, n)[index] - value
        offsets = network.offsets(scenario.graphs)[torch.from_numpy(labels.kind[chosen])]
        scores = network(rows[i][at], offsets[index])
        return soft_cross_entropy(scores, index, regret, n, temperature=settings.temperature)

    return Imitation(network, draw, validation, rate=rate, updates=updates, seed=seed, clip=math.inf, average=AVERAGED)


def reinforcement(
    network: Network,
    episodes: Sequence[ParallelEpisodes],
    validation: Validation,
    settings: Settings,
    seed: int,
    device: str = "cpu",
) -> Ppo:
    """Return what trains a network by PPO on episodes in one or more scenarios, a reward for every job accepted."""
    with seeded(seed + 1):  # the critic's first weights
        critic = Critic(settings.width)
    with torch.no_grad():
        critic.layers[-1].bias.fill_(0.8 * PAID / (1 - settings.gamma))

    def vectors() -> list[Tensor]:
        return [network.offsets(x.scenario.graphs) for x in episodes]

    judge: Any = validation
    return Ppo(network, critic, episodes, vectors, judge, settings, seed, pay=PAID, device=device)
