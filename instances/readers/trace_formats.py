"""The formats of job traces as their publishers ship them, and how each is recognised."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from ..errors import InstanceError
from ..intake import Table, as_float, csv_rows

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


def table(text: str, columns: tuple[str, ...] = (), delimiter: str = ",") -> Table:
    """Split a table; its first line names the columns unless they are given."""
    rows = csv_rows(text, delimiter)
    names = columns or tuple(name.strip() for name in next(rows, (0, []))[1])
    return names, rows


T = TypeVar("T")


def built_rows(
    content: Table, build: Callable[[dict[str, str], int], T], skip_bad: bool, unique: str = ""
) -> tuple[list[T], list[str]]:
    """Return what `build` makes of each row and its line, and what is wrong with those left out.

    Args:
        content: columns and rows.
        build: makes something, with a name if it is to be `unique`, of the fields by column and the line.
        skip_bad: leave rows out that are wrong, instead of raising.
        unique: the field that a name which was there before is an error of.

    Raises:
        InstanceError: naming line, field and the value found.
    """
    columns, rows = content
    made: list[T] = []
    skipped: list[str] = []
    seen: set[str] = set()
    for line, values in rows:
        try:
            if len(values) != len(columns):
                raise InstanceError("columns", f"the row has {len(values)} of them, not {len(columns)}")
            one = build(dict(zip(columns, values, strict=True)), line)
            name = getattr(one, "name", None) if unique else None
            if name in seen:
                raise InstanceError(unique, f"{name!r} is a duplicate")
            if name is not None:
                seen.add(name)
            made.append(one)
        except InstanceError as error:
            placed = InstanceError(f"line {line}: {error.field}", error.problem)
            if not skip_bad:
                raise placed from None
            skipped.append(str(placed))
    return made, skipped


PAI = (
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


_TRES = ("ReqTRES", "AllocTRES", "AllocGRES")
_ELAPSED = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})(?:\.\d+)?", re.ASCII)
_GPU = re.compile(r"(?:^|,)(?:gres/)?gpu(?::[^=,:]+)?[=:](\d+)", re.ASCII)
_MEMORY = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)", re.ASCII)
_CPU = re.compile(r"(?:^|,)cpu=(\d+)", re.ASCII)
_UNITS = "KMGTP"


def looks_like_sacct(columns: tuple[str, ...]) -> bool:
    """Return whether the header is one of ``sacct``."""
    return {"JobID", "Submit"} <= set(columns) and any(name in columns for name in _TRES)


def sacct(row: Row, line: int) -> Job | str:
    """Read a job; rows of its steps (``17.batch``) repeat it."""
    name = text(row, "JobID")
    if "." in name:
        return STEP
    tres = next((row[key] for key in _TRES if row.get(key)), "")
    # a typed count (gres/gpu:a100=4) repeats the plain one
    gpus = int(max((as_float(count, "gpu") for count in _GPU.findall(tres)), default=0))
    if not gpus:
        return NO_GPU
    state = row.get("State", "").split(" ")[0]
    duration = number(row, "ElapsedRaw") if "ElapsedRaw" in row else _elapsed(row)
    if state in {"PENDING", "RUNNING", "SUSPENDED", "REQUEUED"} or (state == "CANCELLED" and not duration):
        return NEVER_RAN
    cpu, memory = _CPU.search(tres), _MEMORY.search(tres)
    return Job(
        name,
        moment(row, "Submit"),
        gpus,
        duration,
        row.get("Partition", ""),
        cpu=as_float(cpu[1], "cpu") if cpu else 0.0,
        memory=as_float(memory[1], "mem") * 1024 ** (_UNITS.find(memory[2] or "M") + 1) if memory else 0.0,
    )


def _elapsed(row: Row) -> float:
    """Return the seconds of [days-][hours:]minutes:seconds."""
    if "Elapsed" not in row:
        raise InstanceError("Elapsed", "is missing, and so is ElapsedRaw")
    found = _ELAPSED.fullmatch(row["Elapsed"].strip())
    if found is None:
        raise InstanceError("Elapsed", f"{row['Elapsed']!r} is no time like 1-02:03:04")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


SWF = (
    "job", "submit", "wait", "run", "allocated", "cpu_time", "memory_used", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think",
)  # fmt: skip
_UNKNOWN = "-1"


def split_swf(content: str) -> Table:
    """Split the text, comments left out."""
    lines = enumerate(content.splitlines(), start=1)
    return SWF, ((i, line.split()) for i, line in lines if line.strip() and not line.lstrip().startswith(";"))


def looks_like_swf(content: str) -> bool:
    """Return whether the first line that is no comment has 18 numbers."""
    _, fields = next(split_swf(content)[1], (0, []))
    return len(fields) == len(SWF) and all(word.lstrip("-").replace(".", "", 1).isdigit() for word in fields)


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


def recognise(text: str, seconds: Mapping[str, float]) -> Format:
    """Return the format of a trace.

    Args:
        text: of the file.
        seconds: see `read_trace`.

    Raises:
        InstanceError: if it is none that is known.
    """
    columns = table(text)[0]
    for form in _with_header(seconds):
        if form.needs <= set(columns):
            return form
    if len(columns) == len(PAI) and columns[2].replace(".", "", 1).isdigit():
        headless = partial(table, columns=PAI)
        return Format(frozenset(), headless, pai, calendar=True, merge=True)
    if looks_like_sacct(table(text, delimiter="|")[0]):
        return Format(frozenset(), partial(table, delimiter="|"), sacct, calendar=True)
    if looks_like_swf(text):
        return Format(frozenset(), split_swf, swf)
    head = ", ".join(columns)
    if head.startswith("{"):
        raise InstanceError("header", "is that of JSON, not of a trace: a row for each job, under a line of columns")
    head = head if len(head) <= 80 else f"{head[:77]}..."
    raise InstanceError("header", f"{head or 'nothing'} lacks job_id, num_gpu, submit_time or duration")


def _with_header(seconds: Mapping[str, float]) -> tuple[Format, ...]:
    def named(columns: str) -> frozenset[str]:
        return frozenset(columns.split())

    return (
        Format(named("job_id num_gpu submit_time duration"), table, plain),
        Format(named("timestamp duration num_gpus cluster"), table, philly, calendar=True),
        Format(
            named("job_id vc gpu_num cpu_num submit_time start_time end_time duration"),
            table,
            helios,
            calendar=True,
        ),
        Format(
            named("name cpu_milli memory_mib num_gpu gpu_milli creation_time deletion_time scheduled_time"),
            table,
            openb,
            calendar=True,
        ),
        Format(named("name time application num_replicas"), table, partial(pollux, seconds=seconds)),
        Format(frozenset(PAI), table, pai, calendar=True, merge=True),
    )
