"""Make Jupyter notebooks of the course's sources: ``python docs/course/notebooks.py OUT [--solutions]``.

A notebook that is there already is kept, with what a student has written in it; solved ones are in OUT/solutions.

A source is a jupytext percent script ``N_name.py``. A cell ``# %% exercise="1.1"`` holds a stub, the cell after it
``# %% check="1.1"`` the assertions on the answer; ``solutions/N_name.py`` holds the answers, tagged alike.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jupytext

HERE = Path(__file__).parent


class Cell(NamedTuple):
    """A cell: its kind ("markdown", "code", "exercise", "check"), the exercise's number, its text and first line."""

    kind: str
    number: str
    source: str
    line: int


def sources(folder: Path = HERE) -> list[Path]:
    """Return the notebooks' sources in the order of the course."""
    return sorted(folder.glob("[0-9]*_*.py"))


def cells(path: Path) -> Iterator[Cell]:
    """Yield the cells of a source.

    Raises:
        ValueError: if the text of a cell is not found where it was read: a magic command, which no plain Python has.
    """
    text = path.read_text(encoding="utf-8")
    at = 0
    for cell in jupytext.reads(text, fmt="py:percent").cells:
        kind, number = cell.cell_type, ""
        for tag in ("exercise", "check"):
            if tag in cell.metadata:
                kind, number = tag, str(cell.metadata[tag])
        if kind != "markdown":
            at = text.find(cell.source, at)
            if at < 0:
                raise ValueError(f"{path}: a cell is no plain Python: {cell.source[:60]!r}")
        yield Cell(kind, number, cell.source, text.count("\n", 0, max(at, 0)) + 1)
        at += len(cell.source) if kind != "markdown" else 0


def solutions(path: Path) -> dict[str, Cell]:
    """Return the solutions to a source's exercises by their numbers; none if the file is not there."""
    answers = path.parent / "solutions" / path.name
    return {cell.number: cell for cell in cells(answers) if cell.kind == "exercise"} if answers.exists() else {}


def notebook(path: Path, solved: bool = False) -> Any:
    """Return a source as a Jupyter notebook, its exercises empty or solved."""
    made = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    answers = solutions(path)
    for cell in made.cells:
        if solved and "exercise" in cell.metadata:
            cell.source = answers[str(cell.metadata["exercise"])].source
    return made


def main() -> int:
    """Write the notebooks that are not there yet into the folder that is named, solved ones anew."""
    solved, names = "--solutions" in sys.argv[1:], [x for x in sys.argv[1:] if x != "--solutions"]
    if len(names) != 1 or names[0].startswith("-"):
        print("usage: notebooks.py OUT [--solutions]", file=sys.stderr)
        return 2
    out = Path(names[0], "solutions") if solved else Path(names[0])
    out.mkdir(parents=True, exist_ok=True)
    for path in sources():
        target = out / f"{path.stem}.ipynb"
        if target.exists() and not solved:
            print(f"{target} is there and was kept; move it away to have it empty")
            continue
        jupytext.write(notebook(path, solved), target)
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
