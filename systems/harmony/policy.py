"""Harmony's policy: task by task the action of the best score, until the interval ends."""

from __future__ import annotations

import torch
from torch import nn

from gangplan.learned.policy.network import NetworkPolicy
from gangplan.learned.training.checkpoint import Tensors
from gangplan.solvers.processes import one_thread

from ..interference.environment import Environment
from .episodes import log_probabilities
from .network import policy_network
from .observe import Lane
from .recipe import NAME, Settings


class HarmonyPolicy(NetworkPolicy):
    """A policy of `gangplan.systems.interference`, see `baselines.Policy` there."""

    recipe, config = NAME, Settings

    @classmethod
    def build(cls, settings: Settings, tensors: Tensors) -> nn.Module:
        """Return the network of the settings."""
        return policy_network(settings)

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
