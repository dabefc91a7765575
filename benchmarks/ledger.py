"""The ledger: one row a solve, appended and never changed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .records import append_records, columns, read_records

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
COLUMNS = columns(Row)


class Rows:
    """The newest row of each (suite, instance, variant, method)."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.newest = {(r.suite, r.instance, r.variant, r.method): r for r in rows}

    def find(self, suite: str, instance: str, variant: str = "contiguous", method: str = "auto") -> Row | None:
        """Return that row, `None` if it has not been run."""
        return self.newest.get((suite, instance, variant, method))

    def of(self, suite: str) -> list[Row]:
        """Return the newest rows of a suite."""
        return [row for row in self.newest.values() if row.suite == suite]


def read(path: Path = LEDGER) -> list[Row]:
    """Return the rows of a ledger, oldest first; none if there is no file.

    Raises:
        ValueError: naming file and line, if a row is not whole.
    """
    return read_records(path, Row)


def append(row: Row, path: Path = LEDGER) -> None:
    """Add a row, see `append_records`."""
    append_records([row], path)


def measured_commit(root: Path = ROOT) -> str:
    """Return the short hash of the last commit that changed `MEASURED`, with a + if the working tree differs."""
    commit = _git(root, "log", "-1", "--format=%h", "--abbrev=9", "--", *MEASURED)
    return commit + ("+" if _git(root, "status", "--porcelain", "--", *MEASURED) else "")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
