"""The rows of benchmarks/learned_PROBLEM.csv: one plan, of one instance by one method each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .ledger import ROOT
from .records import append_records, change_records, read_records

PROBLEMS = ("placement", "schedule")
Key = tuple[str, str, int, int, str]


@dataclass(frozen=True, slots=True)
class LearnedRow:
    """One plan.

    Attributes:
        problem: of `PROBLEMS`.
        set: of instances, e.g. ``small``, ``unseen family``, ``published``.
        family: of the instance, or its name if it is a published one.
        size: of the instance: ops, nodes or jobs as asked for.
        seed: of the instance, see `gangplan.learned.labels.seed_of`; 0 of a published one.
        method: that made the plan.
        objective: as the verifier says; None if the method found no plan.
        reference: the optimum, or else the best bound known.
        proved: whether the reference is the optimum.
        milliseconds: for the plan, after warm-up, on one core; the processor's where a page says so.
    """

    problem: str
    set: str
    family: str
    size: int
    seed: int
    method: str
    objective: float | None
    reference: float
    proved: bool
    milliseconds: float

    @property
    def key(self) -> Key:
        """What makes another row a repetition of this one."""
        return self.set, self.family, self.size, self.seed, self.method

    @property
    def instance(self) -> tuple[str, str, int, int]:
        """What rows of several methods have in common."""
        return self.set, self.family, self.size, self.seed

    @property
    def gap(self) -> float:
        """By how much the plan is above the reference, as a share of it; infinite without a plan."""
        if self.objective is None:
            return float("inf")
        if self.reference > 0:
            return max(self.objective / self.reference - 1, 0.0)
        return 0.0 if self.objective <= 0 else float("inf")


def csv_of(problem: str) -> Path:
    """Return the file of a problem's rows."""
    return ROOT / "benchmarks" / f"learned_{problem}.csv"


def read(path: Path) -> list[LearnedRow]:
    """Return the rows of a file, see `read_records`."""
    return read_records(path, LearnedRow)


def raise_reference(instance: tuple[str, str, int, int], bound: float, path: Path) -> None:
    """Give all rows of an instance a greater bound, or the optimum if a plan reaches it."""
    plans = [row.objective for row in read(path) if row.instance == instance and row.method != "bound"]
    best = min((x for x in plans if x is not None), default=bound)
    least = min(bound, best)

    def raised(row: LearnedRow) -> LearnedRow:
        if row.instance != instance or row.reference >= least:
            return row
        value = least if row.method == "bound" else row.objective
        return replace(row, objective=value, reference=least, proved=best <= bound * (1 + 1e-6))

    change_records(raised, path, LearnedRow)


def append(rows: Sequence[LearnedRow], path: Path) -> None:
    """Add rows; two processes may do so at the same time."""
    append_records(rows, path)
