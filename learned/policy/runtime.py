"""ONNX: an exporter that is quiet, a runtime on one core, and what to install where they are missing."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from gangplan.instances import InstanceError


def require(*names: str) -> None:
    """Raise an error that names what is not installed."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise InstanceError("onnx", f'needs {", ".join(missing)}: pip install "gangplan[onnx]"')


@contextmanager
def quiet() -> Iterator[None]:
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


def session(content: bytes) -> Any:
    """Return an inference session of ONNX Runtime on one core; its own errors pass.

    Raises:
        InstanceError: if ONNX Runtime is not installed.
    """
    require("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
