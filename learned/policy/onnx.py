"""ONNX: any network written with its inputs by name, and run by ONNX Runtime on one core without torch."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.intake import read_bytes
from gangplan.instances.outlet import write_whole

_KEY = "gangplan"
"""Of the entry in a file's metadata that says what else there is to know."""


def export(
    network: Any, path: str | Path, inputs: Mapping[str, tuple[Any, dict[int, str]]], outputs: Sequence[str], about: Any
) -> Path:
    """Write a network as ONNX and return the file; another ending than .onnx is replaced.

    Args:
        network: a torch module.
        path: of the file.
        inputs: by name, a tensor to trace with, and names of its dimensions whose length is free; those of one name
            are equal.
        outputs: what they are called.
        about: what JSON can hold, for `OnnxSession.about`.

    Raises:
        InstanceError: if a package is missing.
    """
    require("onnx", "onnxscript")
    import torch
    from torch.export import Dim

    free = {name: Dim(name) for _, dimensions in inputs.values() for name in dimensions.values()}
    shapes = tuple({i: free[name] for i, name in dimensions.items()} or None for _, dimensions in inputs.values())

    class Positional(torch.nn.Module):
        """The network, however its arguments are called."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *tensors: torch.Tensor) -> Any:
            """Return what the network does."""
            return self.network(*tensors)

    with _quiet(), torch.no_grad():
        made = torch.onnx.export(
            Positional().eval(), tuple(x for x, _ in inputs.values()), dynamo=True, verbose=False,
            input_names=[*inputs], output_names=list(outputs), dynamic_shapes=(shapes,),
        )  # fmt: skip
    proto = made.model_proto  # a new one each time that it is asked for
    entry = proto.metadata_props.add()
    entry.key, entry.value = _KEY, json.dumps(about)
    path = Path(path).with_suffix(".onnx")
    write_whole({path: proto.SerializeToString()}, durable=True)
    return path


class OnnxSession:
    """A network that was exported, on one core.

    Attributes:
        content: of its file.
        inputs: their names.
        about: what its exporter said.
    """

    def __init__(self, path: str | Path) -> None:
        """Read a file that `export` wrote.

        Raises:
            InstanceError: if the file is missing or broken, or ONNX Runtime is.
        """
        require("onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.content = read_bytes(path)
        try:
            self._session = onnxruntime.InferenceSession(self.content, options, providers=["CPUExecutionProvider"])
            self.about: Any = json.loads(self._session.get_modelmeta().custom_metadata_map[_KEY])
        except (KeyError, ValueError):
            raise InstanceError("onnx", "is no policy that `gangplan learn export` wrote", str(path)) from None
        except Exception as error:  # its own classes, which derive from nothing narrower
            raise InstanceError("onnx", f"ONNX Runtime does not load it: {error}", str(path)) from None
        self.inputs = [part.name for part in self._session.get_inputs()]

    def __call__(self, **inputs: Any) -> list[NDArray[np.float32]]:
        """Return the outputs."""
        found: list[NDArray[np.float32]] = self._session.run(None, inputs)
        return found


def require(*names: str) -> None:
    """Raise an error that names what is not installed."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise InstanceError("onnx", f"needs {', '.join(missing)}; {extra('onnx')}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter from telling of operators that it could not register."""
    logs = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir", "onnxscript")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)
