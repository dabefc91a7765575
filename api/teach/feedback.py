"""A page of feedback for each submission: offline HTML, in which nothing that a student wrote is more than text."""

from __future__ import annotations

from csv import writer
from html import escape
from io import StringIO
from pathlib import Path

from gangplan.instances.outlet import make_folder, write_whole

from ..plot.html import document, table
from ..units import percent
from . import imports, isolation
from .grading import Grade, Mark
from .suite import Homework

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What cells begin with that spreadsheets compute."""


def write_feedback(grades: list[Grade], suite: Homework, folder: str | Path) -> list[Path]:
    """Write a page for each grade, named like its submission, and return them; beside them `points.csv`.

    Raises:
        InstanceError: if the folder cannot be made or written.
    """
    make_folder(folder)
    names = ["".join(c if c.isalnum() or c in "-_. " else "_" for c in x.student)[:80] or "_" for x in grades]
    paths = [Path(folder, f"{name}{f'-{i}' * (name in names[:i])}.html") for i, name in enumerate(names)]
    pages = {path: page(x, suite) for path, x in zip(paths, grades, strict=True)}
    write_whole(pages | {Path(folder, "points.csv"): points_csv(grades)})
    return paths


def points_csv(grades: list[Grade]) -> bytes:
    """Return a table for spreadsheets and learning platforms: a row a submission, its points in all and for each.

    An apostrophe goes before a name that a spreadsheet would take for a formula.
    """
    text = StringIO()
    rows = writer(text, lineterminator="\n")
    rows.writerow(["submission", "points", *(f"{x.problem} {x.kind}" for x in grades[0].marks)] if grades else [])
    for x in grades:
        name = "'" * x.student.startswith(_FORMULA) + x.student
        rows.writerow([name, f"{x.points:g}", *(f"{m.points:g}" for m in x.marks)])
    return text.getvalue().encode()


def page(grade: Grade, suite: Homework) -> bytes:
    """Return the page of a grade."""
    title = f"{grade.student}: {grade.points:g} of {suite.most:g} points"
    gaps = ("" if x.gap is None else percent(x.gap) for x in grade.marks)
    rows = [
        (x.problem, x.kind, _value(x.value), _value(x.best), gap, f"{x.points:g} of {x.most:g}")
        for x, gap in zip(grade.marks, gaps, strict=True)
    ]
    worth = ", ".join(f"{p:g} at {percent(g)}" for g, p in zip(suite.gaps, suite.points, strict=True))
    head = (
        f"<h1>{escape(title)}</h1><p>{escape(suite.title)}. Points by the gap to the best known: {worth}; else 0. "
        f"A submission may import {escape(imports.words(suite.imports))}. {isolation.words()}</p>"
    )
    figures = table(("problem", "what", "yours", "best known", "gap", "points"), rows, words=2)
    notes = (f"<p>{escape(x)}</p>" for x in grade.notes)
    return document(title, [head, *notes, figures, *map(_part, grade.marks)], static=True)


def _part(x: Mark) -> str:
    said = x.note or ("feasible" if x.kind == "plan" else "the bound holds")
    by = "verifier" if x.kind == "plan" else "checker of bounds"
    by = "submission" if x.by == "program" else by
    printed = f"<p>It printed:</p><pre>{escape(x.printed)}</pre>" if x.printed.strip() else ""
    picture = f"<figure>{x.picture}</figure>" if x.picture else ""
    took = f" It took {x.seconds:.1f} s." if x.seconds else ""
    return f"<h2>{escape(x.problem)}: {x.kind}</h2><p>The {by}: {escape(said)}.{took}</p>{picture}{printed}"


def _value(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"
