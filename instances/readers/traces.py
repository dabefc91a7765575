"""Read traces of jobs, each format as its publisher ships it; plain CSV with a header for everything else."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from ..errors import InstanceError
from ..workload import Workload


@dataclass(slots=True)
class Trace:
    """What a file holds.

    Attributes:
        workload: the jobs, in the order of the file.
        skipped: what was left out and why, ``line 7: num_gpu: '0' ...``; empty unless bad rows were to be skipped.
    """

    workload: Workload
    skipped: list[str] = field(default_factory=list)


def read_trace(path: str | PathLike[str], *, skip_bad: bool = False) -> Trace:
    """Read a workload: plain CSV (``job_id, num_gpu, submit_time, duration``), Tiresias, or Philly as CSV.

    Gzip is undone. Philly's time stamps become seconds from the first. Rows of no GPU are bad.

    Args:
        path: the file.
        skip_bad: leave bad rows out and say which, instead of refusing the file.

    Raises:
        InstanceError: naming file, line, field and the value found.
    """
    source = fspath(path)
    try:
        content = Path(path).read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InstanceError("content", f"byte at offset {error.start} is not UTF-8 text", source) from None
    except (OSError, EOFError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise InstanceError("file", str(words).lower(), source) from None
    try:
        return _parse(text, skip_bad)
    except InstanceError as error:
        raise error.of(source) from None


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    submit: float
    gpus: int
    duration: float
    queue: str = ""


def _parse(text: str, skip_bad: bool) -> Trace:
    rows = csv.DictReader(io.StringIO(text))
    columns = set(rows.fieldnames or ())
    build = next((b for needs, b in _FORMATS if needs <= columns), None)
    if build is None:
        named = ", ".join(rows.fieldnames or ()) or "nothing"
        raise InstanceError("header", f"{named} lacks job_id, num_gpu, submit_time or duration")
    jobs: list[_Job] = []
    skipped: list[str] = []
    for row in rows:
        try:
            if None in row or None in row.values():
                raise InstanceError("columns", f"the row has not the {len(columns)} of the header")
            jobs.append(build(row, rows.line_num))
        except InstanceError as error:
            placed = InstanceError(f"line {rows.line_num}: {error.field}", error.problem)
            if not skip_bad:
                raise placed from None
            skipped.append(str(placed))
    if not jobs:
        raise InstanceError("content", f"there is no job; {len(skipped)} bad rows were skipped")
    first = min(job.submit for job in jobs) if build is _philly else 0.0
    return Trace(
        Workload(
            tuple(job.name for job in jobs),
            np.array([job.submit - first for job in jobs]),
            np.array([job.gpus for job in jobs]),
            np.array([job.duration for job in jobs]),
            tuple(job.queue for job in jobs),
        ),
        skipped,
    )


def _plain(row: dict[str, str], line: int) -> _Job:
    return _Job(
        _text(row, "job_id"), _number(row, "submit_time"), _whole(row, "num_gpu"), _number(row, "duration"),
        row.get("queue", ""),
    )  # fmt: skip


def _philly(row: dict[str, str], line: int) -> _Job:
    try:
        submit = datetime.fromisoformat(row["timestamp"]).timestamp()
    except ValueError:
        raise InstanceError("timestamp", f"{row['timestamp']!r} is no time") from None
    return _Job(str(line - 2), submit, _whole(row, "num_gpus"), _number(row, "duration"), row["cluster"])


_FORMATS: tuple[tuple[set[str], Callable[[dict[str, str], int], _Job]], ...] = (
    ({"job_id", "num_gpu", "submit_time", "duration"}, _plain),
    ({"timestamp", "duration", "num_gpus", "cluster"}, _philly),
)


def _text(row: dict[str, str], key: str) -> str:
    if not row[key].strip():
        raise InstanceError(key, "is empty")
    return row[key].strip()


def _number(row: dict[str, str], key: str) -> float:
    try:
        value = float(row[key])
    except ValueError:
        raise InstanceError(key, f"{row[key]!r} is not a number") from None
    if not 0 <= value < float("inf"):
        raise InstanceError(key, f"{row[key]!r} is not a finite number from 0 on")
    return value


def _whole(row: dict[str, str], key: str) -> int:
    value = _number(row, key)
    if value != int(value) or not 0 < value < 2**31:
        raise InstanceError(key, f"{row[key]!r} is not a positive whole number")
    return int(value)


def queues(workload: Workload) -> Iterator[tuple[str, Workload]]:
    """Yield each queue's name and jobs, in the order of their first jobs."""
    index: dict[str, list[int]] = {}
    for i, name in enumerate(workload.queue):
        index.setdefault(name, []).append(i)
    for name, rows in index.items():
        yield name, workload.take(np.array(rows))
