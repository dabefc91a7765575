"""The policy gradient over all candidates: states of the policy's own way, each candidate worth its own rollout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ..encode.encoding import Encoding
from ..training.checkpoint import Tensors
from ..training.state import pack_optimizer, pack_random, prefixed, under, unpack_optimizer, unpack_random
from .imitate import loss_of
from .network import Network, compiled
from .player import Player
from .search import plans
from .settings import Settings
from .teach import taught

_NOISE = 0.5


class Gradient:
    """Trains by what the policy itself makes of each candidate, see `gangplan.learned.training.Learner`.

    Args:
        network: is trained.
        players, graphs: instances.
        validate: figures on validation instances.
        settings: see `Settings`.
        seed: of what is drawn.
    """

    def __init__(
        self,
        network: Network,
        players: Sequence[Player],
        graphs: Sequence[Encoding],
        validate: Callable[[], dict[str, float]],
        settings: Settings,
        seed: int,
    ) -> None:
        self.network, self.players, self.graphs, self.judge, self.settings = (
            network,
            players,
            graphs,
            validate,
            settings,
        )
        self._rng = np.random.default_rng([seed, 2])
        self.optimizer = torch.optim.Adam(network.parameters(), settings.rl_rate)

    def update(self, step: int) -> dict[str, float]:
        """Walk on some instances, label a few states of each, and make one step."""
        s = self.settings
        self.optimizer.param_groups[0]["lr"] = s.rl_rate * max(1 - (step - 1) / s.rl_updates, 0.05)
        chosen = self._rng.integers(0, len(self.players), s.rl_minibatch).tolist()
        nets = compiled(self.network, [self.graphs[i] for i in chosen])
        found = [
            taught(self.players[i], self.graphs[i], net, net, self._rng, states=s.rl_states, noise=_NOISE)
            for i, net in zip(chosen, nets, strict=True)
        ]
        loss = loss_of(self.network, [x for x in found if x is not None])
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        return {"loss": float(loss.detach())}

    def validate(self) -> dict[str, float]:
        """Return figures on the validation instances."""
        return self.judge()

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        tensors, plain = pack_optimizer(self.optimizer)
        own = prefixed("policy", self.network.state_dict())
        return own | prefixed("optimizer", tensors), {"optimizer": plain, "random": pack_random(self._rng)}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.network.load_state_dict(under("policy", tensors))
        unpack_optimizer(self.optimizer, under("optimizer", tensors), plain["optimizer"])
        unpack_random(self._rng, plain["random"])


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
