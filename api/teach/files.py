"""Files of the plain models, for any other solver to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import unknown
from gangplan.instances.intake import file_name
from gangplan.instances.outlet import check_writable, write_whole
from gangplan.solvers.certificates.branch import loaded

from .integers import minizinc, pseudo_boolean
from .programme import Programme, cpsat, milp

_FORMATS = {".lp": "milp", ".mps": "milp", ".mzn": "cpsat", ".opb": "cpsat", ".pbtxt": "cpsat"}
_WIDTH = 6
"""Terms a line: CBC reads lines of 255 characters."""


@dataclass(frozen=True, slots=True)
class Exported:
    """Say what a file has.

    Attributes:
        unit, offset: the goal of the problem is unit x objective in the file + offset.
    """

    path: str
    model: str
    columns: int
    rows: int
    unit: float
    offset: float = 0.0


def export(problem: Any, path: str | Path, model: str | None = None, below: float | None = None) -> Exported:
    """Write the plain model of a problem: the one that ``plain_milp`` or ``plain_cpsat`` solves, with readable names.

    ``x[op3,gpu1]`` is ``x(op3,gpu1)`` in ``.lp`` and ``.mps``, and a comment says what ``x7`` is in ``.opb``.

    - ``.lp``, ``.mps``: the MILP. Numbers have 12 digits.
    - ``.pbtxt``: the CP-SAT model, whose objective is in seconds. Times are whole ticks: exact if they are multiples of
      one, else rounded down by 1e-8 of the greatest objective.
    - ``.mzn``, ``.opb``: the CP-SAT model without losing anything: what holds under a condition, and ops that do not
      overlap. In ``.opb`` whole numbers are sums of bits, conditions have big M, and a *cumulative*, in schedules,
      cannot be said. Numbers may be as large as 2^60 if times are no multiples of a tick: Gecode refuses those.

    Args:
        path: its suffix is the format.
        model: ``milp`` or ``cpsat``; of no choice, since each format has one.
        below: of a MILP, see `gangplan.teach.milp`.

    Raises:
        InstanceError: a format, or a model in it, that there is not.
    """
    path = Path(file_name(path))
    if path.suffix not in _FORMATS:
        raise InstanceError("path", unknown(path.suffix, _FORMATS))
    if model not in (None, "milp", "cpsat"):
        raise InstanceError("model", unknown(str(model), ("milp", "cpsat")))
    if model not in (None, own := _FORMATS[path.suffix]):
        raise InstanceError("model", f"{model!r} cannot be written as {path.suffix}: that takes {own!r}")
    if path.suffix in (".lp", ".mps"):
        programme = milp(problem, below)
        if path.suffix == ".lp":
            write_whole({path: "\n".join(lp_lines(programme)).encode()})
        else:
            _mps(programme, path)
        return Exported(str(path), "milp", len(programme.columns), len(programme.rows), programme.unit)
    found = cpsat(problem)
    size = len(found.rows.columns), len(found.rows.entries)
    if path.suffix == ".pbtxt":
        write_whole({path: str(found.proto).encode()})
        return Exported(str(path), "cpsat", *size, 1.0)
    bits = path.suffix == ".opb"
    lines = pseudo_boolean(found) if bits else minizinc(found)
    write_whole({path: "\n".join([*lines, ""]).encode()})
    offset = found.factor * (found.offset + (found.constant if bits else 0))
    return Exported(str(path), "cpsat", *size, found.factor, offset)


def lp_lines(programme: Programme) -> Iterator[str]:
    """Yield the lines of a programme in CPLEX's LP format, in the part of it that GLPK, CBC and HiGHS read alike."""
    columns = [_lp_name(column.name) for column in programme.columns]
    yield f"\\ {programme.objective}: one unit of the objective and of times is {programme.unit:g}"
    yield "Minimize"
    yield from _terms(" obj:", {j: c.cost for j, c in enumerate(programme.columns) if c.cost}, columns, "")
    yield "Subject To"
    for row in programme.rows:
        sense, side = ("=", row.least) if row.least == row.most else (">=", row.least)
        if row.least is None:
            sense, side = "<=", row.most
        yield from _terms(f" {_lp_name(row.name)}:", row.terms, columns, f" {sense} {side:.12g}")
    yield "Bounds"
    for name, column in zip(columns, programme.columns, strict=True):
        yield f" {column.low:.12g} <= {name} <= {column.high:.12g}"
    yield "Generals"
    yield from (f" {name}" for name, column in zip(columns, programme.columns, strict=True) if column.whole)
    yield "End"
    yield ""


def _terms(begin: str, terms: Mapping[int, float], names: list[str], end: str) -> Iterator[str]:
    words = [f"{'-' if x < 0 else '+'} {abs(x):.12g} {names[j]}" for j, x in terms.items()] or [f"+ 0 {names[0]}"]
    words[-1] += end
    for k in range(0, len(words), _WIDTH):
        yield " ".join([begin if k == 0 else "   ", *words[k : k + _WIDTH]])


def _lp_name(name: str) -> str:
    return name.replace("[", "(").replace("]", ")")


def _mps(programme: Programme, path: Path) -> None:
    import highspy

    check_writable(path)
    solver = loaded(programme.exact(1.0))
    for j, column in enumerate(programme.columns):
        solver.passColName(j, _lp_name(column.name))
        if column.whole:
            solver.changeColIntegrality(j, highspy.HighsVarType.kInteger)
    for i, row in enumerate(programme.rows):
        solver.passRowName(i, _lp_name(row.name))
    if solver.writeModel(str(path)) != highspy.HighsStatus.kOk:
        raise InstanceError("path", f"HiGHS cannot write {path}")
