"""The PAC-ML policy: a degree and a block for every job that arrives on a RAMP cluster, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gangplan.instances import OpGraph
from gangplan.instances.arrays import FloatArray

from ..policy import weights
from .decide import Decider, Observation
from .network import Network, encode
from .settings import Settings

NAME = "pacml"


class RampPolicy(Decider):
    """Decides by the best score of a network.

    Args:
        network: scores.
        settings: what it was trained with.
        device: where the network runs.
        guarded: see `gangplan.learned.ramp.decide.Decider`.
    """

    def __init__(
        self,
        network: Network,
        settings: Mapping[str, Any] | None = None,
        *,
        device: str = "cpu",
        guarded: bool = True,
    ) -> None:
        self.network, self.device = network.to(device).eval(), device
        self.settings = {**(settings or {}), "width": network.width, "variant": network.variant}
        super().__init__(choose=bool(self.settings.get("blocks", True)), guarded=guarded)

    def rate(self, observation: Observation) -> FloatArray:
        """Return what the network says of each row, float64 (A,)."""
        with torch.inference_mode():
            rows = torch.from_numpy(observation.rows).to(self.device)
            found = self.network(rows, self.job(observation.graph))
            return np.asarray(found.cpu().numpy(), dtype=np.float64)

    def embed(self, graph: OpGraph) -> torch.Tensor:
        """Return what a job adds to the first layer, (1, width)."""
        return self.network.offsets(encode([graph]))

    def save(self, path: str | Path, card: weights.Card | None = None) -> None:
        """Write weights and a model card."""
        card = card or weights.Card(NAME, NAME, settings=self.settings)
        weights.save(path, self.network.state_dict(), card)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "cpu", guarded: bool = True) -> RampPolicy:
        """Read what `save` wrote.

        Raises:
            InstanceError: if it is missing, broken or of another policy.
        """
        network, _, card = weights.restore(path, NAME, Settings, lambda known: Network(known.width, known.variant))
        return cls(network, card.settings, device=device, guarded=guarded)
