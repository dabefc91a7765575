"""The policy: weights, and schedules by them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.solvers.schedule.prepare import Prepared, prepare

from ..gnn import Schema, schema_of
from ..policy import weights
from ..policy.restore import restore
from .network import Network, compiled
from .play import Net
from .player import Player
from .search import plans
from .settings import Settings

NAME = "schedule"


class SchedulePolicy:
    """Builds schedules by a network's scores.

    Args:
        network: rates candidates.
        settings: what it was trained with.
    """

    def __init__(self, network: Network, settings: Mapping[str, Any] | None = None) -> None:
        self.network, self.settings = network.eval(), dict(settings or asdict(Settings()))

    def nets(self, players: Sequence[Player]) -> list[Net]:
        """Return the network for each of some instances, run once.

        Raises:
            FloatingPointError: if it says something that is no number.
        """
        found = compiled(self.network, [player.graph() for player in players])
        if not all(np.isfinite(x).all() for net in found for x in net):
            raise FloatingPointError("the network's vectors are not finite")
        return found

    def schedule(self, p: Prepared, samples: int = 1, seconds: float = np.inf) -> tuple[float, Any]:
        """Return goal and plan, the best of so many; plan is None if a job that must run had no time in all of them.

        Args:
            p: the problem.
            samples: schedules to build, see `plans`; 1 is the greedy one.
            seconds: after which no other is begun.
        """
        until = time.perf_counter() + seconds
        player = Player(p)
        best, plan = np.inf, None
        for i, cost in enumerate(plans(player, self.nets([player])[0]), 1):
            if cost < best:
                best, plan = cost, player.plan()
            if i >= samples or time.perf_counter() >= until:
                break
        return best, plan

    def save(self, path: str | Path, card: weights.Card | None = None) -> None:
        """Write weights and a model card."""
        weights.save(path, self.network.state_dict(), card or weights.Card(NAME, NAME, settings=self.settings))

    @classmethod
    def load(cls, path: str | Path) -> SchedulePolicy:
        """Read what `save` wrote.

        Raises:
            InstanceError: if it is missing, broken or of another policy.
        """
        network, _, card = restore(path, NAME, Settings, network_of)
        return cls(network, card.settings)


def network_of(settings: Settings) -> Network:
    """Return a new network."""
    return Network(_schema(), settings.width, settings.rounds)


@lru_cache(maxsize=1)
def shipped() -> SchedulePolicy:
    """Return the policy that comes with the package; it is read once."""
    return SchedulePolicy.load(weights.find(NAME))


@lru_cache(maxsize=1)
def _schema() -> Schema:
    jobs = tuple(MoldableJob(name, (1,), (1.0,)) for name in "ab")
    return schema_of(Player(prepare(ScheduleProblem(jobs, Pool(1)))).graph())


def forget() -> None:
    """Read the shipped weights anew when they are next asked for."""
    shipped.cache_clear()
