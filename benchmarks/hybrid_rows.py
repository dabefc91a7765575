"""The rows of benchmarks/hybrid.csv: one solve against one deadline each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .ledger import ROOT
from .records import read_records

CSV = ROOT / "benchmarks" / "hybrid.csv"
Key = tuple[str, str, str, int, int, str, float]


@dataclass(frozen=True, slots=True)
class HybridRow:
    """One solve.

    Attributes:
        set: ``small`` or ``medium``.
        problem, family, size, seed: of the instance, see `gangplan.learned.labels.make`.
        method: ``auto``, or a single one.
        deadline: seconds given.
        seconds: taken.
        status: of the result.
        objective: as the verifier says; None without a plan.
        bound: proved; None if nothing is.
        trace: ``seconds:objective`` of every incumbent, with blanks between.
        notes: of the result, with semicolons between.
        load: runnable processes of the machine over the last minute.
    """

    set: str
    problem: str
    family: str
    size: int
    seed: int
    method: str
    deadline: float
    seconds: float
    status: str
    objective: float | None
    bound: float | None
    trace: str
    notes: str
    load: float

    @property
    def instance(self) -> tuple[str, str, str, int, int]:
        """What the rows of several methods have in common."""
        return self.set, self.problem, self.family, self.size, self.seed

    @property
    def key(self) -> Key:
        """What makes another row a repetition of this one."""
        return *self.instance, self.method, self.deadline

    @property
    def incumbents(self) -> list[tuple[float, float]]:
        """When each better plan came, and its objective."""
        pairs = (part.split(":") for part in self.trace.split())
        return [(float(a), float(b)) for a, b in pairs]


def read(path: Path = CSV) -> list[HybridRow]:
    """Return the rows, oldest first."""
    return read_records(path, HybridRow)
