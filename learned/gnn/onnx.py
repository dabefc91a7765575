"""Any network over encodings in ONNX: written from its schema, and run by ONNX Runtime without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.intake import read_bytes
from gangplan.instances.outlet import write_whole

from ..encode.encoding import Encoding, Relation
from ..policy.runtime import quiet, require, session

if TYPE_CHECKING:
    from .network import Schema

_KEY = "gangplan-inputs"
"""Of the entry in the graph's metadata that says how many features each input has."""


def export(network: Any, schema: Schema, path: str | Path, outputs: Sequence[str] = ("scores",)) -> Path:
    """Write a network as ONNX and return the file; another ending than .onnx is replaced. Needs gangplan[learn,onnx].

    Args:
        network: from a `Batch` of one encoding to a tensor, or to a tuple of as many as there are `outputs`.
        schema: of the encodings.
        path: of the file.
        outputs: what they are called.

    Raises:
        InstanceError: if a package is missing.
    """
    require("onnx", "onnxscript")
    import torch
    from torch.export import Dim

    from .flat import Flat, names

    given: list[Any] = []
    shapes: list[dict[int, Any]] = []
    for i, (name, width) in enumerate(names(schema)):
        if name.startswith("weights."):  # after the edges that they belong to
            given.append(torch.zeros(given[-1].shape[1], width))
            shapes.append({0: shapes[-1][1]})
        elif name.startswith("edges."):
            # two counts that were alike at tracing could be taken for one
            given.append(torch.zeros(2, 5 + i, dtype=torch.long))
            shapes.append({1: Dim(f"n{i}")})
        else:
            given.append(torch.zeros(5 + i, width))
            shapes.append({0: Dim(f"n{i}")})
    flat = Flat(network.cpu().eval(), schema)
    with quiet(), torch.no_grad():
        made = torch.onnx.export(
            flat, tuple(given), dynamo=True, verbose=False, input_names=[name for name, _ in names(schema)],
            output_names=list(outputs), dynamic_shapes=(tuple(shapes),),
        )  # fmt: skip
    proto = made.model_proto
    entry = proto.metadata_props.add()
    entry.key, entry.value = _KEY, json.dumps(dict(names(schema)))
    path = Path(path).with_suffix(".onnx")
    write_whole({path: proto.SerializeToString()}, durable=True)
    return path


class OnnxNetwork:
    """A network that was exported, on one core.

    Args:
        path: of the file.

    Raises:
        InstanceError: if the file is missing or broken, or ONNX Runtime is.
    """

    def __init__(self, path: str | Path) -> None:
        require("onnxruntime")
        content = read_bytes(path)
        try:
            self._session = session(content)
            self._widths: dict[str, int] = json.loads(self._session.get_modelmeta().custom_metadata_map[_KEY])
        except (KeyError, ValueError):
            raise InstanceError("onnx", "is no policy that `gangplan learn export` wrote", str(path)) from None
        except Exception as error:  # its own classes, which derive from nothing narrower
            raise InstanceError("onnx", f"ONNX Runtime does not load it: {error}", str(path)) from None
        # a graph that does without some input does not have it
        self._wanted = {part.name for part in self._session.get_inputs()}

    def __call__(self, encoding: Encoding) -> list[NDArray[np.float32]]:
        """Return the outputs for an encoding.

        Raises:
            InstanceError: if it has other columns than those the network was trained on.
        """
        given: dict[str, Any] = {f"nodes.{kind}": x for kind, x in encoding.nodes.items()}
        for relation, edges in encoding.edges.items():
            given[f"edges.{joined(relation)}"], given[f"weights.{joined(relation)}"] = edges, encoding.weights[relation]
        for name, width in self._widths.items():
            if name not in given or (not name.startswith("edges.") and given[name].shape[1] != width):
                raise InstanceError("encoding", f"has no {name} of {width} columns: export the policy again")
        found: list[NDArray[np.float32]] = self._session.run(
            None, {k: v for k, v in given.items() if k in self._wanted}
        )
        return found


def joined(relation: Relation) -> str:
    """Return the name of a relation."""
    return "-".join(relation)
