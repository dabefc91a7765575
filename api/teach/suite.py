"""Read a suite, the problems of a homework with the points that a gap is worth, and draw those of one student."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, dump
from gangplan.instances.arrays import check_fields, limited, require_unique
from gangplan.instances.errors import brief, in_file, require_known, unknown, within
from gangplan.instances.generators import generate
from gangplan.instances.intake import io_error, parse_json, parse_toml, read_text
from gangplan.instances.outlet import write_whole
from gangplan.instances.typed import SETTINGS
from gangplan.instances.verify import Problem, clock_cost
from gangplan.solvers.run import OPTIMAL_GAP

from .imports import LIBRARIES, words

SHIPPED = Path(__file__).parent / "suites"


@dataclass(frozen=True, slots=True)
class SuiteProblem:
    """A problem of a suite.

    Attributes:
        name: what files of a submission are called after.
        problem: what is to be solved.
        best: the best known objective; not a number before one that is drawn has been solved.
        proved: whether that is optimal, as its method claims.
        zero: what gaps are counted from, see `gangplan.Result.zero`.
        proof: whether a certificate of a bound is worth points too.
        recipe: what `generate` makes it of with a seed for each student, see `drawn`; None if it is as it is.
    """

    name: str
    problem: Problem
    best: float
    proved: bool
    zero: float
    proof: bool
    recipe: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Homework:
    """A homework.

    Attributes:
        title: for people.
        assignments: its problems.
        seconds: that a submission may take for each.
        memory: bytes that it may use.
        gaps, points: a gap of at most `gaps[i]` is worth `points[i]`; a greater one nothing.
        imports: what a submission may import, see `gangplan.teach.imports`.
        best_seconds: in which `gangplan.solve` looks for the best known value of a problem that is drawn.
    """

    title: str = field(metadata={"empty": True})
    assignments: tuple[SuiteProblem, ...]
    seconds: float = limited(10.0, positive=True)
    memory: float = limited(4e9, positive=True)
    gaps: tuple[float, ...] = (0.0, 0.05, 0.25)
    points: tuple[float, ...] = (10.0, 7.0, 3.0)
    imports: tuple[str, ...] = LIBRARIES
    best_seconds: float = limited(20.0, positive=True)

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.gaps) != len(self.points) or not self.gaps:
            raise InstanceError("points", f"has {len(self.points)} numbers, gaps {len(self.gaps)}")
        if any(a >= b for a, b in pairwise(self.gaps)) or any(a <= b for a, b in pairwise(self.points)):
            raise InstanceError("gaps", "do not rise, or points do not fall")
        if not all(map(str.isidentifier, self.imports)):
            raise InstanceError("imports", f"{brief(self.imports)} is no list of names of packages")

    @property
    def most(self) -> float:
        """The points of a submission without a fault."""
        return self.points[0] * sum(1 + x.proof for x in self.assignments)

    def worth(self, gap: float | None) -> float:
        """Return the points of a gap, none without one. A plan within a millionth of the optimum is optimal."""
        found = inf if gap is None else gap
        return next((p for g, p in zip(self.gaps, self.points, strict=True) if found <= g + OPTIMAL_GAP), 0.0)


def read_suite(name: str) -> Homework:
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


def _suite(data: Any, folder: Path) -> Homework:
    require_known(data, {x.name for x in fields(Homework)} - {"assignments"} | {"problem"})
    rows = SETTINGS.read(tuple[SuiteEntry, ...], data.pop("problem", None), "problem")
    require_unique(tuple(x.name for x in rows), "problem")
    found = []
    for i, row in enumerate(rows):
        with within(f"problem[{i}]"):
            found.append(_assignment(row, folder))
    return Homework(**{"title": "Homework"} | data, assignments=tuple(found))


def drawn(suite: Homework, key: str, student: str, solved: bool = True) -> Homework:
    """Return a homework with the problems of one student.

    Args:
        suite: of which the problems that say ``draw`` are generated with a seed that key, student and name decide.
        key: of the teacher's; whoever knows it can draw all problems.
        student: the name of the submission.
        solved: whether `gangplan.solve` looks for the best known value of each.
    """
    return replace(suite, assignments=tuple(_drawn(x, suite, f"{key}/{student}", solved) for x in suite.assignments))


def _drawn(x: SuiteProblem, suite: Homework, who: str, solved: bool) -> SuiteProblem:
    from gangplan.hybrid import solve

    if x.recipe is None:
        return x
    seed = int.from_bytes(sha256(f"{who}/{x.name}".encode()).digest()[:4])
    problem: Any = generate(**{**x.recipe, "seed": seed})
    if not solved:
        return replace(x, problem=problem, zero=clock_cost(problem))
    result = solve(problem, time_limit=suite.best_seconds)
    if result.objective is None:
        raise InstanceError("best_seconds", f"no plan of {x.name} was found in {suite.best_seconds:g} s")
    proved = result.status == "OPTIMAL"
    return SuiteProblem(x.name, problem, result.objective, proved, clock_cost(problem), x.proof)


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """A problem as the file of a suite has it."""

    name: str
    generate: dict[str, Any] | None = None
    file: str | None = None
    best: float | None = None
    proof: bool = False
    draw: bool = False

    def __post_init__(self) -> None:
        if not self.name.replace("-", "").replace("_", "").isalnum() or len(self.name) > 60:
            raise InstanceError(
                "name", f"{brief(self.name)} is not a file's name of letters, digits, - and _, at most 60"
            )
        if self.draw and (self.generate is None or self.best is not None):
            raise InstanceError("draw", "goes with generate, and not with best")
        if self.generate is not None and not isinstance(self.generate.get("kind"), str):
            raise InstanceError("generate", f"{brief(self.generate)} is no table with a kind")


def _assignment(row: SuiteEntry, folder: Path) -> SuiteProblem:
    from gangplan.hybrid.bench.suite import make, suite
    from gangplan.instances.readers import read

    best, proved = row.best, row.best is not None
    problem: Any
    if row.generate is not None:
        problem = generate(**row.generate)
    elif row.file is not None:
        problem = read(str(folder / row.file))
    else:
        known = next((x for x in suite("all") if x.id == row.name), None)
        if known is None:
            raise InstanceError("name", f"{row.name!r} is none of GapBench's; else give generate or file")
        problem = make(known)
        if best is None:
            best, proved = known.value, known.proved
    if best is None and not row.draw:
        raise InstanceError("best", "is missing: the best known objective")
    recipe = row.generate if row.draw else None
    return SuiteProblem(
        row.name, problem, nan if best is None else best, proved, clock_cost(problem), row.proof, recipe
    )


_SOLVE = '''"""My submission: the grader calls solve, and prove where a bound is worth points too."""

import gangplan


def jobs(problem):
    """Run the jobs one after the other."""
    start, clock = [], 0.0
    for job in problem.jobs:
        start.append(max(clock, job.release))
        clock = start[-1] + job.durations[0]
    return gangplan.SchedulePlan(tuple(job.name for job in problem.jobs), [0] * len(start), start)


def step(problem):
    """Run all ops on one device, in their order."""
    seconds = problem.time()[problem.cluster.type_of[0]]
    return gangplan.StepPlan(problem.graph.names, [0] * len(seconds), seconds.cumsum() - seconds)


def throughput(problem):
    """Give all ops to one device."""
    ops = problem.graph.names
    return gangplan.PartitionPlan(ops, [0] * len(ops), [0] * len(ops))


def gangs(problem):
    """Fill one node after the other: a row is what a gang has on a node, a grant one of its GPUs there."""
    free = [(node, gpu) for node, gpus in enumerate(problem.fleet.gpus) for gpu in range(gpus)]
    rows, grants = {}, []
    for i, job in enumerate(problem.jobs):
        for node, gpu in [free.pop(0) for _ in range(job.workers[0])]:
            rows[i, node] = rows.get((i, node), 0) + 1
            grants.append((len(rows) - 1, gpu))
    names, workers = tuple(job.name for job in problem.jobs), list(rows.values())
    return gangplan.PlacementPlan(names, *zip(*rows), workers, [0] * len(rows), *zip(*grants))


METHODS = {"schedule": jobs, "step": step, "throughput": throughput, "placement": gangs}


def solve(problem):
    """Return a plan, or None; replace these methods by better ones, and add those that are missing."""
    method = METHODS.get(problem.objective)
    return method and method(problem)


def prove(problem):
    """Return the certificate of a bound, or None; see docs/proofs.md for what it may say."""
    if problem.objective not in ("step", "throughput"):
        return None  # prices of gangs, "covers"; of GPU-seconds, "starts"
    # a weight of a second, and of a byte, for each type of device
    types = len(problem.cluster.device_types)
    return {"argument": "shares", "seconds": ["1"] * types, "bytes": ["0"] * types}


if __name__ == "__main__":
    import pathlib

    for file in sorted(pathlib.Path(__file__).parent.glob("problems/*.json")):
        problem = gangplan.load(file)
        plan = solve(problem)
        verdict = plan and gangplan.verify(problem, plan)
        print(f"{file.stem:30} {(verdict.objective or verdict.violations) if plan else 'no plan'}")
'''
_README = """# {x.title}

Improve `solve(problem)` in `solve.py`; it has {x.seconds:g} s for a problem. `python solve.py` tries it on all of them.
Instead of a program you may hand in plans, `NAME.json`, and certificates of bounds, `NAME.bound.json`.

A submission may import {imports}.

Points by the gap to the best known: {worth}; else 0.

{rows}
"""


def write_starter(suite: Homework, folder: str | Path) -> list[Path]:
    """Write a starter submission into a new or empty folder and return its files.

    Raises:
        InstanceError: if the folder is not empty, or cannot be written.
    """
    own = Path(folder)
    try:
        own.joinpath("problems").mkdir(parents=True, exist_ok=True)
        there = sorted(x.name for x in own.iterdir() if x.name != "problems")
    except OSError as error:
        raise InstanceError("folder", io_error(error), str(folder)) from None
    if there or any(own.joinpath("problems").iterdir()):
        raise InstanceError("folder", "is not empty", str(folder))
    worth = ", ".join(f"{p:g} at {g:.0%}" for g, p in zip(suite.gaps, suite.points, strict=True))
    rows = "\n".join(f"- {x.name}: plan{', bound' * x.proof}" for x in suite.assignments)
    text = _README.format(x=suite, imports=words(suite.imports), worth=worth, rows=rows)
    files = {own / "solve.py": _SOLVE.encode(), own / "README.md": text.encode()}
    files |= {own / "problems" / f"{x.name}.json": dump(x.problem).encode() for x in suite.assignments}
    write_whole(files)
    return list(files)
