"""The rows of benchmarks/pacml.csv: one simulation of one case by one policy each, or one bound."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from .ledger import ROOT, _locked

PACML = ROOT / "benchmarks" / "pacml.csv"
PROTOCOL = 1
"""Counted up when cases or what is measured change: rows of another protocol are run again."""

LEARNED, BOUND, PLAN = "learned", "bound", "plan"
"""Policies by name: the learned one, the LP's bound, and the schedule that beam search finds; the last two know all
arrivals."""

Key = tuple[int, str, str, str, str, str, float, int, str, int]


@dataclass(frozen=True, slots=True)
class PacmlRow:
    """One simulation.

    Attributes:
        date, commit: as in the ledger.
        protocol: `PROTOCOL` at the time.
        weights: the first twelve digits of their SHA-256, empty of a policy without.
        units, models, cluster, load, jobs: as of `benchmarks.pacml_suites.Cell`.
        policy: a name that `make_policy` knows, `LEARNED`, `BOUND`, `PLAN`, a search, or an ablation.
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


COLUMNS = tuple(f.name for f in fields(PacmlRow))


def read(path: Path = PACML) -> list[PacmlRow]:
    """Return the rows of a file, oldest first; none if there is no file.

    Raises:
        ValueError: naming file and line, if a row is not whole.
    """
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        if tuple(next(lines, [])) != COLUMNS:
            raise ValueError(f"{path}:1: columns are not {', '.join(COLUMNS)}")
        return [_row(cells, f"{path}:{lines.line_num}") for cells in lines]


def append(rows: Sequence[PacmlRow], path: Path = PACML) -> None:
    """Add rows; two processes may do so at the same time."""
    with _locked(path) as file:
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        file.seek(0, io.SEEK_END)
        if not file.tell():
            lines.writerow(COLUMNS)
        lines.writerows(astuple(row) for row in rows)
        file.write(text.getvalue().encode())
        file.flush()


def _row(cells: list[str], where: str) -> PacmlRow:
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{where}: {len(cells)} cells where {len(COLUMNS)} are expected")
    hints, values = get_type_hints(PacmlRow), dict[str, Any]()
    for name, cell in zip(COLUMNS, cells, strict=True):
        try:
            values[name] = hints[name](cell)
        except ValueError:
            raise ValueError(f"{where}: {name}: {cell!r} is not a number") from None
    return PacmlRow(**values)
