"""Imitation: minibatches of examples, and a loss that knows what they say."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from .learner import NetworkLearner, clipped_step

LEAST = 0.02
"""What the learning rate goes down to, as a share of the first."""


class Averaged(NetworkLearner):
    """Trains a network whose weights may be averaged, see `gangplan.learned.training.Learner`; `update` is left open.

    Args:
        network: is trained.
        validate: from a network to figures on validation instances; ``score`` is among them, and smaller is better.
        rate: of Adam at the start.
        updates: how many there will be.
        seed: of what is drawn.
        clip: gradients are scaled down to this norm.
        average: what is left after a step of the average of the weights, which then is what is judged and kept; None
            for the weights themselves.
    """

    def __init__(
        self,
        network: nn.Module,
        validate: Callable[[nn.Module], dict[str, float]],
        *,
        rate: float,
        updates: int,
        seed: int,
        clip: float = 1.0,
        average: float | None = None,
    ) -> None:
        self.network, self._judge, self._rng = network, validate, np.random.default_rng(seed)
        self._rate, self._updates, self._clip, self._keep = rate, updates, clip, average
        self._kept = network if average is None else copy.deepcopy(network)
        self._optimizer = torch.optim.Adam(network.parameters(), rate)
        self.networks = {"policy": self._kept} | ({} if average is None else {"last": network})
        self.optimizers, self.generators = {"optimizer": self._optimizer}, {"random": self._rng}

    def average(self, most: float = 1.0) -> None:
        """Take the weights into their average, of which at most so much is left."""
        if self._keep is not None:
            keep = min(self._keep, most)
            with torch.no_grad():
                for mean, new in zip(self._kept.parameters(), self.network.parameters(), strict=True):
                    mean.lerp_(new, 1 - keep)

    def validate(self) -> dict[str, float]:
        """Return figures on the validation instances."""
        with torch.no_grad():
            return self._judge(self._kept)


class Imitation(Averaged):
    """Trains a network on examples.

    Args:
        draw: draws a minibatch and returns its loss.
        network, validate, more: see `Averaged`.
    """

    def __init__(
        self,
        network: nn.Module,
        draw: Callable[[np.random.Generator], Tensor],
        validate: Callable[[nn.Module], dict[str, float]],
        **more: float | None,
    ) -> None:
        super().__init__(network, validate, **more)  # type: ignore[arg-type]
        self._draw = draw

    def update(self, step: int) -> dict[str, float]:
        """Make one step on a minibatch."""
        loss = self._draw(self._rng)
        self._optimizer.param_groups[0]["lr"] = self._rate * max(1 - (step - 1) / self._updates, LEAST)
        norm = clipped_step(self._optimizer, loss, self.network, self._clip)
        self.average(step / (step + 10))  # at first it is over what there is
        return {"loss": float(loss.detach()), "gradient": norm}
