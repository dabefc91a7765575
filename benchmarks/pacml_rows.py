"""The rows of benchmarks/pacml.csv: one simulation of one case by one policy each, or one bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .ledger import ROOT
from .records import append_records, read_records

PACML = ROOT / "benchmarks" / "pacml.csv"
PROTOCOL = 1
"""Counted up when cases or what is measured change: rows of another protocol are run again."""

LEARNED, UNGUARDED, BOUND, PLAN = "learned", "unguarded", "bound", "plan"
"""Policies by name: the learned one, the same without its guard, the LP's bound, and the schedule that beam search
finds; the last two know all arrivals."""

Key = tuple[int, str, str, str, str, str, float, int, str, int]


@dataclass(frozen=True, slots=True)
class PacmlRow:
    """One simulation.

    Attributes:
        date, commit: as in the ledger.
        protocol: `PROTOCOL` at the time.
        weights: the first twelve digits of their SHA-256, empty of a policy without.
        units, models, cluster, load, jobs: as of `benchmarks.pacml_suites.Cell`.
        policy: a name that `make_policy` knows, `LEARNED`, `UNGUARDED`, `BOUND`, `PLAN`, a search, or an ablation.
        distribution, seed: of what arrives.
        blocked, blocked_or_running: the rates; the second one is the published.
        seconds: of the simulation or search, without the check.
    """

    date: str
    commit: str
    protocol: int
    weights: str
    units: str
    models: str
    cluster: str
    load: float
    jobs: int
    policy: str
    distribution: str
    seed: int
    blocked: float
    blocked_or_running: float
    seconds: float

    @property
    def key(self) -> Key:
        """What makes another row a repetition of this one."""
        where = self.units, self.models, self.cluster, self.distribution
        return self.protocol, self.weights, *where, self.load, self.jobs, self.policy, self.seed


def read(path: Path = PACML) -> list[PacmlRow]:
    """Return the rows of a file, see `read_records`."""
    return read_records(path, PacmlRow)


def append(rows: Sequence[PacmlRow], path: Path = PACML) -> None:
    """Add rows; two processes may do so at the same time."""
    append_records(rows, path)
