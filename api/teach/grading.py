"""Grade submissions: each solves the problems of a suite in processes of its own, and the verifier says what for."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gangplan.instances import InstanceError, dump
from gangplan.instances.errors import InputLimit, brief, printable
from gangplan.instances.intake import io_error, parse_json, read_bytes, read_text
from gangplan.solvers.result import relative_gap
from gangplan.solvers.run import OPTIMAL_GAP

from .confined import WorkLimits, confined
from .imports import closed
from .suite import Homework, SuiteProblem, drawn

SOLVER = "solve.py"
PROOF = ".bound.json"
"""A plan is called NAME.json, the certificate of a bound NAME.bound.json."""
_JUDGE = 60.0
"""Seconds that verifier or checker may take for a plan or a bound."""
_FILE = InputLimit("GANGPLAN_MAX_SUBMISSION_BYTES", 2**24, "bytes of a submission")
"""Limit a file, and all files of a submission."""
_FILES = 1000
"""Files of a submission."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Say what a submission gets for a plan, or for a bound.

    Attributes:
        problem: its name.
        kind: ``plan`` or ``bound``.
        points, most: got, and to be had.
        value: the objective, or the bound; None if there is none.
        best: the best known objective.
        gap: between value and best, as `gangplan.Result.gap`; None without a value.
        note: what is wrong, empty if nothing is.
        seconds: that the function took, by its own word; 0 if it did not return.
        printed: what it printed.
        picture: of the plan, SVG.
        by: who says the note: ``program`` if it gave nothing to check, else ``checker``.
    """

    problem: str
    kind: str
    points: float
    most: float
    value: float | None
    best: float
    gap: float | None
    note: str = ""
    seconds: float = 0.0
    printed: str = field(default="", repr=False)
    picture: str = field(default="", repr=False)
    by: str = "checker"


@dataclass(frozen=True, slots=True)
class Grade:
    """Say what a submission gets: its name, a mark for each plan and bound, and what else there is to say."""

    student: str
    marks: tuple[Mark, ...]
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The points in all."""
        return sum(x.points for x in self.marks)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON, without pictures."""
        rows = [{k: v for k, v in asdict(x).items() if k != "picture"} for x in self.marks]
        return {"student": self.student, "points": self.points, "marks": rows, "notes": list(self.notes)}


def submissions(folder: str | Path) -> list[Path]:
    """Return the submissions in a folder: a folder or a Python file each.

    Raises:
        InstanceError: if it cannot be read, or there is none.
    """
    try:
        every = sorted(Path(folder).iterdir())
    except OSError as error:
        raise InstanceError("submissions", io_error(error), str(folder)) from None
    every = [x for x in every if not x.name.startswith((".", "__")) and not x.is_symlink()]
    found = [x for x in every if x.is_dir() or (x.is_file() and x.suffix == ".py")]
    if not found:
        raise InstanceError("submissions", "there is none: a folder, or a file .py, for each student", str(folder))
    return found


def grade(submission: Path, suite: Homework) -> Grade:
    """Grade one submission; whatever that does, there is a grade.

    Args:
        submission: a folder with ``solve.py`` or plans ``NAME.json`` and certificates ``NAME.bound.json``, or a Python
            file. What is on file goes before what functions return.
        suite: the homework.
    """
    return next(grades([submission], suite))


def grades(found: list[Path], suite: Homework, key: str | None = None) -> Iterator[Grade]:
    """Grade submissions; all are copied first, so that none can write into one that comes later.

    Args:
        found: the submissions, see `submissions`.
        suite: the homework.
        key: by which problems are drawn for each student, see `drawn`; with None all have the same.
    """
    common = drawn(suite, "", "") if key is None else suite
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        own = [Path(place, str(i)) for i in range(len(found))]
        faults = [_fault(each, copy) for each, copy in zip(found, own, strict=True)]
        hidden = [place, *sorted({str(x.parent.resolve()) for x in found}), *closed(suite.imports)]
        for each, copy, fault in zip(found, own, faults, strict=True):
            student = printable(each.name.removesuffix(".py").replace("\n", "?"))
            asked = common if key is None else drawn(suite, key, student)
            if fault:
                yield Grade(student, tuple(_marks(asked, {}, {})), (f"cannot be read: {fault}",))
                continue
            tries = {what: _document(copy, asked, *what, hidden) for what in _keys(asked)}
            with TemporaryDirectory(ignore_cleanup_errors=True) as empty:
                verdicts = _judged(asked, tries, Path(empty))
            yield Grade(student, tuple(_marks(asked, tries, verdicts)), tuple(_strangers(copy, asked)))


def _fault(submission: Path, own: Path) -> str:
    """Copy a submission; return what is wrong with it."""
    try:
        _copy(submission, own)
    except (OSError, InstanceError) as error:
        return error.problem if isinstance(error, InstanceError) else io_error(error)
    return ""


Key = tuple[int, str]
"""The number of a problem in its suite, and ``plan`` or ``bound``."""


def _keys(suite: Homework) -> list[Key]:
    every = list(enumerate(suite.assignments))
    return [(i, "plan") for i, _ in every] + [(i, "bound") for i, x in every if x.proof]


def _copy(submission: Path, own: Path) -> None:
    """Copy what is a plain file; links, which may lead anywhere, and pipes stay behind."""
    own.mkdir()
    size = count = 0
    for path in [submission] if submission.is_file() else submission.rglob("*"):
        status, inside = path.lstat(), path.relative_to(submission)
        if "__pycache__" not in inside.parts and stat.S_ISREG(status.st_mode):
            size, count = size + status.st_size, count + 1
            _FILE.check(size, "size")
            if count > _FILES:
                raise InstanceError("files", f"more than {_FILES}")
            target = own / (inside if inside.parts else SOLVER)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


@dataclass(frozen=True, slots=True)
class _Try:
    """Hold what a submission has for a plan or a bound: a document, or what is wrong."""

    document: Any = None
    note: str = ""
    seconds: float = 0.0
    printed: str = ""


def _document(own: Path, suite: Homework, i: int, kind: str, hidden: list[str]) -> _Try:
    """Return what is on file, else what the function returns in a folder of its own, a fresh copy each time."""
    assignment = suite.assignments[i]
    path = own / f"{assignment.name}{'.json' if kind == 'plan' else PROOF}"
    if path.is_file():
        try:
            return _Try(parse_json(read_text(path, limit=_FILE)))
        except InstanceError as error:
            return _Try(note=f"{path.name}: {error.field}: {error.problem}")
    if not (own / SOLVER).is_file():
        return _Try(note=f"there is neither {path.name} nor {SOLVER}")
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        copy = Path(place, "submission")
        shutil.copytree(own, copy)
        request = {"work": "solve" if kind == "plan" else "prove", "file": str(copy / SOLVER),
                   "problem": json.loads(dump(assignment.problem)), "imports": suite.imports}  # fmt: skip
        ended = confined(request, copy, WorkLimits(suite.seconds, suite.memory), hidden)
    row = ended.rows[-1] if ended.rows else {}
    note = ended.fault or (printable(str(row["error"])) if "error" in row else "")
    if not note and "document" not in row:
        note = "ended without an answer" if kind == "plan" else "no certificate"
    seconds = row.get("seconds")
    took = seconds if isinstance(seconds, float) and 0 <= seconds <= suite.seconds else 0.0  # the student's word
    return _Try(None if note else row["document"], note, took, ended.printed)


def _judged(suite: Homework, tries: dict[Key, _Try], place: Path) -> dict[Key, dict[str, Any]]:
    """Return what verifier and checker say, each in a process with limits of its own: proofs may be long."""
    found = {}
    for (i, kind), tried in tries.items():
        if tried.note:
            continue
        item = {"problem": json.loads(dump(suite.assignments[i].problem)),
                "plan" if kind == "plan" else "certificate": tried.document}  # fmt: skip
        ended = confined({"work": "judge"} | item, place, WorkLimits(_JUDGE, max(4e9, suite.memory), 2**27))
        late = {"error": f"cannot be checked: {ended.fault or 'the check failed'}"}
        rows = ended.rows if ended.rows and not ended.fault else (*ended.rows, late)
        found[i, kind] = dict(rows[0])  # of a bound what its prices prove, if there are some
        found[i, kind].update(rows[-1])
        if len(rows) > 1 and "error" in rows[-1]:
            found[i, kind]["error"] = f"its prices count, and no more: {rows[-1]['error']}"
    return found


def _marks(suite: Homework, tries: dict[Key, _Try], verdicts: dict[Key, dict[str, Any]]) -> Iterator[Mark]:
    for i, kind in _keys(suite):
        x, tried, verdict = suite.assignments[i], tries.get((i, kind), _Try()), verdicts.get((i, kind), {})
        value = verdict.get("objective" if kind == "plan" else "bound")
        gap = None if value is None else _gap(x, kind, value)
        note = tried.note or verdict.get("error", "") or "; ".join(verdict.get("violations", ()))
        if kind == "plan" and gap is not None and gap < 0:
            note = "better than the best known" + (", which is said to be optimal: tell the teacher" * x.proved)
        yield Mark(
            x.name, kind, suite.worth(gap), suite.points[0], value, x.best, gap, note, tried.seconds, tried.printed,
            verdict.get("picture", ""), "program" if tried.note else "checker",
        )  # fmt: skip


def _gap(x: SuiteProblem, kind: str, value: float) -> float:
    """Return how far a verified value is from the best known; negative if that is worse."""
    better = value < x.best - OPTIMAL_GAP * abs(x.best) if kind == "plan" else False
    upper, lower = (value, x.best) if kind == "plan" else (x.best, value)
    found = relative_gap(x.best, value, x.zero) if better else relative_gap(upper, lower, x.zero)
    return (-1.0 if better else 1.0) * (found or 0.0)


def _strangers(own: Path, suite: Homework) -> Iterator[str]:
    """Yield a note on each JSON file that is of no problem of the suite, and on problems that are not those graded."""
    for x in suite.assignments:
        path = own / "problems" / f"{x.name}.json"
        if path.is_file() and dump(x.problem).encode() != read_bytes(path):
            yield f"problems/{path.name} is not what was graded: another name or key draws other problems"
    known = {f"{x.name}{end}" for x in suite.assignments for end in (".json", PROOF)}
    for path in sorted(own.glob("*.json"))[:20]:
        if path.name not in known:
            yield f"{brief(printable(path.name))} is of no problem of the suite"
