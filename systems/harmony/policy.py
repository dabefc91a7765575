"""Harmony's policy: task by task the action of the best score, until the interval ends."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

from gangplan.learned.policy import weights
from gangplan.solvers.processes import one_thread

from ..interference.environment import Environment
from .episodes import log_probabilities
from .network import policy_network
from .observe import Lane
from .settings import NAME, Settings


class HarmonyPolicy:
    """A policy of `gangplan.systems.interference`, see `baselines.Policy` there.

    Args:
        network: scores actions.
        settings: what it was trained with.
    """

    def __init__(self, network: nn.Module, settings: Settings) -> None:
        self.network, self.settings = network.cpu().eval(), settings

    def place(self, env: Environment) -> None:
        """Place tasks of waiting jobs, once an interval.

        Raises:
            InstanceError: if the environment has other servers or types than the policy is for.
        """
        lane = Lane(env, self.settings)
        with torch.inference_mode(), one_thread():
            while (mask := lane.mask)[:-1].any():
                action = int(mask.argmax())
                if mask.sum() > 1:
                    logs = log_probabilities(self.network, torch.from_numpy(lane.seen[None]), torch.from_numpy(mask))
                    action = int(logs.argmax())
                if action == len(mask) - 1:
                    break
                lane.place(action)
                lane.look()

    def save(self, path: str | Path, card: weights.Card | None = None) -> None:
        """Write weights and a model card."""
        card = card or weights.Card(NAME, NAME, settings=asdict(self.settings))
        weights.save(path, self.network.state_dict(), card)

    @classmethod
    def load(cls, path: str | Path) -> HarmonyPolicy:
        """Read what `save` wrote.

        Raises:
            InstanceError: if it is missing, broken or of another policy.
        """
        network, settings, _ = weights.restore(path, NAME, Settings, policy_network)
        return cls(network, settings)
