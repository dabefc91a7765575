"""Read what Slurm's ``sacct`` writes: a row for each job, its steps, attempts and heterogeneous parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf

from ..errors import InstanceError
from ..intake import as_float
from .trace_rows import NEVER_RAN, NO_GPU, Format, Job, TraceRow, by_name, together

STEP, ATTEMPT = "of a step of a job", "of an attempt that was not the last"
"""Why rows make no job."""
_TRES = ("AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES")
"""What was given comes before what was asked: with ``--exclusive`` a job has more than it names."""
_WAITS = frozenset(("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "REVOKED"))
_ELAPSED = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})(?:\.\d+)?", re.ASCII)
_GPU = re.compile(r"(?:^|,)(gres/)?gpu(?::([^=:,(]*[^=:,(\d][^=:,(]*))?(?:[=:](\d+))?(?=[,(]|$)", re.ASCII)
_MEMORY = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)", re.ASCII)
_CPU = re.compile(r"(?:^|,)cpu=(\d+)", re.ASCII)
_UNITS = "KMGTP"
_MINUTE = 60.0
_NO_LIMIT = frozenset(("UNLIMITED", "PARTITION_LIMIT", "INVALID"))
"""What stands in place of a limit that nobody asked for."""


def _gpus(words: str) -> int:
    """Return how many GPUs a list of resources names: the plain count of ``gres/gpu`` is of all types together."""
    counts = [(kind, tres, int(as_float(count or 1, "gpu"))) for tres, kind, count in _GPU.findall(words)]
    plain = [count for kind, tres, count in counts if tres and not kind]
    return max(plain) if plain else sum(count for _, _, count in counts)


def _row(row: TraceRow) -> Job | str:
    """Read a job or a part of one; rows of its steps (``17.batch``) repeat it."""
    name = row.text("JobIDRaw" if row.blank("JobID") else "JobID")
    if "." in name:
        return STEP
    key = next((key for key in _TRES if _gpus(row.get(key, ""))), None)
    if key is None:
        return NO_GPU
    gpus = _gpus(row[key])
    if key == "ReqGRES":
        nodes = next((name for name in ("NNodes", "AllocNodes") if not row.blank(name)), None)
        if nodes is None:
            raise InstanceError("ReqGRES", f"{row[key]!r} is of each node, and NNodes is missing")
        gpus *= row.whole(nodes, least=0) or 1
    state = row.get("State", "").split(" ")[0].upper()
    duration = row.number("ElapsedRaw") if not row.blank("ElapsedRaw") else _seconds(row, "Elapsed")
    tres = next((row[key] for key in ("AllocTRES", "ReqTRES") if row.get(key)), "")
    cpu, memory = _CPU.search(tres), _MEMORY.search(tres)
    whole_name, _, part = name.partition("+")
    return Job(
        whole_name,
        row.moment("Submit"),
        gpus,
        duration,
        row.get("Partition", ""),
        cpu=as_float(cpu[1], "cpu") if cpu else 0.0,
        memory=as_float(memory[1], "mem") * 1024 ** (_UNITS.find(memory[2] or "M") + 1) if memory else 0.0,
        user=row.text("User", ""),
        title=row.text("JobName", ""),
        priority=row.priority("Priority"),
        limit=_limit(row),
        part=part,
        ended=state not in _WAITS and (state != "CANCELLED" or duration > 0),
    )


def _limit(row: TraceRow) -> float:
    """Return the seconds of a limit, infinite where there is none; ``TimelimitRaw`` is in minutes."""
    asked = (key for key in ("TimelimitRaw", "Timelimit") if not row.blank(key))
    key = next((key for key in asked if row[key].strip().upper() not in _NO_LIMIT), None)
    if key is None:
        return inf
    return (row.number(key) * _MINUTE if key.endswith("Raw") else _seconds(row, key)) or inf


def _seconds(row: TraceRow, key: str) -> float:
    """Return the seconds of [days-][hours:]minutes:seconds."""
    if key not in row:
        raise InstanceError(key, f"is missing, and so is {key}Raw")
    match = _ELAPSED.fullmatch(row[key].strip())
    if match is None:
        raise InstanceError(key, f"{row[key]!r} is no time like 1-02:03:04")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _jobs(rows: list[Job]) -> Iterator[Job | str]:
    """Take the last attempt of each part (``sacct --duplicates``), and the parts ``20+0``, ``20+1`` as one gang."""
    for attempts in by_name(rows):
        last: dict[str, Job] = {}
        for attempt in attempts:
            if attempt.part not in last or attempt.submit >= last[attempt.part].submit:
                last[attempt.part] = attempt
        yield from [ATTEMPT] * (len(attempts) - len(last))
        parts = list(last.values())
        if all(part.ended for part in parts):
            yield together(parts)
        else:
            yield from [NEVER_RAN] * len(parts)


SACCT = Format(
    "Slurm's (sacct --parsable2)",
    "JobID|JobIDRaw Submit AllocTRES|ReqTRES|AllocGRES|ReqGRES",
    "Partition State Elapsed ElapsedRaw NNodes AllocNodes User JobName Priority Timelimit TimelimitRaw",
    _row,
    join=_jobs,
    unique="",
)
