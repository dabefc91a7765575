"""The policy in ONNX: one file says what a batch is like, the other scores places; ONNX Runtime needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.intake import read_bytes
from gangplan.instances.outlet import write_whole
from gangplan.instances.placement import PlacementProblem

from ..gnn.onnx import OnnxNetwork
from ..gnn.onnx import export as export_network
from .encoded import encode
from .head import Context, pool
from .pairs import pairs

if TYPE_CHECKING:
    from .build import Decision
    from .policy import PlacementPolicy

_OUTPUTS = ("jobs", "nodes", "turn")


def export(policy: PlacementPolicy, path: str | Path) -> tuple[Path, Path]:
    """Write NAME.onnx, run once a batch, and NAME.head.onnx, run once a decision; needs gangplan[learn,onnx].

    Raises:
        InstanceError: if a package is missing.
    """
    import torch
    from torch import nn
    from torch.export import Dim

    from ..policy.runtime import quiet
    from .features import NAMES
    from .network import SEEN, schema

    network = policy.network

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, batch: Any) -> Any:
            return self.network.context(batch)

    class Places(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: torch.Tensor, job: torch.Tensor, pooled: torch.Tensor) -> torch.Tensor:
            return self.network.scored(x, job.expand(x.shape[0], job.shape[1]), pooled)

    first = export_network(Whole(), schema(network.flat), path, _OUTPUTS)
    places = Dim("places")
    with quiet(), torch.no_grad():
        made = torch.onnx.export(
            Places().eval(), (torch.zeros(7, len(NAMES)), torch.zeros(1, SEEN), torch.zeros(7, SEEN)), dynamo=True,
            verbose=False, input_names=["x", "job", "pooled"], output_names=["scores"],
            dynamic_shapes=({0: places}, {}, {0: places}),
        )  # fmt: skip
    second = first.with_suffix(".head.onnx")
    assert made is not None
    write_whole({second: made.model_proto.SerializeToString()}, durable=True)
    return first, second


class OnnxPlacementPolicy:
    """Scores places as `PlacementPolicy` does, without torch; `decode.Decoder` takes either.

    Args:
        path: of the first file that `export` wrote; the other is beside it.
        flat: whether the policy was trained without racks.

    Raises:
        InstanceError: if a file is missing or broken, or ONNX Runtime is.
    """

    def __init__(self, path: str | Path, flat: bool = False) -> None:
        path = Path(path).with_suffix(".onnx")
        self._context, self.flat = OnnxNetwork(path), flat
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        head = path.with_suffix(".head.onnx")
        content = read_bytes(head)
        try:
            self._head = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its own classes, which derive from nothing narrower
            raise InstanceError("onnx", f"ONNX Runtime does not load it: {error}", str(head)) from None

    def context(self, problem: PlacementProblem) -> Context:
        """Return what the network makes of a batch."""
        jobs, nodes, turn = (x.astype(np.float64) for x in self._context(encode(problem, self.flat)))
        return Context(jobs, nodes, turn)

    def scores(self, decision: Decision, context: Context) -> FloatArray:
        """Return the score of each place of a decision, (C,)."""
        place, node = pairs(decision)
        pooled = pool(context.nodes, place, node, len(decision.rows))
        given = {"x": decision.x, "job": context.jobs[decision.job][None], "pooled": pooled}
        (found,) = self._head.run(None, {name: x.astype(np.float32) for name, x in given.items()})
        return np.asarray(found, dtype=np.float64)
