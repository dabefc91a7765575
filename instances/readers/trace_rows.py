"""What all formats of job traces have in common: jobs, fields of a row, tables, and rows that are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from typing import Any, Generic, TypeVar

from ..errors import InstanceError, did_you_mean
from ..intake import Table, as_float, csv_rows

T_co = TypeVar("T_co", covariant=True)
Content = tuple[tuple[str, ...], Iterator[tuple[int, list[Any]]]]
"""Columns, and the number and the fields of each row."""

NO_GPU, NEVER_RAN = "without a GPU", "that never ran to an end"
"""Why rows that are not wrong make no job."""
HIGHEST = 2**31 - 1
"""The highest priority that a workload holds."""
_EPOCH = datetime(1970, 1, 1)
_BLANK = frozenset(("", "none", "nan", "null", "unknown"))
"""What publishers write where there is no value, in small letters."""


@dataclass(slots=True)
class Job:
    """What a trace says of a job, or of one part of it; see `Workload`.

    Attributes:
        limit: seconds, infinite where its user asked for none.
        part: which part of its job a row is, in a format in which a job may have several.
        ended: whether it ran to an end.
    """

    name: str
    submit: float
    gpus: int
    duration: float
    queue: str = ""
    model: str = ""
    share: float = 1.0
    cpu: float = 0.0
    memory: float = 0.0
    user: str = ""
    title: str = ""
    priority: int = 0
    limit: float = inf
    part: str = ""
    ended: bool = True


class TraceRow(dict[str, Any]):
    """The fields of a row by column, and its line; an error names the column."""

    line = 0

    def blank(self, key: str) -> bool:
        """Return whether there is no value."""
        word = self.get(key, "").strip()
        return not word[:1].isdecimal() and word.lower() in _BLANK

    def text(self, key: str, default: str | None = None) -> str:
        """Return a field that must not be empty, or the default where there is no value."""
        if default is not None and self.blank(key):
            return default
        if not self.get(key, "").strip():
            raise InstanceError(key, "is empty")
        return str(self[key].strip())

    def number(self, key: str, default: float | None = None) -> float:
        """Return a finite number from 0 on, or the default where there is none."""
        return default if default is not None and self.blank(key) else as_float(self[key], key)

    def whole(self, key: str, least: int = 1) -> int:
        """Return a whole number, positive unless `least` is 0."""
        value = self.number(key)
        if value != int(value) or not least <= value < 2**31:
            raise InstanceError(key, f"{self[key]!r} is not a {'positive ' if least else ''}whole number")
        return int(value)

    def priority(self, key: str) -> int:
        """Return a whole number, that of Slurm cut to 31 bits, 0 where there is no value."""
        if self.blank(key):
            return 0
        try:
            return max(-HIGHEST, min(HIGHEST, int(self[key])))
        except ValueError:
            raise InstanceError(key, f"{self[key]!r} is not a whole number") from None

    def moment(self, key: str) -> float:
        """Return the seconds of a time of the calendar, which names no zone or its own, or of Unix' clock."""
        word = self[key].strip()
        try:
            time = datetime.fromisoformat(word)
        except ValueError:
            if word.replace(".", "", 1).isdecimal():
                return float(word)
            raise InstanceError(key, f"{self[key]!r} is no time") from None
        return time.timestamp() if time.tzinfo else (time - _EPOCH).total_seconds()

    def span(self, began: str, ended: str, read: Callable[[TraceRow, str], float] = moment) -> float:
        """Return the seconds from one time to another."""
        seconds = read(self, ended) - read(self, began)
        if seconds < 0:
            raise InstanceError(ended, f"{self[ended]!r} is before the {began}")
        return seconds


@dataclass(frozen=True, slots=True)
class Format(Generic[T_co]):
    """A table as its owner writes it.

    Attributes:
        name: what it is called.
        needs: the columns by which it is recognised, with ``|`` between those of which one is enough.
        takes: other columns that are read if they are there.
        build: makes something of a row: a job, or says why there is none in it.
        calendar: whether times are of the calendar, or otherwise from no particular origin: the first becomes 0.
        join: makes jobs of parts of jobs, where a job may have several rows.
        unique: the field of which a name may not be there twice, those of parts aside.
        unit: what an error counts to say where it is.
        start: seconds from 1970 of the time 0, where the file says so.
    """

    name: str
    needs: str
    takes: str
    build: Callable[[TraceRow], T_co]
    calendar: bool = True
    join: Callable[[list[Job]], Iterator[Job | str]] | None = None
    unique: str = "job"
    unit: str = "line"
    start: float | None = None
    spelling: dict[str, str] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        words = self.needs.replace("|", " ").split() + self.takes.split()
        self.spelling.update((word.lower(), word) for word in words)

    def columns(self, header: Iterable[str]) -> tuple[str, ...]:
        """Return the columns that a header names, as the format spells them."""
        return tuple(self.spelling.get(name.strip().lower(), name.strip()) for name in header)

    def lacks(self, columns: Iterable[str]) -> list[str]:
        """Return the needed columns that are not there."""
        there = set(columns)
        return [group.replace("|", " or ") for group in self.needs.split() if not there & set(group.split("|"))]

    def lacking(self, header: tuple[str, ...], but: str = "") -> str:
        """Return what a header is, what it lacks, and which of its columns may be meant, by another name."""
        lacks, words = self.lacks(self.columns(header)), ", ".join(header)
        meant = next(filter(None, (did_you_mean(name, header) for name in lacks)), "")
        found = (words if len(words) <= 80 else f"{words[:77]}...") or "nothing"
        return f"{found}{but} lacks {', '.join(lacks)}{meant}"

    def checked(self, header: Iterable[str]) -> tuple[str, ...]:
        """Return the columns, of which none may lack, and none that is read be there twice."""
        columns = self.columns(header)
        if self.lacks(columns):
            raise InstanceError("header", self.lacking(columns))
        for name, count in Counter(columns).items():
            if count > 1 and name in self.spelling.values():
                raise InstanceError("header", f"{name!r} is there {count} times")
        return columns

    def made(self, content: Content, skip_bad: bool) -> tuple[list[T_co], list[str]]:
        """Return what is made of each row, and what is wrong with those left out if bad ones are to be."""
        columns, rows = content
        made: list[T_co] = []
        skipped: list[str] = []
        seen: set[str] = set()
        for line, values in rows:
            try:
                if len(values) != len(columns):
                    raise InstanceError("columns", f"the row has {len(values)} of them, not {len(columns)}")
                row = TraceRow(zip(columns, values, strict=True))
                row.line = line
                one = self.build(row)
                name = getattr(one, "name", None) if self.unique and not getattr(one, "part", "") else None
                if name in seen:
                    raise InstanceError(self.unique, f"{name!r} is a duplicate")
                if name is not None:
                    seen.add(name)
                made.append(one)
            except InstanceError as error:
                placed = InstanceError(f"{self.unit} {line}: {error.field}", error.problem)
                if not skip_bad:
                    raise placed from None
                skipped.append(str(placed))
        return made, skipped

    def read(self, content: Content, skip_bad: bool = False) -> tuple[list[T_co], list[str]]:
        """Return what is `made` of a table, of which there must be something."""
        made, skipped = self.made((self.checked(content[0]), content[1]), skip_bad)
        if not made:
            raise InstanceError("content", f"has no {'usable ' * bool(skipped)}row")
        return made, skipped


def table(text: str, columns: tuple[str, ...] = (), delimiter: str = ",") -> Table:
    """Split a table; its first line names the columns unless they are given."""
    rows = csv_rows(text, delimiter)
    names = columns or tuple(name.strip() for name in next(rows, (0, []))[1])
    return names, rows


def by_name(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Yield the parts of each job, in the order of the file."""
    parts: dict[str, list[Job]] = {}
    for job in jobs:
        parts.setdefault(job.name, []).append(job)
    yield from parts.values()


def together(parts: list[Job]) -> Job:
    """Return one job of parts that run at the same time: from the first start to the last end, all GPUs at once."""
    if len(parts) == 1:
        return parts[0]
    submit = min(part.submit for part in parts)
    gpus = sum(part.gpus for part in parts)
    return replace(
        parts[0],
        submit=submit,
        gpus=gpus,
        duration=max(part.submit + part.duration for part in parts) - submit,
        share=sum(part.gpus * part.share for part in parts) / gpus,
        cpu=sum(part.cpu for part in parts),
        memory=sum(part.memory for part in parts),
        priority=max(part.priority for part in parts),
        limit=max(part.submit + part.limit for part in parts) - submit,
        part="",
        ended=True,
    )


def tasks_together(jobs: list[Job]) -> Iterator[Job | str]:
    """Join the tasks of each job."""
    return (together(parts) for parts in by_name(jobs))
