"""The PAC-ML policy in ONNX: written from the network, and run by ONNX Runtime without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.outlet import write_whole
from gangplan.learned.policy import onnx

from .features import WIDTH
from .hindsight import Futures
from .policy import Decider, Observation

if TYPE_CHECKING:
    from .policy import RampPolicy


def export(policy: RampPolicy, path: str | Path) -> tuple[Path]:
    """Write a policy's graph, scores of the rows (A, WIDTH) of a decision, and return its file.

    Needs the extras learn and onnx. Another ending than .onnx is replaced.
    """
    onnx.require("onnx", "onnxscript")
    if policy.settings.variant == "op-graph":
        raise InstanceError("variant", "'op-graph' has no form in ONNX")
    import torch

    rows: Any = {"rows": (torch.zeros(3, WIDTH), {0: "candidates"})}
    about = {"blocks": policy.settings.blocks, "width": WIDTH}
    return (onnx.export(policy.network, path, rows, ["scores"], about),)


class OnnxRampPolicy(Decider):
    """Decides as the policy that was exported does, on one core.

    Raises:
        InstanceError: if the file is missing or broken, or ONNX Runtime is.
    """

    def __init__(self, path: str | Path, *, futures: Futures | None = None) -> None:
        self._session = onnx.OnnxSession(Path(path).with_suffix(".onnx"))
        about = self._session.about
        if "blocks" not in about:
            raise InstanceError("onnx", "is no policy that `gangplan learn export` wrote", str(path))
        if about["width"] != WIDTH:
            raise InstanceError("onnx", f"reads {about['width']!r} features, not {WIDTH}: export it again", str(path))
        if self._session.inputs != ["rows"]:
            raise InstanceError("onnx", f"reads {', '.join(self._session.inputs)}: export it again", str(path))
        super().__init__(choose=bool(about["blocks"]), futures=futures)

    def rate(self, observation: Observation) -> FloatArray:
        """Return what the network says of each row, float64 (A,)."""
        (found,) = self._session(rows=observation.rows)
        return np.asarray(found, dtype=np.float64)

    def save(self, path: str | Path) -> None:
        """Write the graph."""
        write_whole({Path(path).with_suffix(".onnx"): self._session.content}, durable=True)

    @classmethod
    def load(cls, path: str | Path) -> OnnxRampPolicy:
        """Read what `export` wrote."""
        return cls(path)
