"""`gangplan teach`: a starter submission for students, and the grading of what they hand in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from gangplan.instances import InstanceError
from gangplan.instances.outlet import make_folder

from .app import commands
from .output import Told, emit_blocks, progress, table, tell

SuiteName = Annotated[str, "homework, or a file .toml or .json of your own", "--suite", "SUITE"]
Key = Annotated[str | None, "draw problems for each student by this and the submission's name", "--key", "SECRET"]


def grade(
    submissions: Annotated[str, "a folder with a folder, or a Python file, for each student", "SUBMISSIONS"],
    suite: SuiteName = "homework",
    out: Annotated[str, "the pages of feedback, and points.csv", "FOLDER"] = "feedback",
    key: Key = None,
) -> Told:
    """Grade each of SUBMISSIONS: points by the gap to the best known, and a page of feedback each.

    Each runs in processes of its own with limits of time, memory and output. That is no sandbox: grade strangers' code
    in a container or as a user without rights.
    """
    from ..teach import feedback, grading, isolation
    from ..teach.suite import read_suite

    found, asked = grading.submissions(submissions), read_suite(suite)
    if Path(out).resolve().is_relative_to(Path(submissions).resolve()):
        raise InstanceError("--out", "lies among the submissions", out)
    make_folder(out)  # before any work
    grades = []
    with progress("grading") as bar:
        for each in grading.grades(found, asked, key):
            grades.append(each)
            bar(len(grades) / len(found))
    feedback.write_feedback(grades, asked, out)
    data = {"suite": suite, "most": asked.most, "isolation": isolation.words(), "grades": [x.as_dict() for x in grades]}
    heads = [(x.name, "plan") for x in asked.assignments] + [(x.name, "bound") for x in asked.assignments if x.proof]
    rows = [(x.student[:20], f"{x.points:g}", *(f"{m.points:g}" for m in x.marks)) for x in grades]
    if len(heads) > 11:  # too wide: the pages have them
        rows, heads = [row[:2] for row in rows], []
    names = [(str(i), f"{kind} {name}") for i, (name, kind) in enumerate(heads, 1)]
    points = table(("submission", f"of {asked.most:g}", *(number for number, _ in names)), rows)
    numbers = table(("", "what"), names, left=2) if names else ""
    return tell(data, points, numbers, isolation.words(), f"a page of feedback for each, and points.csv: {out}")


def starter(
    folder: Annotated[str, "a new or empty folder", "DIR"], suite: SuiteName = "homework", key: Key = None
) -> None:
    """Write a starter submission into DIR: the problems, and a solver that scores some points."""
    from ..teach.suite import drawn, read_suite, write_starter

    asked = drawn(read_suite(suite), key or "", "" if key is None else Path(folder).resolve().name, solved=False)
    files = write_starter(asked, folder)
    emit_blocks(f"{len(files)} files in {folder}; begin with {files[0]}")


teach = commands(
    "teach",
    "Hand out and grade homework.",
    {"grade": (grade, "submissions --suite homework"), "starter": (starter, "alice")},
)
