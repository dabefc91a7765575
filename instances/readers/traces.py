"""Read a trace: recognise the format, make jobs of its rows, say which row is wrong; write it as plain CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf
from os import PathLike
from typing import Any

import numpy as np

from ..errors import InstanceError, in_file
from ..intake import read_text
from ..workload import Workload
from .trace_formats import OURS, recognise
from .trace_rows import Content, Format, Job


@dataclass(slots=True)
class Trace:
    """What a file holds.

    Attributes:
        workload: the jobs, in the order of the file.
        skipped: what was wrong and is left out, ``line 7: num_gpu: '0' ...``; empty unless that was asked for.
        left_out: how many rows make no job though they are right, by reason.
        epoch: seconds from 1970 of the time 0, by the trace's own clock, or UTC where its times name zones; None if it
            has no dates.
    """

    workload: Workload
    skipped: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    epoch: float | None = None


def read_trace(
    path: str | PathLike[str],
    *,
    skip_bad: bool = False,
    seconds: Mapping[str, float] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Trace:
    """Read a workload as its publisher ships it: docs/simulate.md lists the formats.

    Gzip is undone. Times of the calendar, or of a clock that began over a year before the first, become seconds from
    the first. Jobs without a GPU, and those that never ran to an end, are left out and counted where a format has
    them; in a plain CSV no GPU is an error.

    Args:
        path: the file.
        skip_bad: leave bad rows out and say which, instead of refusing the file.
        seconds: how long an application runs, by name, for Pollux' workloads, which do not say.
        columns: of a plain CSV, what the file calls ours: ``{"id": "job", "gpus": "n"}``.
    """
    words = read_text(path, gzip=True)
    with in_file(path):
        return _parse(*recognise(words, seconds or {}, columns or {}), skip_bad)


def _parse(form: Format[Job | str], content: Content, skip_bad: bool) -> Trace:
    made, skipped = form.made(content, skip_bad)
    jobs = [job for job in made if isinstance(job, Job)]
    left_out = Counter(job for job in made if isinstance(job, str))
    if form.join:
        joined = list(form.join(jobs))
        jobs = [job for job in joined if isinstance(job, Job)]
        left_out.update(job for job in joined if isinstance(job, str))
    if not jobs:
        why = "".join(f", {count} rows are {reason}" for reason, count in left_out.items())
        raise InstanceError("content", f"there is no job; {len(skipped)} bad rows were skipped{why}")
    first = min(job.submit for job in jobs)
    origin = first if form.calendar or first > _YEAR else 0.0
    columns: dict[str, Any] = {
        key: [getattr(job, "name" if key == "names" else key) for job in jobs] for key in _ATTRIBUTES
    }
    columns["submit"] = np.array(columns["submit"]) - origin
    zero = origin + (form.start or 0.0)
    return Trace(Workload(**columns), skipped, dict(left_out), zero if zero > _DATED else None)


_YEAR = 365 * 86400.0
"""Seconds. A trace whose first job comes later after 0 counts from somewhere else, such as 1970."""
_DATED = 30 * _YEAR
"""Seconds. A clock that shows less at the first job does not count from 1970: no trace is so old."""


_ATTRIBUTES = tuple(f.name for f in fields(Workload))
_TITLES = OURS | {"names": OURS["id"]}
"""What attributes are called as columns, where that is another name."""
_TERMS = {"user": "", "title": "", "priority": 0, "limit": inf}
"""Attributes that are written if a job has something else than this."""


def as_csv(workload: Workload) -> str:
    """Return the workload as CSV: seconds, GPUs, cores and bytes, every number to its last digit."""
    unused = {name for name, usual in _TERMS.items() if all(x == usual for x in getattr(workload, name))}
    names = [name for name in dict.fromkeys(("names", "gpus", *_ATTRIBUTES)) if name not in unused]
    fields = [getattr(workload, name) for name in names]
    columns = [field.tolist() if isinstance(field, np.ndarray) else field for field in fields]
    columns = [["" if x == inf else x for x in column] for column in columns]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_TITLES.get(name, name) for name in names)
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()
