"""Run work on what strangers sent in a process of its own, within limits of time, memory, processes and output.

No sandbox: whoever runs the grader may write and read what the grader may. See docs/teachers.md.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from gangplan.hybrid.bench.leftovers import swept
from gangplan.instances import InstanceError
from gangplan.instances.errors import printable
from gangplan.instances.intake import decoded, parse_json

from .isolation import namespaces

START = 30.0
"""Seconds that an interpreter may take to begin, on a busy machine."""
_LEAVE = 5.0
"""Seconds that the watcher may take, after the limit, to end all that the work has started."""
_SHOWN = 4000
"""Bytes of what was printed that are kept."""


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """Limit what work may use.

    Attributes:
        seconds: by the clock, once the problem has been read.
        memory: bytes of all its processes; what they share counts for each.
        output: bytes of any file that it writes; what it prints is one.
        processes: at a time.
    """

    seconds: float = 10.0
    memory: float = 4e9
    output: int = 2**24
    processes: int = 32


@dataclass(frozen=True, slots=True)
class Ended:
    """Say how work ended.

    Attributes:
        rows: the answers that it wrote, one after the other.
        fault: what ended it before its time; empty if nothing did.
        printed: the beginning of what it printed.
    """

    rows: tuple[dict[str, Any], ...]
    fault: str
    printed: str


FAULTS = {
    70: "took longer than {seconds:g} s",
    71: "needed more than {memory:.3g} bytes of memory",
    72: "had more than {processes} processes",
    73: "ended without an answer",
}
"""Exit codes of the watcher, `gangplan.teach.attempt`, and what they say."""


def confined(request: dict[str, Any], folder: Path, limits: WorkLimits, hidden: Sequence[str] = ()) -> Ended:
    """Do what a request says in a process in `folder`, and return what that answers.

    Nothing that it starts survives it, see `gangplan.teach.isolation`.

    Args:
        request: see `gangplan.teach.attempt`.
        folder: where it runs, and its home.
        limits: what it may use.
        hidden: folders that it shall not see, unless it runs from there; where there are namespaces they are empty.

    Raises:
        InstanceError: if the system has no processes of this kind.
    """
    if not hasattr(os, "fork"):
        raise InstanceError("system", "grading needs Linux or macOS")
    apart, needed = namespaces(), [folder, Path(sys.prefix), Path(sys.base_prefix), *map(Path, filter(None, sys.path))]
    guard = nullcontext() if apart else swept()
    with guard, TemporaryFile() as asked, TemporaryFile() as answer, TemporaryFile() as printed:
        told = {name: getattr(limits, name) for name in WorkLimits.__slots__}
        more = {"limits": told, "answer": answer.fileno(), "namespaces": apart,
                "hidden": [x for x in hidden if not any(y.is_relative_to(x) for y in needed)]}  # fmt: skip
        asked.write(json.dumps(request | more).encode())
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gangplan.teach.attempt"], cwd=folder, env=_surroundings(folder),
            stdin=asked, stdout=printed, stderr=subprocess.STDOUT, pass_fds=[answer.fileno()], start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(START + limits.seconds + _LEAVE)  # the watcher ends it sooner
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        rows = _rows(answer, limits)
        fault = FAULTS.get(process.returncode, FAULTS[73] if process.returncode else "").format_map(told)
        return Ended(rows, fault, _beginning(printed))


def _surroundings(folder: Path) -> dict[str, str]:
    """Return the environment of the process: no tokens of whoever grades, one thread a library."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    own = {"HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    own["PYTHONUNBUFFERED"] = "1"  # what a program printed before it was killed is shown
    return kept | own | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def _rows(file: BinaryIO, limits: WorkLimits) -> tuple[dict[str, Any], ...]:
    """Return the lines of an answer that are JSON objects; of what is none nothing is believed."""
    found = []
    for line in os.pread(file.fileno(), limits.output, 0).splitlines():
        try:
            row = parse_json(decoded(line))
        except InstanceError:
            break
        if not isinstance(row, dict):
            break
        found.append(row)
    return tuple(found)


def _beginning(file: BinaryIO) -> str:
    text = os.pread(file.fileno(), _SHOWN, 0).decode(errors="replace")
    return printable(text) + "\n[...]" * (os.fstat(file.fileno()).st_size > _SHOWN)
