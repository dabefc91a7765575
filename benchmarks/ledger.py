"""The ledger: one row a solve, appended and never changed."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from .records import locked, parse

ROOT = Path(__file__).parent.parent
LEDGER = ROOT / "benchmarks" / "ledger.csv"
MEASURED = ("instances", "solvers", "simulator", "learned", "hybrid", "api", "benchmarks/rivals")
"""What can change a figure: a commit elsewhere leaves the rows of a suite up to date."""


@dataclass(frozen=True, slots=True)
class Row:
    """One solve of one instance.

    Attributes:
        date: UTC, ISO 8601, when the solve ended.
        commit: the last that changed `MEASURED`, with a + if the tree differed from it.
        suite, instance, variant, method: what was run.
        content_hash: of the instance.
        ops, devices: its size: ops and devices of a graph, jobs and GPUs of a batch.
        seed, workers: as given to the method.
        time_limit: seconds, for model building, search and proof.
        read_seconds: to read or generate the instance, not part of `seconds`.
        seconds: of the solve, by the wall clock.
        status: OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN.
        objective, bound: seconds (or the instance's own unit); `None` if there is none.
        gap: (objective - bound) / objective; `None` if either is missing.
        load: processes that ran or waited on the machine in the minute before, as `os.getloadavg` counts.
        versions: of what can change a result.
    """

    date: str
    commit: str
    suite: str
    instance: str
    content_hash: str
    variant: str
    ops: int
    devices: int
    method: str
    seed: int
    workers: int
    time_limit: float
    read_seconds: float
    seconds: float
    status: str
    objective: float | None
    bound: float | None
    gap: float | None
    load: float
    versions: str

    @property
    def key(self) -> Key:
        """What makes another row a repetition of this one."""
        return self.commit, self.instance, self.variant, self.method, self.seed, self.workers, self.time_limit


Key = tuple[str, str, str, str, int, int, float]
COLUMNS = tuple(f.name for f in fields(Row))


def read(path: Path = LEDGER) -> list[Row]:
    """Return the rows of a ledger, oldest first; none if there is no file.

    Raises:
        ValueError: naming file and line, if a row is not whole.
    """
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        _check_header(path, next(lines, []))
        return [parse(Row, cells, f"{path}:{lines.line_num}") for cells in lines]


def append(row: Row, path: Path = LEDGER) -> None:
    """Add a row: whole or not at all, on the disk when this returns, whoever else appends at the same time."""
    line = _line(str(getattr(row, name)) if getattr(row, name) is not None else "" for name in COLUMNS)
    with locked(path) as file:
        file.seek(0)
        content = file.read()
        whole = content.rfind(b"\n") + 1  # a writer that was killed may have left half a row
        file.truncate(whole)
        if whole:
            _check_header(path, next(csv.reader(content.decode().splitlines())))
        else:
            line = _line(COLUMNS) + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def measured_commit(root: Path = ROOT) -> str:
    """Return the short hash of the last commit that changed `MEASURED`, with a + if the working tree differs."""
    commit = _git(root, "log", "-1", "--format=%h", "--abbrev=9", "--", *MEASURED)
    return commit + ("+" if _git(root, "status", "--porcelain", "--", *MEASURED) else "")


def _line(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


def _check_header(path: Path, cells: list[str]) -> None:
    if tuple(cells) != COLUMNS:
        raise ValueError(f"{path}:1: columns are {', '.join(cells)}; expected {', '.join(COLUMNS)}")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
