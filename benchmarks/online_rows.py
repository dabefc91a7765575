"""The rows of benchmarks/online.csv: latencies by size of the cluster, and traces by policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .ledger import ROOT
from .records import append_records, read_records

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


def read(path: Path = CSV) -> list[OnlineRow]:
    """Return the rows of a file, of repetitions the last; see `read_records`."""
    return list({row.key: row for row in read_records(path, OnlineRow)}.values())


def add(rows: Iterable[OnlineRow], path: Path = CSV) -> None:
    """Append rows, see `append_records`."""
    append_records(list(rows), path)
