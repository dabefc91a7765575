"""Imitation: minibatches of examples, and a loss that knows what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ..training.checkpoint import Tensors
from ..training.state import pack_optimizer, pack_random, prefixed, under, unpack_optimizer, unpack_random

Example = TypeVar("Example")


class Imitation(Generic[Example]):
    """Trains a network on examples, see `gangplan.learned.training.Learner`.

    Args:
        network: is trained.
        examples: what is known: an instance or a state of it, with what its actions are worth.
        loss: of a minibatch; the last argument draws symmetries and other augmentation.
        validate: figures on validation instances; ``score`` is among them, and smaller is better.
        minibatch: examples an update.
        rate: of Adam at the start; it goes down to a fiftieth.
        updates: how many there will be.
        seed: of what is drawn.
    """

    def __init__(
        self,
        network: nn.Module,
        examples: Sequence[Example],
        loss: Callable[[Sequence[Example], np.random.Generator], Tensor],
        validate: Callable[[], dict[str, float]],
        *,
        minibatch: int = 16,
        rate: float = 1e-3,
        updates: int = 2000,
        seed: int = 0,
    ) -> None:
        self.network, self.examples, self.loss, self.judge = network, examples, loss, validate
        self.minibatch, self.rate, self.updates = minibatch, rate, updates
        self._rng = np.random.default_rng(seed)
        self.optimizer = torch.optim.Adam(network.parameters(), rate)

    def update(self, step: int) -> dict[str, float]:
        """Make one step on a minibatch."""
        self.optimizer.param_groups[0]["lr"] = self.rate * max(1 - (step - 1) / self.updates, 0.02)
        chosen = self._rng.integers(0, len(self.examples), self.minibatch)
        loss = self.loss([self.examples[i] for i in chosen], self._rng)
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        return {"loss": float(loss.detach()), "gradient": float(norm)}

    def validate(self) -> dict[str, float]:
        """Return figures on the validation instances."""
        with torch.no_grad():
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
