"""Write a workload as the plain CSV that `read_trace` takes."""

from __future__ import annotations

import csv
import io

import numpy as np

from ...workload import Workload

_COLUMNS = {
    "job_id": "names",
    "num_gpu": "gpus",
    "submit_time": "submit",
    "duration": "duration",
    "queue": "queue",
    "model_name": "model",
    "share": "share",
    "cpu": "cpu",
    "memory": "memory",
}
"""The attribute of each column."""


def as_csv(workload: Workload) -> str:
    """Return the workload as CSV: seconds, GPUs, cores and bytes, every number to its last digit."""
    fields = [getattr(workload, field) for field in _COLUMNS.values()]
    columns = [field.tolist() if isinstance(field, np.ndarray) else field for field in fields]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()
