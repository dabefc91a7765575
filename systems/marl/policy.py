"""MARL's policy: agents of a rack each, task by task the action of the best score."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from gangplan.learned.policy.network import NetworkPolicy
from gangplan.learned.training.checkpoint import Tensors
from gangplan.solvers.processes import one_thread

from ..interference.agents import Table
from ..interference.environment import Environment
from .episodes import Lane, decide
from .network import Actor
from .recipe import NAME, Settings


class MarlPolicy(NetworkPolicy):
    """A policy of `gangplan.systems.interference`, see `baselines.Policy` there.

    Args:
        seed: says whose each job is.
        fails: agent -> when it stops for good, seconds, as of `gangplan.systems.interference.agents.Team`.

    Attributes:
        lane: the environment that it was last asked about, with the table of its agents.
    """

    recipe, config = NAME, Settings

    def __init__(
        self, network: Actor, settings: Settings, seed: int = 0, fails: Mapping[int, float] | None = None
    ) -> None:
        super().__init__(network, settings)
        self.seed, self.fails = seed, fails
        self.lane: Lane | None = None

    @classmethod
    def build(cls, settings: Settings, tensors: Tensors) -> Actor:
        """Return the network of the settings."""
        return Actor(settings)

    def place(self, env: Environment) -> None:
        """Let all agents decide, once an interval.

        Raises:
            InstanceError: if the environment has no racks, or other types than the policy is for.
        """
        if self.lane is None or self.lane.env is not env:
            self.lane = Lane(env, Table(env.case, self.seed, self.fails), self.settings.types)
        lane, table = self.lane, self.lane.table
        if not env.waiting:
            return
        with torch.inference_mode(), one_thread():
            lane.begin()
            telling, hear = len(table.views), len(table.views) - 1
            while asks := table.asks():
                table.traffic.count(telling * hear, 4 * self.settings.width)
                step, telling = lane.look(asks), len(asks)
                decide(self.network, [step], None)
                for ask, action in zip(asks, step.action, strict=True):
                    table.take(ask, action)
            table.end()
