"""What the loop trains, and what most learners have in common: networks, optimizers and random generators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .checkpoint import (
    Tensors,
    pack_optimizer,
    pack_random,
    pack_torch,
    prefixed,
    under,
    unpack_optimizer,
    unpack_random,
    unpack_torch,
)

if TYPE_CHECKING:
    import torch


class Learner(Protocol):
    """Something that gets better by updates, and whose whole state can be written down.

    The state holds whatever the next update depends on: parameters, the optimizer's state, and the random generators.
    A learner that was loaded goes on exactly as the one that was saved. The tensors of the policy itself have names
    that begin with ``policy.``.
    """

    def update(self, step: int) -> dict[str, float]:
        """Make update number `step`, from 1 on, and return the figures to log."""

    def validate(self) -> dict[str, float]:
        """Return figures on the validation seeds; ``score`` is among them, and smaller is better."""

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return tensors by name, and everything else as what JSON can hold."""

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""


class NetworkLearner:
    """A learner whose state is that of its parts; who derives from this makes updates and validates.

    Attributes:
        networks: by name; the one called ``policy`` is what training is for.
        optimizers: by name.
        generators: of numpy or of torch, by name.
    """

    networks: dict[str, torch.nn.Module]
    optimizers: dict[str, torch.optim.Optimizer]
    generators: dict[str, np.random.Generator | torch.Generator]

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        found: Tensors = {}
        plain: dict[str, Any] = {}
        for name, network in self.networks.items():
            found |= prefixed(name, network.state_dict())
        for name, optimizer in self.optimizers.items():
            tensors, plain[name] = pack_optimizer(optimizer)
            found |= prefixed(name, tensors)
        for name, generator in self.generators.items():
            if isinstance(generator, np.random.Generator):
                plain[name] = pack_random(generator)
            else:
                found[name] = pack_torch(generator)
        return found, plain

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        for name, network in self.networks.items():
            network.load_state_dict(under(name, tensors))
        for name, optimizer in self.optimizers.items():
            unpack_optimizer(optimizer, under(name, tensors), plain[name])
        for name, generator in self.generators.items():
            if isinstance(generator, np.random.Generator):
                unpack_random(generator, plain[name])
            else:
                unpack_torch(generator, tensors[name])


def clipped_step(
    optimizer: torch.optim.Optimizer, loss: torch.Tensor, network: torch.nn.Module, clip: float = 1.0
) -> float:
    """Make a step down the gradient of a loss, scaled down to a norm of `clip`; return its norm before."""
    from torch.nn.utils import clip_grad_norm_

    optimizer.zero_grad()
    loss.backward()
    norm = float(clip_grad_norm_(network.parameters(), clip))
    optimizer.step()
    return norm
