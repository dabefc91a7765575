"""Policies that a network decides for: how they score, draw, are saved and loaded."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.errors import in_file
from gangplan.solvers.processes import one_thread

from .weights import Card, Tensors, load_for, match, save

if TYPE_CHECKING:
    from torch import nn


class NetworkPolicy:
    """A policy with a network and the settings that it was trained with.

    Attributes:
        recipe: its name.
        make: from settings to a network, unless `build` is another.
        config: the dataclass of its settings; a card may have keys in its `RETIRED`, too.
    """

    recipe: ClassVar[str]
    config: ClassVar[type[Any]]
    make: ClassVar[Any]

    def __init__(self, network: nn.Module, settings: Any) -> None:
        self.network, self.settings = network.cpu().eval(), settings

    @classmethod
    def build(cls, settings: Any, tensors: Tensors) -> nn.Module:
        """Return a network for settings, before it gets its weights, the tensors."""
        return cls.make(settings)

    def scores(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return what the network says of rows, on one core."""
        import torch

        with torch.inference_mode(), one_thread():
            found: NDArray[np.float32] = self.network(torch.from_numpy(rows)).numpy()
        return found

    def save(self, path: str | Path, card: Card | None = None) -> None:
        """Write weights and a model card."""
        save(path, self.network.state_dict(), card or Card(self.recipe, self.recipe, settings=asdict(self.settings)))

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Self:
        """Read what `save` wrote; options are those of the class."""
        import torch

        arrays, _, settings = load_for(cls.recipe, cls.config, path)
        tensors = {name: torch.from_numpy(x) for name, x in arrays.items()}
        with in_file(path):
            network = cls.build(settings, tensors)
        match(tensors, {name: tuple(x.shape) for name, x in network.state_dict().items()}, path)
        network.load_state_dict(tensors)
        return cls(network, settings, **options)


def pick(scores: FloatArray, seed: int | None = None) -> int:
    """Return the place of the best score, or of one drawn by that seed from their softmax."""
    if seed is not None:
        scores = scores + np.random.default_rng(seed).gumbel(size=len(scores))
    return int(np.argmax(scores))
