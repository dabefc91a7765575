"""Read from a trace when its jobs started: what happened there, where the trace tells it."""

from __future__ import annotations

from os import PathLike

from ..errors import InstanceError, in_file, within
from ..intake import read_text
from .trace_formats import DELIMITERS
from .trace_rows import TraceRow, table

_COLUMNS = (
    ("JobID", "Submit", "Start"),
    ("JobIDRaw", "Submit", "Start"),
    ("job_id", "submit_time", "start_time"),
    ("name", "creation_time", "scheduled_time"),
)
"""What jobs, submissions and starts are called: in sacct's tables, in ours, Helios' and Acme's, in Alibaba's."""
_PARTS = ".", "+"
"""Behind which a job's name goes on: a step of it; a part of a heterogeneous job."""


def read_waits(path: str | PathLike[str]) -> dict[str, float]:
    """Return for how many seconds each job waited that started, by name; of attempts the last one counts.

    Raises:
        InstanceError: if the table does not tell when jobs started.
    """
    words = read_text(path, gzip=True)
    with in_file(path):
        head = words.lstrip().partition("\n")[0]
        tables = (table(words, delimiter=x) for x in DELIMITERS)
        known = ((*content, names) for content in tables for names in _COLUMNS if {*names} <= {*content[0]})
        header, rows, (job, submit, start) = next(known, ((), iter(()), ("",) * 3))
        if not header:
            raise InstanceError("header", f"{head[:80]!r} tells not when jobs started: Start or start_time is missing")
        latest: dict[str, tuple[float, float]] = {}
        for line, values in rows:
            row = TraceRow(zip(header, values, strict=False))
            if len(row) < len(header) or row.blank(start) or _PARTS[0] in row[job]:
                continue
            with within(f"line {line}"):
                name, came = row.text(job).partition(_PARTS[1])[0], row.moment(submit)
                wait = row.moment(start) - came
            last = latest.get(name, (came, wait))
            latest[name] = (came, wait) if came > last[0] else (last[0], min(last[1], wait))
    return {name: max(0.0, wait) for name, (_, wait) in latest.items()}
