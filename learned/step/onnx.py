"""The policy in ONNX: scores of the settings, and the settings, run without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..gnn.onnx import export as write


class _WithBook(nn.Module):
    """The network's scores, and its book beside them."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        return self.network(batch), self.network.book * 1.0


def export(policy: Any, path: Path) -> tuple[Path]:
    """Write a policy as one ONNX file with the outputs ``scores`` (1, K) and ``book`` (K, D); see `gnn.onnx.export`.

    Raises:
        InstanceError: if a package is missing.
    """
    with torch.no_grad():
        return (write(_WithBook(policy.network), policy.network.body.schema, path, ("scores", "book")),)
