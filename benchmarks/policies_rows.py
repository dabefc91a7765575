"""The rows of benchmarks/policies.csv: one simulation of one trace by one policy each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .ledger import ROOT
from .records import read_records

POLICY_ROWS = ROOT / "benchmarks" / "policies.csv"
PROTOCOL = 1
"""Counted up when traces, clusters or what is measured change: rows of another protocol are run again."""


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One simulation.

    Attributes:
        date, commit: as in the ledger.
        protocol: `PROTOCOL` at the time.
        trace, cluster, policy, seed: what was run.
        jobs: of the trace.
        gpus: of the cluster.
        load: the work of the trace over what the GPUs can do while jobs are submitted, in a second at least.
        mean_jct, p99_jct, makespan: seconds; None if the simulation was cut off.
        utilisation: GPU seconds held over those there were; None if it was cut off.
        jct_bound, makespan_bound: no schedule has less, seconds.
        unstopped_bound: no schedule that neither stops jobs nor shares their GPUs has a smaller mean JCT; None where
            the policy does, or it is not known.
        seconds: of the processor, for the simulation and its check.
    """

    date: str
    commit: str
    protocol: int
    trace: str
    cluster: str
    policy: str
    seed: int
    jobs: int
    gpus: int
    load: float
    mean_jct: float | None
    p99_jct: float | None
    makespan: float | None
    utilisation: float | None
    jct_bound: float
    makespan_bound: float
    unstopped_bound: float | None
    seconds: float

    @property
    def key(self) -> tuple[int, str, str, str, int]:
        """What makes another row a repetition of this one."""
        return self.protocol, self.trace, self.cluster, self.policy, self.seed

    @property
    def regret(self) -> float | None:
        """By how much the mean JCT exceeds its bound, as a share of it."""
        return None if self.mean_jct is None else self.mean_jct / self.jct_bound - 1

    @property
    def unstopped_regret(self) -> float | None:
        """By how much the mean JCT exceeds the bound on schedules that stop no job, as a share of it."""
        known = self.mean_jct is not None and self.unstopped_bound is not None
        return self.mean_jct / self.unstopped_bound - 1 if known else None  # type: ignore[operator]

    @property
    def makespan_regret(self) -> float | None:
        """By how much the makespan exceeds its bound, as a share of it."""
        return None if self.makespan is None else self.makespan / self.makespan_bound - 1


def read(path: Path = POLICY_ROWS) -> list[PolicyRow]:
    """Return the rows of a file, see `read_records`."""
    return read_records(path, PolicyRow)
