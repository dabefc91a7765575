"""A page of feedback for each submission: offline HTML, in which nothing that a student wrote is more than text."""

from __future__ import annotations

from html import escape
from pathlib import Path

from gangplan.instances import InstanceError
from gangplan.instances.intake import io_error
from gangplan.instances.outlet import write_whole

from ..units import percent
from .grading import Grade, Mark
from .suite import Suite

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse}td,th{padding:.2rem .8rem;border-bottom:1px solid #ccc;text-align:right}
td:first-child,th:first-child{text-align:left}pre{background:#f4f4f4;padding:.5rem;overflow:auto;max-height:20rem}
svg{max-width:100%;height:auto}@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}
pre{background:#282828}svg{background:#fff}}"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Nothing is fetched, no script runs."""


def make_folder(folder: str | Path) -> None:
    """Make a folder for pages unless it is there.

    Raises:
        InstanceError: if it cannot be made.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InstanceError("file", io_error(error), str(folder)) from None


def write_feedback(grades: list[Grade], suite: Suite, folder: str | Path) -> list[Path]:
    """Write a page for each grade, named like its submission, and return them; see `make_folder`.

    Raises:
        InstanceError: if the folder cannot be made or written.
    """
    make_folder(folder)
    names = [_file(x.student) for x in grades]
    paths = [Path(folder, f"{name}{f'-{i}' * (name in names[:i])}.html") for i, name in enumerate(names)]
    write_whole({path: page(x, suite).encode() for path, x in zip(paths, grades, strict=True)})
    return paths


def _file(student: str) -> str:
    return "".join(c if c.isalnum() or c in "-_. " else "_" for c in student)[:80] or "_"


def page(grade: Grade, suite: Suite) -> str:
    """Return the page of a grade."""
    title = f"{grade.student}: {grade.points:g} of {suite.most:g} points"
    rows = "".join(
        f"<tr><td>{escape(x.problem)}<td>{x.kind}<td>{_value(x.value)}<td>{_value(x.best)}<td>{_gap(x)}"
        f"<td>{x.points:g} of {x.most:g}</tr>"
        for x in grade.marks
    )
    worth = ", ".join(f"{p:g} at {percent(g)}" for g, p in zip(suite.gaps, suite.points, strict=True))
    notes = "".join(f"<p>{escape(x)}</p>" for x in grade.notes)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{_POLICY}"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1><p>{escape(suite.title)}. Points by the gap to the best known: {worth}; else 0.</p>"
        f"{notes}<table><tr><th>problem<th>what<th>yours<th>best known<th>gap<th>points</tr>{rows}</table>"
        f"{''.join(map(_part, grade.marks))}</html>\n"
    )


def _part(x: Mark) -> str:
    said = x.note or ("feasible" if x.kind == "plan" else "the bound holds")
    by = "verifier" if x.kind == "plan" else "checker of bounds"
    by = "submission" if x.by == "program" else by
    printed = f"<p>It printed:</p><pre>{escape(x.printed)}</pre>" if x.printed.strip() else ""
    took = f" It took {x.seconds:.1f} s." if x.seconds else ""
    return f"<h2>{escape(x.problem)}: {x.kind}</h2><p>The {by}: {escape(said)}.{took}</p>{x.picture}{printed}"


def _value(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _gap(x: Mark) -> str:
    return "" if x.gap is None else percent(x.gap)
