"""What Slurm's ``sacct --parsable2`` prints: columns between pipes, one row a job and a step.

Needed: JobID, Submit, Elapsed or ElapsedRaw, and ReqTRES, AllocTRES or AllocGRES. Optional: Partition, State.
"""

from __future__ import annotations

import re

from ...errors import InstanceError
from ...intake import as_float
from .row import NEVER_RAN, NO_GPU, STEP, Job, Row, moment, number, text

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
