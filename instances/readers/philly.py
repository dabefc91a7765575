"""Read Microsoft's Philly (Jeon et al., ATC 2019): ``cluster_job_log``, which is JSON, and the CSV made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import InstanceError, within
from .trace_rows import NEVER_RAN, NO_GPU, Format, Job, TraceRow

_KEYS = {"jobid", "submitted_time", "attempts"}


def recognises(data: Any) -> bool:
    """Say whether parsed JSON is a list of jobs with their attempts."""
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and data[0].keys() >= _KEYS


def split(data: list[Any]) -> tuple[tuple[str, ...], Iterator[tuple[int, list[Any]]]]:
    """Return each job as a row with one field, counted from 1."""
    return ("job",), ((i, [record]) for i, record in enumerate(data, start=1))


def _objects(value: Any, field: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InstanceError(field, f"{value!r} is not a list of objects")
    return value


def _job(row: TraceRow) -> Job | str:
    """Read a job: the GPUs of its first attempt, for as long as all attempts ran."""
    record = row["job"]
    if not isinstance(record, dict):
        raise InstanceError("job", f"{record!r} is not an object")
    attempts = _objects(record.get("attempts"), "attempts")
    words = TraceRow((key, str(record.get(key) or "")) for key in ("jobid", "vc", "submitted_time"))
    if not attempts:
        return NEVER_RAN
    seconds = 0.0
    for i, attempt in enumerate(attempts):
        times = TraceRow((key, str(attempt.get(key) or "")) for key in ("start_time", "end_time"))
        if times.blank("start_time") or times.blank("end_time"):
            return NEVER_RAN
        with within(f"attempts[{i}]"):
            seconds += times.span("start_time", "end_time")
    held = [one.get("gpus") for one in _objects(attempts[0].get("detail"), "attempts[0].detail")]
    if not all(isinstance(gpus, list) for gpus in held):
        raise InstanceError("attempts[0].detail", "has a server whose gpus are not a list")
    gpus = sum(len(gpus) for gpus in held if gpus)
    if not gpus:
        return NO_GPU
    submit, user = words.moment("submitted_time"), str(record.get("user") or "")
    return Job(words.text("jobid"), submit, gpus, seconds, words["vc"], user=user)


def _row(row: TraceRow) -> Job:
    """Read a job of the CSV, which names none: they are counted from 0."""
    submit = row.moment("timestamp")
    return Job(str(row.line - 2), submit, row.whole("num_gpus"), row.number("duration"), row["cluster"])


LOG = Format("Philly's", "job", "", _job, unit="job")
TABLE = Format("Philly's as CSV", "timestamp duration num_gpus cluster", "", _row)
