"""Traces with a header of their own: plain and Tiresias, Philly, Helios, Alibaba's OpenB, Pollux."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import InstanceError
from .row import NEVER_RAN, NO_GPU, Job, Row, moment, number, text, whole

MEBIBYTE = 2**20
MILLI = 1000


def plain(row: Row, line: int) -> Job:
    """Read ``job_id, num_gpu, submit_time, duration`` (seconds), and what else there is of our own and of Tiresias'.

    The others are ``queue``, ``model_name``, ``share`` of each GPU, ``cpu`` cores and ``memory`` in bytes.
    """
    return Job(
        text(row, "job_id"),
        number(row, "submit_time"),
        whole(row, "num_gpu"),
        number(row, "duration"),
        row.get("queue", ""),
        row.get("model_name", ""),
        _share(row) if "share" in row else 1.0,
        number(row, "cpu") if "cpu" in row else 0.0,
        number(row, "memory") if "memory" in row else 0.0,
    )


def _share(row: Row) -> float:
    value = number(row, "share")
    if not 0 < value <= 1:
        raise InstanceError("share", f"{row['share']!r} is not above 0 and at most 1")
    return value


def philly(row: Row, line: int) -> Job:
    """Read Microsoft's Philly as CSV (Jeon et al., ATC 2019), which names no jobs: they are counted from 0."""
    submit = moment(row, "timestamp")
    return Job(str(line - 2), submit, whole(row, "num_gpus"), number(row, "duration"), row["cluster"])


def helios(row: Row, line: int) -> Job | str:
    """Read ``cluster_log.csv`` of SenseTime's Helios (Hu et al., SC 2021)."""
    gpus = whole(row, "gpu_num", least=0)
    if not gpus:
        return NO_GPU
    if not row["start_time"].strip() or not row["end_time"].strip():
        return NEVER_RAN
    return Job(
        text(row, "job_id"),
        moment(row, "submit_time"),
        gpus,
        number(row, "duration"),
        row["vc"],
        cpu=number(row, "cpu_num"),
    )


def openb(row: Row, line: int) -> Job | str:
    """Read a pod list of Alibaba's trace of 2023 (Weng et al., ATC 2023); milli-cores, MiB, milli-GPUs."""
    gpus = whole(row, "num_gpu", least=0)
    if not gpus:
        return NO_GPU
    if not row["deletion_time"].strip() or not row["scheduled_time"].strip():
        return NEVER_RAN
    began, ended = number(row, "scheduled_time"), number(row, "deletion_time")
    if ended < began:
        raise InstanceError("deletion_time", f"{row['deletion_time']!r} is before the scheduled_time")
    milli = whole(row, "gpu_milli")
    if milli > MILLI:
        raise InstanceError("gpu_milli", f"{milli} is more than a GPU has, {MILLI}")
    return Job(
        text(row, "name"),
        number(row, "creation_time"),
        gpus,
        ended - began,
        row.get("qos", ""),
        share=milli / MILLI,
        cpu=number(row, "cpu_milli") / MILLI,
        memory=number(row, "memory_mib") * MEBIBYTE,
    )


def pollux(row: Row, line: int, seconds: Mapping[str, float]) -> Job:
    """Read a workload of Pollux (Qiao et al., OSDI 2021), which does not say how long its applications run."""
    application = text(row, "application")
    if application not in seconds:
        raise InstanceError("application", f"{application!r} has no duration: say how many seconds it runs")
    lasts = seconds[application]
    if not 0 <= lasts < float("inf"):
        raise InstanceError("application", f"{application!r} cannot run {lasts!r} seconds")
    return Job(text(row, "name"), number(row, "time"), whole(row, "num_replicas"), lasts, model=application)
