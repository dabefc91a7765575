"""Alibaba's PAI of 2020: the table of tasks, which has no header (Weng et al., NSDI 2022)."""

from __future__ import annotations

import math

from ...errors import InstanceError
from .row import NEVER_RAN, NO_GPU, Job, Row, number, text, whole

COLUMNS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
    "gpu_type",
)  # fmt: skip
_PERCENT, _GIGABYTE = 100, 1e9
_MOST = 2**31


def pai(row: Row, line: int) -> Job | str:
    """Read a task: so many instances, percents of cores and GPUs, gigabytes, each. Its start is its submission."""
    if not row["plan_gpu"].strip() or number(row, "plan_gpu") == 0:
        return NO_GPU
    if row["status"] != "Terminated" or not row["start_time"].strip() or not row["end_time"].strip():
        return NEVER_RAN
    began, ended = number(row, "start_time"), number(row, "end_time")
    if ended < began:
        raise InstanceError("end_time", f"{row['end_time']!r} is before the start_time")
    count, gpu = whole(row, "inst_num"), number(row, "plan_gpu") / _PERCENT
    held = math.ceil(gpu)
    if not held or held > _MOST:
        raise InstanceError("plan_gpu", f"{row['plan_gpu']!r} is not a share or a number of GPUs")
    cpu, memory = (number(row, key) if row[key].strip() else 0.0 for key in ("plan_cpu", "plan_mem"))
    return Job(
        text(row, "job_name"),
        began,
        count * held,
        ended - began,
        share=gpu / held,
        cpu=count * cpu / _PERCENT,
        memory=count * memory * _GIGABYTE,
    )
