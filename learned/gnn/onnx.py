"""A network over graphs in ONNX: written from its schema, and run by ONNX Runtime without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError

from ..policy import onnx
from .encoding import Encoding, Relation

if TYPE_CHECKING:
    from .network import Schema


def export(network: Any, schema: Schema, path: str | Path, outputs: Sequence[str] = ("scores",)) -> Path:
    """Write a network as ONNX and return the file, see `gangplan.learned.policy.onnx.export`.

    Args:
        network: from a `Batch` of one encoding to a tensor, or to a tuple of as many as there are `outputs`.
        schema: of the encodings.
        path: of the file.
        outputs: what they are called.

    Raises:
        InstanceError: if a package is missing.
    """
    onnx.require("onnx", "onnxscript")
    import torch

    from .network import Batch

    widths = _inputs(schema)
    given: dict[str, tuple[Any, dict[int, str]]] = {}
    for i, (name, width) in enumerate(widths.items()):
        # two counts that were alike at tracing could be taken for one
        count, edges = 5 + i, "edges." + name.partition(".")[2]
        if name.startswith("edges."):
            given[name] = torch.zeros(2, count, dtype=torch.long), {1: f"n{i}"}
        elif name.startswith("weights."):  # after the edges that they belong to
            given[name] = torch.zeros(given[edges][0].shape[1], width), {0: given[edges][1][1]}
        else:
            given[name] = torch.zeros(count, width), {0: f"n{i}"}

    class Flat(torch.nn.Module):
        """The network as a function of tensors alone, in the order of the inputs: what an exporter can trace."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network.cpu().eval()

        def forward(self, *tensors: torch.Tensor) -> Any:
            """Return what the network does with the batch that the tensors make up."""
            by = dict(zip(widths, tensors, strict=True))
            nodes = {kind: by[f"nodes.{kind}"] for kind in schema.nodes}
            edges = {relation: by[f"edges.{_joined(relation)}"] for relation in schema.edges}
            weights = {r: by.get(f"weights.{_joined(r)}", edges[r].new_zeros(1, 0)) for r in schema.edges}
            counts = {kind: torch.ones_like(x[:, 0], dtype=torch.long).sum() for kind, x in nodes.items()}
            first = {kind: torch.stack([count * 0, count]) for kind, count in counts.items()}
            return self.network(Batch(nodes, edges, weights, first))

    return onnx.export(Flat(), path, given, outputs, widths)


class OnnxNetwork:
    """A network over graphs that was exported, on one core; see `gangplan.learned.policy.onnx.OnnxSession`."""

    def __init__(self, path: str | Path) -> None:
        self._session = onnx.OnnxSession(path)

    def __call__(self, encoding: Encoding) -> list[NDArray[np.float32]]:
        """Return the outputs for an encoding.

        Raises:
            InstanceError: if it has other columns than those the network was trained on.
        """
        given: dict[str, Any] = {f"nodes.{kind}": x for kind, x in encoding.nodes.items()}
        for relation, edges in encoding.edges.items():
            name = _joined(relation)
            given[f"edges.{name}"], given[f"weights.{name}"] = edges, encoding.weights[relation]
        for name, width in self._session.about.items():
            if name not in given or (not name.startswith("edges.") and given[name].shape[1] != width):
                raise InstanceError("encoding", f"has no {name} of {width} columns: export the policy again")
        return self._session(**given)


def _inputs(schema: Schema) -> dict[str, int]:
    """Return the tensors by name with their features: of each type, then edges of each relation, and weights if any."""
    found = {f"nodes.{kind}": width for kind, width in schema.nodes.items()}
    for relation, width in schema.edges.items():
        found[f"edges.{_joined(relation)}"] = width
        if width:
            found[f"weights.{_joined(relation)}"] = width
    return found


def _joined(relation: Relation) -> str:
    """Return the name of a relation."""
    return "-".join(relation)
