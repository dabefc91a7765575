"""What trains the network: imitation of a teacher, then PPO."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.ppo import Ppo
from gangplan.learned.training.ragged import soft_cross_entropy
from gangplan.learned.training.trainer import Trainer

from ..suites import VALIDATION
from .episodes import Picking, Placing
from .network import Critic, Network
from .recipe import Settings
from .teacher import labelled, stagger

TEMPERATURE = 0.05
"""Of the teacher's regrets, as shares of the mean JCT or so."""


class Training(Trainer[Settings]):
    """Imitation of a teacher, then PPO."""

    def network(self) -> Network:
        """Return the network of the settings."""
        return Network(self.settings)

    def critic(self) -> Critic:
        """Return a network of the same form, for values."""
        return Critic(self.settings)

    def validate(self, network: Network) -> dict[str, float]:
        """Return the mean JCT in seconds in workloads of validation seeds, by the best action, as ``score``."""
        of = self.settings
        seeds = range(VALIDATION, VALIDATION + of.validation_seeds)
        episodes = kind(of)(of, 0, draw=[of.mix.draw(x) for x in seeds], count=len(seeds))
        with torch.inference_mode():
            while (mask := episodes.mask).any():
                scores = network(torch.from_numpy(episodes.see())).numpy()
                episodes.take(np.where(mask, scores, -np.inf).argmax(axis=1))
        return {"score": float(np.mean([x.mean_jct for x in episodes.batch.finished]))}

    def imitation(self, network: Network) -> Imitation:
        """Return what trains a network on the teacher's decisions."""
        of, labels = self.settings, labelled(self.settings, self.seed)

        def draw(rng: np.random.Generator) -> Tensor:
            chosen = torch.from_numpy(rng.integers(0, len(labels.rows), of.minibatch))
            mask = labels.mask[chosen]
            scores, regret = network(labels.rows[chosen])[mask], labels.regret[chosen][mask]
            index = mask.nonzero()[:, 0]
            return soft_cross_entropy(scores, index, regret, len(chosen), temperature=TEMPERATURE)

        rate, updates = of.imitation_rate, of.imitation_updates
        return Imitation(network, draw, self.validate, rate=rate, updates=updates, seed=self.seed)

    def rl(self, network: Network) -> Ppo:
        """Return what trains a network by PPO."""
        episodes = kind(self.settings)(self.settings, self.seed)
        stagger(episodes)
        return Ppo(self, network, episodes, pay=self.settings.pay)


def kind(settings: Settings) -> type[Picking]:
    """Return the episodes of what is decided."""
    return Picking if settings.decides == "job" else Placing
