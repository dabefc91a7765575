"""Imitation: learn what every row of a decision is worth to the teacher, not only which one it takes."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..training.checkpoint import Tensors
from ..training.losses import soft_cross_entropy
from ..training.segments import segment_max
from ..training.state import pack_optimizer, pack_random, prefixed, under, unpack_optimizer, unpack_random
from .network import Network
from .settings import Settings
from .teacher import Labels
from .validation import Validation
from .worlds import World

AVERAGED = 0.995
"""Of the average of the weights, that is left after an update: what is judged and kept. The weights of single updates
block up to three points more or less than those a hundred updates before, at equal loss."""


class Imitation:
    """Trains a network on labels and keeps the average of its weights, see `gangplan.learned.training.Learner`.

    Args:
        network: is trained.
        labelled: worlds, and labels of decisions in them.
        validation: judges it.
        settings: temperature, minibatch.
        rate: of learning, at first.
        updates: after which the learning rate has gone down to nothing.
        seed: of the shuffles.
    """

    def __init__(
        self,
        network: Network,
        labelled: Sequence[tuple[World, Labels]],
        validation: Validation,
        settings: Settings,
        rate: float,
        updates: int,
        seed: int,
    ) -> None:
        self.network, self.validation, self.settings, self.updates = network, validation, settings, updates
        self._rate = rate
        self._worlds = [world for world, _ in labelled]
        self._rows = [torch.from_numpy(x.rows) for _, x in labelled]
        self._value = [torch.from_numpy(x.value) for _, x in labelled]
        self._first = [x.first for _, x in labelled]
        self._kind = [x.kind for _, x in labelled]
        self._weight = np.array([len(x.kind) for _, x in labelled], dtype=float)
        self._rng = np.random.default_rng(seed)
        self._average = copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(network.parameters(), rate)

    def update(self, step: int) -> dict[str, float]:
        """Make one step on a minibatch of one world."""
        share = max(1 - (step - 1) / self.updates, 0.02)
        self.optimizer.param_groups[0]["lr"] = self._rate * share
        i = int(self._rng.choice(len(self._worlds), p=self._weight / self._weight.sum()))
        chosen = self._rng.integers(0, len(self._kind[i]), self.settings.minibatch)
        rows, index = gather(self._first[i], chosen)
        value = self._value[i][rows]
        n = len(chosen)
        regret = segment_max(value, index, n)[index] - value
        offsets = self.network.offsets(self._worlds[i].graphs)[torch.from_numpy(self._kind[i][chosen])]
        scores = self.network(self._rows[i][rows], offsets[index])
        loss = soft_cross_entropy(scores, index, regret, n, temperature=self.settings.temperature)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        keep = min(AVERAGED, step / (step + 10))  # at first over what there is
        with torch.no_grad():
            for mean, new in zip(self._average.parameters(), self.network.parameters(), strict=True):
                mean.lerp_(new, 1 - keep)
        return {"loss": float(loss.detach())}

    def validate(self) -> dict[str, float]:
        """Return blocking rates on the validation seeds."""
        return self.validation(self._average)

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        tensors, plain = pack_optimizer(self.optimizer)
        own = prefixed("policy", self._average.state_dict()) | prefixed("last", self.network.state_dict())
        return own | prefixed("optimizer", tensors), {"optimizer": plain, "random": pack_random(self._rng)}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        self._average.load_state_dict(under("policy", tensors))
        self.network.load_state_dict(under("last", tensors))
        unpack_optimizer(self.optimizer, under("optimizer", tensors), plain["optimizer"])
        unpack_random(self._rng, plain["random"])


def gather(first: Any, chosen: Any) -> tuple[Tensor, Tensor]:
    """Return the rows of some decisions, and which of these each row belongs to, int64 (A,) each."""
    length = first[chosen + 1] - first[chosen]
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    rows = np.repeat(first[chosen], length) + within
    return torch.from_numpy(rows), torch.from_numpy(np.repeat(np.arange(len(chosen)), length))
