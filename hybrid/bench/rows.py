"""The rows of a run: a journal of lines of JSON that survives kill -9, and Parquet for whoever reads tables."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from gangplan.instances.errors import in_file, within
from gangplan.instances.intake import parse_json, read_text
from gangplan.instances.outlet import write_whole
from gangplan.instances.typed import ROWS
from gangplan.solvers.result import relative_gap

T = TypeVar("T")


def line_of(value: Any) -> bytes:
    """Return a dataclass of numbers, words, lists and dicts as a line of JSON."""
    return json.dumps(asdict(value), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_lines(path: Path, cls: type[T]) -> list[T]:
    """Return the whole lines of a file, oldest first, none if there is no file; what was cut off is no line."""
    if not path.exists():
        return []
    whole, _, _ = read_text(path, gzip=path.suffix == ".gz", empty=True).rpartition("\n")
    found = []
    for number, line in enumerate(whole.splitlines(), 1):
        with in_file(path), within(f"line {number}"):
            found.append(ROWS.read(cls, parse_json(line)))
    return found


ONLINE = "online"
"""The objective of instances whose value is that of a policy, see `gangplan.hybrid.bench.makers`."""
JOURNAL, TABLE = "rows.jsonl", "rows.parquet"
FAILED, SKIPPED, UNSUITED = "FAILED", "SKIPPED", "UNSUITED"
"""Statuses of a row besides those of a result: the method did not come to an end; it declined the problem when it saw
it; it had declared that the objective is not its own."""
Key = tuple[str, str, str, int, float, int]


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One solve.

    Attributes:
        parts: of the instance: ops, jobs and nodes, or jobs.
        method: a method, a plug-in, or who submitted the plan.
        deadline: seconds of wall-clock time.
        status: of the result, or `FAILED`, `SKIPPED` or `UNSUITED`.
        value: of the plan, as the verifier says after the method has ended; None without a plan.
        bound: that the method claimed before the deadline; None if none.
        zero: what gaps are counted from.
        seconds, cpu: of the solve, by the wall clock, and of all its processors.
        memory: bytes that its process held at most.
        trace: second, and value found then, of each better plan.
        date: UTC, when it ended.
        load, busy: processes that ran or waited on the machine in the minute before; its processors busy during it.
        gap: to the best value known when it was run, see `gap_to`; None where none is, or its method is unsuited.
        code: digest of the file of a solver of others; one that has changed is run again.
        by, bound_by, turns: of the methods in it which found the plan, which claims the bound, seconds each worked.
    """

    instance: str
    hash: str
    objective: str
    family: str
    size: str
    parts: int
    method: str
    seed: int
    deadline: float
    workers: int
    status: str
    value: float | None = None
    bound: float | None = None
    zero: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    trace: tuple[tuple[float, ...], ...] = ()
    notes: str = ""
    date: str = ""
    load: float = 0.0
    environment: str = ""
    gap: float | None = None
    by: str = ""
    bound_by: str = ""
    turns: Mapping[str, float] = field(default_factory=dict)
    busy: float = 0.0
    code: str = ""

    @property
    def in_time(self) -> float | None:
        """The value of the best plan that came before the deadline; a late plan is none."""
        if not self.trace or self.trace[-1][0] <= self.deadline:
            return self.value
        return min((value for second, value in self.trace if second <= self.deadline), default=None)

    @property
    def key(self) -> Key:
        """What makes another row a repetition of this one."""
        return self.instance, self.hash, self.method, self.seed, self.deadline, self.workers

    @property
    def topic(self) -> str:
        """What results are told by: the objective, of an online instance the family."""
        return self.family if self.objective == ONLINE else self.objective

    def against(self, best: float | None) -> BenchRow:
        """Return the row with its gap to the best known value."""
        return self if best is None or self.status == UNSUITED else replace(self, gap=self.gap_to(best))

    def gap_to(self, reference: float | None) -> float:
        """Return (value in time - reference) / (that - zero), from 0 to 1; 1 without a plan or a reference."""
        gap = relative_gap(self.in_time, reference, self.zero)
        return 1.0 if gap is None else min(max(gap, 0.0), 1.0)


def append(rows: Iterable[Any], folder: Path, name: str = JOURNAL) -> None:
    """Add rows, or other dataclasses, to a journal: on the disk when this returns, behind whole rows only."""
    with (folder / name).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)  # whoever was killed may have left half a row
        for row in rows:
            file.write(line_of(row))
        file.flush()
        os.fsync(file.fileno())


def read_rows(folder: Path) -> list[BenchRow]:
    """Return the rows of a run, oldest first; see `read_lines`."""
    return read_lines(folder / JOURNAL, BenchRow)


def write_table(rows: Iterable[BenchRow], folder: Path) -> None:
    """Write the rows as Parquet, if pyarrow is there to do so."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    content = BytesIO()
    lines = [asdict(row) | {"turns": json.dumps(row.turns)} for row in rows]
    parquet.write_table(pyarrow.Table.from_pylist(lines), content, compression="zstd")
    write_whole({folder / TABLE: content.getvalue()})
