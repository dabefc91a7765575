"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 for what is not known.

Processors are taken for GPUs. https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

from ...intake import Table
from .row import NEVER_RAN, NO_GPU, Job, Row, number, text, whole

COLUMNS = (
    "job", "submit", "wait", "run", "allocated", "cpu_time", "memory_used", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think",
)  # fmt: skip
_UNKNOWN = "-1"


def split(content: str) -> Table:
    """Split the text, comments left out."""
    lines = enumerate(content.splitlines(), start=1)
    return COLUMNS, ((i, line.split()) for i, line in lines if line.strip() and not line.lstrip().startswith(";"))


def looks_like_swf(content: str) -> bool:
    """Return whether the first line that is no comment has 18 numbers."""
    _, fields = next(split(content)[1], (0, []))
    return len(fields) == len(COLUMNS) and all(word.lstrip("-").replace(".", "", 1).isdigit() for word in fields)


def swf(row: Row, line: int) -> Job | str:
    """Read a job."""
    asked = next((key for key in ("requested", "allocated") if _or_nothing(row[key]) > 0), None)
    if asked is None:
        return NO_GPU
    if row["run"] == _UNKNOWN:
        return NEVER_RAN
    queue = "" if row["queue"] == _UNKNOWN else row["queue"]
    return Job(text(row, "job"), number(row, "submit"), whole(row, asked), number(row, "run"), queue)


def _or_nothing(word: str) -> float:
    """Return a number, or 0 for what is none: `whole` complains of the one that is used."""
    try:
        return float(word)
    except ValueError:
        return 0.0
