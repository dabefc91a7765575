"""The PAC-ML policy in ONNX: written from the network, and run by ONNX Runtime on one core, without torch."""

from __future__ import annotations

import json
import logging
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.errors import extra
from gangplan.instances.intake import read_bytes
from gangplan.instances.outlet import write_whole

from .features import WIDTH
from .hindsight import Futures
from .policy import RampDecider, RampObservation

if TYPE_CHECKING:
    from .policy import RampPolicy

_KEY = "gangplan"
"""Of the entry in a file's metadata that says what else there is to know."""


def export(policy: RampPolicy, path: str | Path) -> tuple[Path]:
    """Write a policy's graph, scores of the rows (A, WIDTH) of a decision, and return its file.

    Needs the extras learn and onnx. Another ending than .onnx is replaced.

    Raises:
        InstanceError: if a package is missing.
    """
    _require("onnx", "onnxscript")
    import torch

    rows, free = torch.zeros(3, WIDTH), {0: torch.export.Dim("candidates")}
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # the exporter tells of operators that it could not register
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            graph = torch.onnx.export(
                policy.network, (rows,), dynamo=True, verbose=False, input_names=["rows"], output_names=["scores"],
                dynamic_shapes=(free,),
            )  # fmt: skip
    finally:
        logging.disable(before)
    assert graph is not None
    graph.model.metadata_props[_KEY] = json.dumps({"blocks": policy.settings.blocks, "width": WIDTH})
    path = Path(path).with_suffix(".onnx")
    write_whole({path: graph.model_proto.SerializeToString()}, durable=True)
    return (path,)


class OnnxRampPolicy(RampDecider):
    """Decides as the policy that was exported does, on one core.

    Raises:
        InstanceError: if the file is missing or broken, or ONNX Runtime is.
    """

    def __init__(self, path: str | Path, *, futures: Futures | None = None) -> None:
        _require("onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        path = Path(path).with_suffix(".onnx")
        self._content = read_bytes(path)
        try:
            self._session = onnxruntime.InferenceSession(self._content, options, providers=["CPUExecutionProvider"])
            about = json.loads(self._session.get_modelmeta().custom_metadata_map[_KEY])
            blocks, width = bool(about["blocks"]), about["width"]
        except (KeyError, ValueError):
            raise InstanceError("onnx", "is no policy that `gangplan learn export` wrote", str(path)) from None
        except Exception as error:  # its own classes, which derive from nothing narrower
            raise InstanceError("onnx", f"ONNX Runtime does not load it: {error}", str(path)) from None
        names = [part.name for part in self._session.get_inputs()]
        if width != WIDTH:
            raise InstanceError("onnx", f"reads {width!r} features, not {WIDTH}: export it again", str(path))
        if names != ["rows"]:
            raise InstanceError("onnx", f"reads {', '.join(names)}: export it again", str(path))
        super().__init__(choose=blocks, futures=futures)

    def rate(self, observation: RampObservation) -> FloatArray:
        """Return what the network says of each row, float64 (A,)."""
        (found,) = self._session.run(None, {"rows": observation.rows})
        return np.asarray(found, dtype=np.float64)

    def save(self, path: str | Path) -> None:
        """Write the graph."""
        write_whole({Path(path).with_suffix(".onnx"): self._content}, durable=True)

    @classmethod
    def load(cls, path: str | Path) -> OnnxRampPolicy:
        """Read what `export` wrote."""
        return cls(path)


def _require(*names: str) -> None:
    """Raise an error that names what is not installed."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise InstanceError("onnx", f"needs {', '.join(missing)}; {extra('onnx')}")
