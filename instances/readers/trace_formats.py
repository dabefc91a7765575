"""The formats of job traces as their publishers ship them, and how each is recognised."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ..arrays import require_choice
from ..errors import InstanceError, unknown
from ..intake import parse_json
from . import philly, swf
from .fields import value_of
from .gavel import looks_like_gavel
from .slurm import SACCT
from .trace_rows import NEVER_RAN, NO_GPU, Content, Format, Job, TraceRow, table, tasks_together

MEBIBYTE = 2**20
MILLI = 1000
_PERCENT, _GIGABYTE = 100, 1e9
_MOST = 2**31


def _pai(row: TraceRow) -> Job | str:
    """Read a task: so many instances, percents of cores and GPUs, gigabytes, each. Its start is its submission."""
    if row.blank("plan_gpu") or row.number("plan_gpu") == 0:
        return NO_GPU
    if row["status"] != "Terminated" or row.blank("start_time") or row.blank("end_time"):
        return NEVER_RAN
    seconds = row.span("start_time", "end_time", TraceRow.number)
    count, gpu = 1 if row.blank("inst_num") else row.whole("inst_num"), row.number("plan_gpu") / _PERCENT
    held = math.ceil(gpu)
    if not held or held > _MOST:
        raise InstanceError("plan_gpu", f"{row['plan_gpu']!r} is not a share or a number of GPUs")
    return Job(
        row.text("job_name"),
        row.number("start_time"),
        count * held,
        seconds,
        share=gpu / held,
        cpu=count * row.number("plan_cpu", 0.0) / _PERCENT,
        memory=count * row.number("plan_mem", 0.0) * _GIGABYTE,
        user=row.text("user", ""),
        title=row.text("group", "") or row.text("workload", ""),
    )


def _plain(row: TraceRow, clock: Callable[[TraceRow, str], float] = TraceRow.number) -> Job:
    """Read a job of our own or of Tiresias', its submission by the `clock`."""
    return Job(
        row.text("job_id"),
        clock(row, "submit_time"),
        row.whole("num_gpu"),
        row.number("duration"),
        row.get("queue", ""),
        row.get("model_name", ""),
        _share(row),
        row.number("cpu", 0.0),
        row.number("memory", 0.0),
        row.text("user", ""),
        row.text("title", ""),
        row.priority("priority"),
        _limit(row),
    )


def _share(row: TraceRow) -> float:
    value = row.number("share", 1.0)
    if not 0 < value <= 1:
        raise InstanceError("share", f"{row['share']!r} is not above 0 and at most 1")
    return value


def _limit(row: TraceRow) -> float:
    value = row.number("limit", math.inf)
    if not value:
        raise InstanceError("limit", f"{row['limit']!r} is not positive")
    return value


def _logged(row: TraceRow, queue: str) -> Job | str:
    """Read a job of Helios or Acme; Kalos' own ``duration`` counts its wait, so the times are taken."""
    gpus = row.whole("gpu_num", least=0)
    if not gpus:
        return NO_GPU
    if row.blank("start_time") or row.blank("end_time"):
        return NEVER_RAN
    pods = row.number("node_num", 0.0) if "mem_per_pod_GB" in row else 0.0
    return Job(
        row.text("job_id"),
        row.moment("submit_time"),
        gpus,
        row.span("start_time", "end_time"),
        row[queue],
        cpu=row.number("cpu_num", 0.0),
        memory=pods * row.number("mem_per_pod_GB", 0.0) * _GIGABYTE,
        user=row.text("user", ""),
        title=row.text("jobname", ""),
    )


def _openb(row: TraceRow) -> Job | str:
    """Read a pod: milli-cores, MiB, milli-GPUs."""
    gpus = row.whole("num_gpu", least=0)
    if not gpus:
        return NO_GPU
    if row.blank("deletion_time") or row.blank("scheduled_time"):
        return NEVER_RAN
    seconds = row.span("scheduled_time", "deletion_time", TraceRow.number)
    milli = row.whole("gpu_milli")
    if milli > MILLI:
        raise InstanceError("gpu_milli", f"{milli} is more than a GPU has, {MILLI}")
    return Job(
        row.text("name"),
        row.number("creation_time"),
        gpus,
        seconds,
        row.get("qos", ""),
        share=milli / MILLI,
        cpu=row.number("cpu_milli") / MILLI,
        memory=row.number("memory_mib") * MEBIBYTE,
    )


def _pollux(row: TraceRow, seconds: Mapping[str, float]) -> Job:
    """Read a job, whose application the trace does not say how long runs."""
    application = row.text("application")
    if application not in seconds:
        raise InstanceError("application", f"{application!r} has no duration: say how many seconds it runs")
    lasts = seconds[application]
    if not 0 <= lasts < float("inf"):
        raise InstanceError("application", f"{application!r} cannot run {lasts!r} seconds")
    gpus = row.whole("num_replicas")
    return Job(row.text("name"), row.number("time"), gpus, lasts, model=application, title=application)


PLAIN = Format(
    "plain CSV",
    "job_id num_gpu submit_time duration",
    "queue model_name share cpu memory user title priority limit",
    _plain,
    calendar=False,
)
DATED = replace(PLAIN, build=partial(_plain, clock=TraceRow.moment), calendar=True)
"""Plain CSV whose submissions are times of the calendar."""
PAI = Format(
    "Alibaba's of 2020 (Weng et al., NSDI 2022)",
    "job_name task_name inst_num status start_time end_time plan_cpu plan_mem plan_gpu gpu_type",
    "user group workload",
    _pai,
    join=tasks_together,
    unique="",
)
_NAMED = partial(_pollux, seconds={})
POLLUX = Format("Pollux' (Qiao et al., OSDI 2021)", "name time application num_replicas", "", _NAMED, calendar=False)
FORMATS = (
    PLAIN,
    philly.TABLE,
    Format(
        "Helios' (Hu et al., SC 2021)",
        "job_id vc gpu_num cpu_num submit_time start_time end_time duration",
        "user jobname",
        partial(_logged, queue="vc"),
    ),
    Format(
        "Acme's (Hu et al., NSDI 2024)",
        "job_id node_num gpu_num cpu_num type state submit_time start_time end_time",
        "mem_per_pod_GB user jobname",
        partial(_logged, queue="type"),
    ),
    Format(
        "Alibaba's of 2023 (Weng et al., ATC 2023)",
        "name cpu_milli memory_mib num_gpu gpu_milli creation_time deletion_time scheduled_time",
        "qos",
        _openb,
    ),
    POLLUX,
    PAI,
    SACCT,
)
"""Those that have a header, in the order in which they are tried."""
DELIMITERS = ",|\t;"
OURS = {"id": "job_id", "gpus": "num_gpu", "submit": "submit_time", "model": "model_name"}
"""Short names of our columns."""


def recognise(text: str, seconds: Mapping[str, float], columns: Mapping[str, str]) -> tuple[Format[Job | str], Content]:
    """Return the format of a trace, its columns and its rows."""
    if text.lstrip().startswith(("{", "[")):
        data = parse_json(text)
        if philly.recognises(data) and not columns:
            return philly.LOG, philly.split(data)
        raise InstanceError("header", "is that of JSON, not of a trace: a row for each job, under a line of columns")
    if swf.recognises(text) and not columns:
        return swf.dated(text), swf.split(text)
    head = "\n".join(text.lstrip().split("\n", 2)[:2])
    headers = {delimiter: table(head, delimiter=delimiter)[0] for delimiter in DELIMITERS}
    if columns:
        header, delimiter = _renamed(headers, columns)
        return _plain_table(text, head, header, delimiter)
    for form in FORMATS:
        for delimiter, raw in headers.items():
            if form.lacks(header := form.columns(raw)):
                continue
            if form is PLAIN:
                return _plain_table(text, head, header, delimiter)
            content = form.checked(header), table(text, delimiter=delimiter)[1]
            return replace(form, build=partial(_pollux, seconds=seconds)) if form is POLLUX else form, content
    if _is_bare_pai(headers[","]):
        return PAI, table(text, tuple(PAI.needs.split()))
    raise InstanceError("header", _nearest(head, headers))


def _plain_table(text: str, head: str, header: tuple[str, ...], delimiter: str) -> tuple[Format[Job | str], Content]:
    """Return a table of our own columns; its first row tells whether it has times of the calendar."""
    _, first = next(table(head, delimiter=delimiter)[1], (0, []))
    word = dict(zip(PLAIN.checked(header), first, strict=False)).get("submit_time", "0")
    dated = any(mark in word for mark in "-:") and isinstance(value_of(word), str)
    return DATED if dated else PLAIN, (header, table(text, delimiter=delimiter)[1])


def _renamed(headers: Mapping[str, tuple[str, ...]], columns: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Return the header with our names for the columns that are given, and its delimiter."""
    ours = {theirs: OURS.get(name, name) for name, theirs in columns.items()}
    for name in ours.values():
        if name not in PLAIN.spelling:
            raise InstanceError("columns", unknown(name, [*OURS, *PLAIN.spelling]))
    if len(set(ours.values())) < len(columns):
        raise InstanceError("columns", "give a column two names, or a name to two columns")
    delimiter, header = max(headers.items(), key=lambda item: len(set(item[1]) & set(ours)))
    for theirs in ours:
        require_choice(theirs, "columns", header)
    given = set(ours.values())
    return tuple(ours.get(name, "" if name in given else name) for name in header), delimiter


def _is_bare_pai(fields: tuple[str, ...]) -> bool:
    """Return whether a line is of Alibaba's table, which is published without its header."""
    count = len(PAI.needs.split())
    numbers = [fields[i] for i in (2, 4, 5, 6, 7, 8)] if len(fields) == count else ["?"]
    return fields[3:4] != ("status",) and all(not word or isinstance(value_of(word), float) for word in numbers)


def _nearest(head: str, headers: Mapping[str, tuple[str, ...]]) -> str:
    """Say which format a header is nearest to, and what it lacks."""
    line = head.partition("\n")[0]
    if looks_like_gavel(line):
        return "is none: it looks like Gavel's, which needs --rounds and --throughputs"
    if not SACCT.lacks(SACCT.columns(line.split())):
        return "has columns of a fixed width: write it by sacct --parsable2"
    shares = [
        (len(form.lacks(form.columns(raw))) / len(form.needs.split()), i, raw)
        for i, form in enumerate(FORMATS)
        for delimiter, raw in headers.items()
        if form is not SACCT or delimiter == "|"
    ]
    share, i, raw = min(shares, key=lambda item: item[:2])
    if share < 0.5 and FORMATS[i] is not PLAIN:
        return FORMATS[i].lacking(raw, f" is nearly {FORMATS[i].name}, but")
    hint = "; --columns id=NAME,gpus=NAME,... says what they are called here"
    return PLAIN.lacking(raw if share < 1 else headers[","]) + hint
