"""Blocking rates of a network on fixed cases, the best score deciding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .network import Network, compiled
from .play import play
from .rows import desk
from .worlds import Episode, World


class Validation:
    """Blocking rates by setting, published way of counting: jobs that end after the horizon are blocked.

    Args:
        cases: worlds, and episodes in them; episodes of one name are averaged.
        choose: see `gangplan.learned.ramp.rows.desk`.
    """

    def __init__(self, cases: Sequence[tuple[World, Sequence[Episode]]], *, choose: bool = True) -> None:
        self._cases = [(world, list(episodes), desk(world.tables, choose=choose)) for world, episodes in cases]

    def __call__(self, network: Network) -> dict[str, float]:
        """Return the blocking rate of each setting, and their mean as ``score``."""
        found: dict[str, list[float]] = {}
        for world, episodes, place in self._cases:
            weights = compiled(network, world.graphs)
            for x in episodes:
                finish = np.zeros(len(x.kind))
                play(x.kind, x.beta, x.gap, world.tables, world.menus, weights, place, finish)
                found.setdefault(x.name, []).append(1 - float((finish <= x.horizon).mean()))
        rates = {name: float(np.mean(values)) for name, values in found.items()}
        return {"score": float(np.mean(list(rates.values()))), **rates}
