"""One row of a trace, and its fields as values or as an error that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from ...errors import InstanceError
from ...intake import Table, as_float

Row = Mapping[str, str]

NO_GPU, NEVER_RAN, STEP = "without a GPU", "that never ran to an end", "of a step of a job"
"""Why rows that are not wrong make no job."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a trace says of a job, or of one task of it; see `Workload`."""

    name: str
    submit: float
    gpus: int
    duration: float
    queue: str = ""
    model: str = ""
    share: float = 1.0
    cpu: float = 0.0
    memory: float = 0.0


@dataclass(frozen=True, slots=True)
class Format:
    """How a publisher writes a trace.

    Attributes:
        needs: the columns by which it is recognised.
        split: the text into columns and rows.
        build: makes a job of a row, or says why there is none in it.
        calendar: whether times are of the calendar, or otherwise from no particular origin: the first becomes 0.
        merge: whether rows of one name are tasks of one job.
    """

    needs: frozenset[str]
    split: Callable[[str], Table]
    build: Callable[[Row, int], Job | str]
    calendar: bool = False
    merge: bool = False


def text(row: Row, key: str) -> str:
    """Return a field that must not be empty."""
    if not row[key].strip():
        raise InstanceError(key, "is empty")
    return row[key].strip()


def number(row: Row, key: str) -> float:
    """Return a finite number from 0 on."""
    return as_float(row[key], key)


def whole(row: Row, key: str, least: int = 1) -> int:
    """Return a whole number, positive unless `least` is 0."""
    value = number(row, key)
    if value != int(value) or not least <= value < 2**31:
        raise InstanceError(key, f"{row[key]!r} is not a {'positive ' if least else ''}whole number")
    return int(value)


def moment(row: Row, key: str) -> float:
    """Return the seconds of a time of the calendar, which names no zone or its own."""
    try:
        found = datetime.fromisoformat(row[key].strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        raise InstanceError(key, f"{row[key]!r} is no time") from None


def merged(jobs: Iterable[Job]) -> Iterator[Job]:
    """Join the tasks of each job: from the first start to the last end, all GPUs at once."""
    tasks: dict[str, list[Job]] = {}
    for job in jobs:
        tasks.setdefault(job.name, []).append(job)
    for name, parts in tasks.items():
        submit = min(part.submit for part in parts)
        gpus = sum(part.gpus for part in parts)
        yield Job(
            name,
            submit,
            gpus,
            max(part.submit + part.duration for part in parts) - submit,
            parts[0].queue,
            parts[0].model,
            sum(part.gpus * part.share for part in parts) / gpus,
            sum(part.cpu for part in parts),
            sum(part.memory for part in parts),
        )
