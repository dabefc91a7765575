"""Read a suite: the problems of a homework with their best known objectives, and the points that a gap is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import brief, in_file, unknown, within
from gangplan.instances.intake import as_float, parse_json, parse_toml, read_text
from gangplan.instances.verify import Problem, clock_cost

SHIPPED = Path(__file__).parent / "suites"
_TOP = {"title", "seconds", "memory", "gaps", "points", "problem"}
_PROBLEM = {"name", "generate", "file", "best", "proof"}
_NAME = "a file's name of letters, digits, - and _, at most 60"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A problem of a suite.

    Attributes:
        name: what files of a submission are called after.
        problem: what is to be solved.
        best: the best known objective.
        proved: whether that is optimal, as its method claims.
        zero: what gaps are counted from, see `gangplan.Result.zero`.
        proof: whether a certificate of a bound is worth points too.
    """

    name: str
    problem: Problem
    best: float
    proved: bool
    zero: float
    proof: bool


@dataclass(frozen=True, slots=True)
class Suite:
    """A homework.

    Attributes:
        title: for people.
        assignments: its problems.
        seconds: that a submission may take for each.
        memory: bytes that it may use.
        gaps, points: a gap of at most `gaps[i]` is worth `points[i]`; a greater one nothing.
    """

    title: str
    assignments: tuple[Assignment, ...]
    seconds: float
    memory: float
    gaps: tuple[float, ...]
    points: tuple[float, ...]

    @property
    def most(self) -> float:
        """The points of a submission without a fault."""
        return self.points[0] * sum(1 + x.proof for x in self.assignments)

    def worth(self, gap: float | None) -> float:
        """Return the points of a gap, none without one. A plan within a millionth of the optimum is optimal."""
        from gangplan.solvers.run import OPTIMAL_GAP

        found = inf if gap is None else gap
        return next((p for g, p in zip(self.gaps, self.points, strict=True) if found <= g + OPTIMAL_GAP), 0.0)


def read_suite(name: str) -> Suite:
    """Return a suite that comes with gangplan, by name, or one of a .toml or .json file.

    Raises:
        InstanceError: naming the field that is wrong.
    """
    known = sorted(x.stem for x in SHIPPED.glob("*.toml"))
    path = SHIPPED / f"{name}.toml" if name in known else Path(name)
    if name not in known and path.suffix not in (".toml", ".json"):
        raise InstanceError("suite", f"{unknown(name, known)}; or a file .toml or .json")
    with in_file(str(path)):
        parse = parse_json if path.suffix == ".json" else parse_toml
        return _suite(parse(read_text(path)), path.parent)


def _suite(data: Any, folder: Path) -> Suite:
    _fields(data, _TOP, "suite")
    rows = data.get("problem")
    if not isinstance(rows, list) or not rows:
        raise InstanceError("problem", "is missing: a list of tables, [[problem]] in TOML")
    gaps = _numbers(data.get("gaps", [0.0, 0.05, 0.25]), "gaps")
    points = _numbers(data.get("points", [10, 7, 3]), "points")
    if len(gaps) != len(points) or not gaps:
        raise InstanceError("points", f"has {len(points)} numbers, gaps {len(gaps)}")
    if any(a >= b for a, b in pairwise(gaps)) or any(a <= b for a, b in pairwise(points)):
        raise InstanceError("gaps", "do not rise, or points do not fall")
    found = []
    for i, row in enumerate(rows):
        with within(f"problem[{i}]"):
            found.append(_assignment(row, folder))
        if found[-1].name in {x.name for x in found[:-1]}:
            raise InstanceError(f"problem[{i}].name", f"{found[-1].name!r} is there twice")
    seconds = as_float(data.get("seconds", 10.0), "seconds", positive=True)
    memory = as_float(data.get("memory", 4e9), "memory", positive=True)
    return Suite(str(data.get("title", "Homework"))[:80], tuple(found), seconds, memory, gaps, points)


def _assignment(row: Any, folder: Path) -> Assignment:
    from gangplan.hybrid.bench.suite import make, suite
    from gangplan.instances.generators import generate
    from gangplan.instances.readers import read

    _fields(row, _PROBLEM, "problem")
    name = row.get("name")
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum() or len(name) > 60:
        raise InstanceError("name", f"{brief(name)} is not {_NAME}")
    best = as_float(row["best"], "best") if "best" in row else None
    proved, proof = best is not None, row.get("proof", False)
    if not isinstance(proof, bool):
        raise InstanceError("proof", f"{brief(proof)} is not true or false")
    problem: Any
    if "generate" in row:
        given = row["generate"]
        if not isinstance(given, Mapping) or not isinstance(given.get("kind"), str):
            raise InstanceError("generate", f"{brief(given)} is no table with a kind")
        problem = generate(**given)
    elif "file" in row:
        problem = read(str(folder / str(row["file"])))
    else:
        known = {x.id: x for x in suite("all")}
        if name not in known:
            raise InstanceError("name", f"{name!r} is none of GapBench's; else give generate or file")
        problem = make(known[name])
        if best is None and known[name].value is not None:
            best, proved = known[name].value, known[name].proved
    if best is None:
        raise InstanceError("best", "is missing: the best known objective")
    return Assignment(name, problem, best, proved, clock_cost(problem), proof)


def _fields(data: Any, known: set[str], what: str) -> None:
    if not isinstance(data, Mapping):
        raise InstanceError(what, f"{brief(data)} is no table")
    for name in data:
        if name not in known:
            raise InstanceError(str(name), unknown(name, sorted(known)))


def _numbers(value: Any, field: str) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise InstanceError(field, f"{brief(value)} is no list of numbers")
    return tuple(as_float(x, f"{field}[{i}]") for i, x in enumerate(value))
