"""The learned policy for placement: weights, and what they say about places."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import PlacementProblem

from ..policy.restore import restore
from ..policy.weights import Card, save
from .build import Decision
from .head import Context, Head, pool
from .network import Network, one
from .pairs import pairs
from .settings import Settings


class PlacementPolicy:
    """Scores places for a gang.

    Args:
        network: the weights.
        settings: what made them.
        card: the model card, if they come from a file.
    """

    def __init__(self, network: Network, settings: Settings, card: Card | None = None) -> None:
        self.network, self.settings, self.card = network.eval(), settings, card
        self.head = Head(network)

    @classmethod
    def load(cls, path: str | Path) -> PlacementPolicy:
        """Read weights and their card.

        Raises:
            InstanceError: naming the file and what is wrong.
        """
        network, settings, card = restore(
            path, "placement", Settings, lambda known: Network(known.width, known.rounds, known.flat)
        )
        return cls(network, settings, card)

    def save(self, path: str | Path) -> None:
        """Write weights and card."""
        card = self.card or Card("placement", "placement", settings=asdict(self.settings))
        save(path, dict(self.network.state_dict()), card)

    def context(self, problem: PlacementProblem) -> Context:
        """Return what the network makes of a batch: once, before the first gang is placed."""
        with torch.no_grad():
            found = self.network.context(one(problem, self.network.flat))
        jobs, nodes, turn = (x.double().numpy() for x in found)
        return Context(jobs, nodes, turn)

    def scores(self, decision: Decision, context: Context) -> FloatArray:
        """Return the score of each place of a decision, (C,)."""
        if len(decision.rows) == 1:
            return np.zeros(1)
        place, node = pairs(decision)
        pooled = pool(context.nodes, place, node, len(decision.rows))
        return self.head(decision.x, context.jobs[decision.job], pooled)

    def score(self, observation: tuple[Decision, Context]) -> FloatArray:
        """Return the scores of the places of a decision, see `gangplan.learned.check_policy`."""
        return self.scores(*observation)

    def choose(self, observation: Any, seed: int | None = None) -> int:
        """Return the place of the best candidate, or of one drawn by `seed`."""
        scores = self.score(observation)
        noise = 0.0 if seed is None else np.random.default_rng(seed).gumbel(size=len(scores))
        return int(np.argmax(scores + noise))
