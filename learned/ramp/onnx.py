"""The PAC-ML policy in ONNX: written from the network, and run by ONNX Runtime without torch.

Two graphs, for a job's ops are read once and its candidates at every decision: FILE.onnx scores the rows (A, WIDTH) of
a decision, given what the job adds to the first layer; FILE.job.onnx computes that from the ops.
"""

from __future__ import annotations

import json
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError, OpGraph
from gangplan.instances.arrays import FloatArray
from gangplan.instances.intake import read_bytes
from gangplan.instances.outlet import write_whole

from ..policy.runtime import quiet, require, session
from .decide import Decider, Observation
from .ops import OP, read
from .rows import WIDTH

if TYPE_CHECKING:
    from .policy import RampPolicy

_KEY = "gangplan"
"""Of the entry in the scorer's metadata that says what a policy does besides scoring."""


def files(path: str | Path) -> tuple[Path, Path]:
    """Return the files of the scorer and of the job encoder, given the first; another ending is replaced."""
    path = Path(path).with_suffix(".onnx")
    return path, path.with_suffix(".job.onnx")


def export(policy: RampPolicy, path: str | Path) -> tuple[Path, Path]:
    """Write a policy's two graphs and return their files. Needs gangplan[learn,onnx].

    Raises:
        InstanceError: if a package is missing.
    """
    require("onnx", "onnxscript")
    import torch
    from torch.export import Dim

    from .graph import Graphs

    class Job(torch.nn.Module):
        def __init__(self, network: Any) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any, edges: Any) -> Any:
            return self.network.offsets(Graphs(x, edges, torch.zeros(x.shape[0], dtype=torch.long), 1))

    made, network = files(path), policy.network.cpu().eval()
    one = torch.zeros(3, len(OP)), torch.tensor([[0, 1, 1, 2], [1, 2, 0, 1]])
    rows = torch.zeros(3, WIDTH), torch.zeros(1, network.width)
    with quiet():
        scorer = torch.onnx.export(
            network, rows, dynamo=True, verbose=False, input_names=["rows", "offset"], output_names=["scores"],
            dynamic_shapes=({0: Dim("candidates")}, None),
        )  # fmt: skip
        encoder = torch.onnx.export(
            Job(network).eval(), one, dynamo=True, verbose=False, input_names=["x", "edges"], output_names=["offset"],
            dynamic_shapes=({0: Dim("ops")}, {1: Dim("edges")}),
        )  # fmt: skip
    network.to(policy.device)
    proto = scorer.model_proto
    entry = proto.metadata_props.add()
    entry.key, entry.value = _KEY, json.dumps({"blocks": bool(policy.settings.get("blocks", True)), "width": WIDTH})
    for where, content in zip(made, (proto, encoder.model_proto), strict=True):
        write_whole({where: content.SerializeToString()}, durable=True)
    return made


class OnnxRampPolicy(Decider):
    """Decides as the policy that was exported does, on one core.

    Args:
        scorer, encoder: the two graphs.
    """

    def __init__(self, scorer: bytes, encoder: bytes) -> None:
        require("onnxruntime")
        self._content = scorer, encoder
        self._scorer, self._encoder = _session(scorer), _session(encoder)
        try:
            meta = json.loads(self._scorer.get_modelmeta().custom_metadata_map[_KEY])
        except (KeyError, ValueError):
            raise InstanceError("onnx", "is no policy that `gangplan learn export` wrote") from None
        if meta.get("width") != WIDTH:
            raise InstanceError("onnx", f"reads {meta.get('width')!r} features, not {WIDTH}: export it again")
        self._offset: weakref.WeakKeyDictionary[OpGraph, NDArray[np.float32]] = weakref.WeakKeyDictionary()
        super().__init__(choose=bool(meta["blocks"]))

    def rate(self, observation: Observation) -> FloatArray:
        """Return what the network says of each row, float64 (A,)."""
        offset = self._offset.get(observation.graph)
        if offset is None:
            x, edges, _ = read([observation.graph])
            # a graph that does without some input does not have it
            wanted = {part.name for part in self._encoder.get_inputs()}
            given = {name: part for name, part in (("x", x), ("edges", edges)) if name in wanted}
            offset = self._offset[observation.graph] = self._encoder.run(None, given)[0]
        (found,) = self._scorer.run(None, {"rows": observation.rows, "offset": offset})
        return np.asarray(found, dtype=np.float64)

    def save(self, path: str | Path) -> None:
        """Write both graphs."""
        for where, content in zip(files(path), self._content, strict=True):
            write_whole({where: content}, durable=True)

    @classmethod
    def load(cls, path: str | Path) -> OnnxRampPolicy:
        """Read what `export` wrote.

        Raises:
            InstanceError: if a file is missing or broken, or ONNX Runtime is.
        """
        found = []
        for where in files(path):
            found.append(read_bytes(where))
        try:
            return cls(*found)
        except InstanceError as error:
            raise error.of(str(path)) from None


def _session(content: bytes) -> Any:
    try:
        return session(content)
    except InstanceError:
        raise
    except Exception as error:  # its own classes, which derive from nothing narrower
        raise InstanceError("onnx", f"ONNX Runtime does not load it: {error}") from None
