"""What the loop trains, and what most learners have in common: networks, optimizers and random generators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..policy.weights import Tensors
from .checkpoint import prefixed, under

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
        optimizers: by name; all that they remember of a parameter is tensors, as of Adam.
        generators: of torch, or of numpy with a state of numbers alone, as of `default_rng`; by name.
    """

    networks: dict[str, torch.nn.Module]
    optimizers: dict[str, torch.optim.Optimizer]
    generators: dict[str, np.random.Generator | torch.Generator]

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        tensors: Tensors = {}
        plain: dict[str, Any] = {}
        for name, network in self.networks.items():
            tensors |= prefixed(name, network.state_dict())
        for name, optimizer in self.optimizers.items():
            packed = optimizer.state_dict()
            for number, own in packed["state"].items():
                tensors |= prefixed(f"{name}.{number}", own)
            plain[name] = {"groups": packed["param_groups"]}
        for name, generator in self.generators.items():
            if isinstance(generator, np.random.Generator):
                plain[name] = generator.bit_generator.state
            else:
                tensors[name] = generator.get_state()
        return tensors, plain

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        for name, network in self.networks.items():
            network.load_state_dict(under(name, tensors))
        for name, optimizer in self.optimizers.items():
            own = under(name, tensors)
            state = {int(number): under(number, own) for number in {key.partition(".")[0] for key in own}}
            optimizer.load_state_dict({"state": state, "param_groups": plain[name]["groups"]})
        for name, generator in self.generators.items():
            if isinstance(generator, np.random.Generator):
                generator.bit_generator.state = plain[name]
            else:
                generator.set_state(tensors[name])


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
