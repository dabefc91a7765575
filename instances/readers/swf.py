"""Read the Standard Workload Format of the Parallel Workloads Archive, version 2.2; processors count as GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import inf, isfinite

from ..errors import InstanceError
from ..intake import Table
from .fields import as_number
from .trace_rows import NEVER_RAN, NO_GPU, Format, Job, TraceRow, by_name

COLUMNS = (
    "job", "submit", "wait", "run", "allocated", "cpu_time", "memory_used", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think",
)  # fmt: skip
PART = "of a part of a job that has a row for the whole"
"""Why a row makes no job."""
_START = re.compile(r"^\s*[;#]\s*UnixStartTime:\s*(\d{1,12})\b", re.MULTILINE | re.IGNORECASE)
_PARTIAL, _CANCELLED = (2, 3, 4), 5
"""Status: of one execution of several; of a job that was cancelled, before it ran or while it did."""


def split(content: str) -> Table:
    """Split the text, comments and what stands behind the last column left out."""
    lines = ((i, line.split()) for i, line in enumerate(content.splitlines(), start=1))
    return COLUMNS, ((i, words[: len(COLUMNS)]) for i, words in lines if words and words[0][0] not in ";#")


def recognises(content: str) -> bool:
    """Return whether the first line that is no comment has 18 numbers."""
    _, fields = next(split(content)[1], (0, []))
    return len(fields) == len(COLUMNS) and all(isfinite(as_number(word)) for word in fields)


def _signed(row: TraceRow, key: str) -> float:
    """Return a number, negative where it is not known."""
    value = as_number(row[key])
    if not isfinite(value):
        raise InstanceError(key, f"{row[key]!r} is not a number")
    return value


def _row(row: TraceRow) -> Job | str:
    """Read a job, or one execution of several between which it was stopped."""
    asked = next((key for key in ("requested", "allocated") if _signed(row, key) > 0), None)
    if asked is None:
        return NO_GPU
    run, status = _signed(row, "run"), _signed(row, "status")
    if run < 0 or (status == _CANCELLED and not run):
        return NEVER_RAN
    queue, user, title = ("" if as_number(row[key]) < 0 else row[key] for key in ("queue", "user", "executable"))
    limit = _signed(row, "requested_time")
    part = str(int(status)) if status in _PARTIAL else ""
    submit = inf if part and _signed(row, "submit") < 0 else row.number("submit")
    gang = row.whole(asked)
    limit = limit if limit > 0 else inf
    return Job(row.text("job"), submit, gang, run, queue, user=user, title=title, limit=limit, part=part)


def _jobs(rows: list[Job]) -> Iterator[Job | str]:
    """Leave out the parts of jobs that have a row for the whole; of others take all that they ran."""
    for parts in by_name(rows):
        head = next((part for part in parts if not part.part), None)
        if head is None:
            head = min(parts, key=lambda part: part.submit)
            head.duration = sum(part.duration for part in parts)
            yield head if head.submit < inf else NEVER_RAN
        else:
            yield head
            yield from [PART] * (len(parts) - 1)


FORMAT = Format("the Standard Workload Format", " ".join(COLUMNS), "", _row, calendar=False, join=_jobs)


def dated(content: str) -> Format[Job | str]:
    """Return the format with the time at which the log begins, if a comment says it."""
    began = _START.search(content)
    return replace(FORMAT, start=float(began[1])) if began and int(began[1]) else FORMAT
