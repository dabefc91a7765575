"""The PAC-ML policy in ONNX: written from the network, and run by ONNX Runtime without torch.

Two graphs, for a job's ops are read once and its candidates at every decision: FILE.onnx scores the rows (A, WIDTH) of
a decision, given what the job adds to the first layer; FILE.job.onnx computes that from the ops.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError, OpGraph
from gangplan.instances.arrays import FloatArray
from gangplan.instances.outlet import write_whole

from ..policy import onnx
from .features import WIDTH
from .ops import OP, read
from .past import Futures
from .policy import Decider, Observation

if TYPE_CHECKING:
    from .policy import RampPolicy


def files(path: str | Path) -> tuple[Path, Path]:
    """Return the files of the scorer and of the job encoder, given the first; another ending is replaced."""
    path = Path(path).with_suffix(".onnx")
    return path, path.with_suffix(".job.onnx")


def export(policy: RampPolicy, path: str | Path) -> tuple[Path, Path]:
    """Write a policy's two graphs and return their files. Needs gangplan[learn,onnx].

    Raises:
        InstanceError: if a package is missing.
    """
    onnx.require("onnx", "onnxscript")
    import torch

    from .network import Graphs

    network, (scorer, encoder) = policy.network, files(path)

    class Job(torch.nn.Module):
        """What the ops of one job add to the first layer."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any, edges: Any) -> Any:
            """Return the offset."""
            return self.network.offsets(Graphs(x, edges, torch.zeros(x.shape[0], dtype=torch.long), 1))

    rows: Any = {"rows": (torch.zeros(3, WIDTH), {0: "candidates"}), "offset": (torch.zeros(1, network.width), {})}
    edges = torch.tensor([[0, 1, 1, 2], [1, 2, 0, 1]])
    ops: Any = {"x": (torch.zeros(3, len(OP)), {0: "ops"}), "edges": (edges, {1: "edges"})}
    about = {"blocks": bool(policy.settings.get("blocks", True)), "width": WIDTH}
    return onnx.export(network, scorer, rows, ["scores"], about), onnx.export(Job(), encoder, ops, ["offset"], {})


class OnnxRampPolicy(Decider):
    """Decides as the policy that was exported does, on one core.

    Args:
        path: of a file that `export` wrote.
        futures: see `Decider`.

    Raises:
        InstanceError: if a file is missing or broken, or ONNX Runtime is.
    """

    def __init__(self, path: str | Path, *, futures: Futures | None = None) -> None:
        self._scorer, self._encoder = (onnx.OnnxSession(where) for where in files(path))
        about = self._scorer.about
        if "blocks" not in about:
            raise InstanceError("onnx", "is no policy that `gangplan learn export` wrote", str(path))
        if about["width"] != WIDTH:
            raise InstanceError("onnx", f"reads {about['width']!r} features, not {WIDTH}: export it again", str(path))
        super().__init__(choose=bool(about["blocks"]), futures=futures)

    def embed(self, graph: OpGraph) -> Any:
        """Return what a job adds to the first layer, float32 (1, width)."""
        x, edges, _ = read([graph])
        return self._encoder(x=x, edges=edges)[0]

    def rate(self, observation: Observation) -> FloatArray:
        """Return what the network says of each row, float64 (A,)."""
        (found,) = self._scorer(rows=observation.rows, offset=self.job(observation.graph))
        return np.asarray(found, dtype=np.float64)

    def save(self, path: str | Path) -> None:
        """Write both graphs."""
        for where, graph in zip(files(path), (self._scorer, self._encoder), strict=True):
            write_whole({where: graph.content}, durable=True)

    @classmethod
    def load(cls, path: str | Path) -> OnnxRampPolicy:
        """Read what `export` wrote."""
        return cls(path)
