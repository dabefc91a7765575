"""How far a network is, on validation instances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .network import Network, compiled
from .player import Player
from .search import plans


class Validation:
    """Mean costs on validation instances, as shares of the base's: greedy and of 16 schedules.

    Args:
        network: is judged.
        players: the instances.
    """

    def __init__(self, network: Network, players: Sequence[Player]) -> None:
        self.network, self.players = network, players
        self.graphs = [x.graph() for x in players]

    def __call__(self) -> dict[str, float]:
        """Return ``greedy`` and ``sampled``, and ``score``, which is half of each."""
        greedy, sampled = [], []
        for player, net in zip(self.players, compiled(self.network, self.graphs), strict=True):
            costs = [cost for _, cost in zip(range(16), plans(player, net), strict=False)]
            greedy.append(costs[0] / player.base.cost)
            sampled.append(min(costs) / player.base.cost)
        a, b = float(np.mean(greedy)), float(np.mean(sampled))
        return {"score": (a + b) / 2, "greedy": a, "sampled": b}
