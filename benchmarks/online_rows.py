"""The rows of benchmarks/online.csv: latencies by size of the cluster, and traces by policy."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from .ledger import ROOT

CSV = ROOT / "benchmarks" / "online.csv"


@dataclass(frozen=True, slots=True)
class OnlineRow:
    """One measurement.

    Attributes:
        date, commit: when, of what.
        kind: ``latency`` or ``jct``.
        set: the cluster, or the trace with its cluster.
        policy: what decided.
        size: GPUs, or jobs.
        seed: of the policy.
        value: 99th percentile of a decision, seconds; or mean JCT, seconds.
        median: of the decisions, seconds of their thread; of traces of the clock; 0 where they were not timed.
        thread: 99th percentile of the decisions, the same.
        bound: no schedule that stops no job has a smaller mean JCT; 0 for latencies.
        memory: bytes resident at most; 0 where it was not measured.
        seconds: of the processor.
    """

    date: str
    commit: str
    kind: str
    set: str
    policy: str
    size: int
    seed: int
    value: float
    median: float
    thread: float
    bound: float
    memory: int
    seconds: float

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What makes another row a repetition of this one."""
        return self.kind, self.set, self.policy, self.seed


COLUMNS = tuple(f.name for f in fields(OnlineRow))


def read(path: Path = CSV) -> list[OnlineRow]:
    """Return the rows of a file, none if there is no file; of repetitions the last.

    Raises:
        ValueError: if the columns are others, or a cell is no number where it should be.
    """
    if not path.exists():
        return []
    kinds = {f.name: {"str": str, "int": int, "float": float}[str(f.type)] for f in fields(OnlineRow)}
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        if tuple(lines.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path.name}: columns are not {', '.join(COLUMNS)}")
        rows = [OnlineRow(**{name: kinds[name](cell) for name, cell in line.items()}) for line in lines]
    return list({row.key: row for row in rows}.values())


def add(rows: Iterable[OnlineRow], path: Path = CSV) -> None:
    """Append rows."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            lines.writeheader()
        lines.writerows(asdict(row) for row in rows)
