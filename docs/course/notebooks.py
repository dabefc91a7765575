"""Make Jupyter notebooks of the course's sources: ``python docs/course/notebooks.py OUT [--solutions | --nbgrader]``.

A notebook that is there already is kept, with what a student has written in it; solved ones are in OUT/solutions, and
a course for nbgrader is in OUT/nbgrader. Where the sources have solutions, OUT/students.tar.gz is what students get.

A source is a jupytext percent script ``N_name.py``. A cell ``# %% exercise="1.1"`` holds a stub, the cell after it
``# %% check="1.1"`` the assertions on the answer; ``solutions/N_name.py`` holds the answers, tagged alike.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jupytext

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LEFT_OUT = ("docs/course/solutions/", "hybrid/bench/library/")
"""What students do not get: solutions, and plans of GapBench."""
CONFIG = '''"""Settings of nbgrader: the stub of an exercise stands above its solution."""

c = get_config()
c.CourseDirectory.course_id = "gangplan"
c.ClearSolutions.code_stub = {"python": "# your code"}
c.ExecutePreprocessor.timeout = 600  # seconds of a cell: notebook 7 trains
'''


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


def graded(path: Path) -> Any:
    """Return a source as nbgrader's source of an assignment.

    A solution stands below its stub and is taken out for students. The check below it is worth a point, read-only, and
    has a hidden part, the same check once more: one that draws its instances draws others, which nobody has seen.
    """
    made, answers = notebook(path), solutions(path)
    for cell in made.cells:
        if "exercise" in cell.metadata:
            number = str(cell.metadata["exercise"])
            cell.source += f"\n\n### BEGIN SOLUTION\n{answers[number].source}\n### END SOLUTION"
            cell.metadata["nbgrader"] = _tags(f"exercise-{number}", solution=True, locked=False)
        elif "check" in cell.metadata:
            cell.source += f"\n\n### BEGIN HIDDEN TESTS\n{cell.source}\n### END HIDDEN TESTS"
            cell.metadata["nbgrader"] = _tags(f"check-{cell.metadata['check']}", grade=True, points=1)
    return made


def _tags(name: str, **more: Any) -> dict[str, Any]:
    """Return the metadata of a cell, version 3 of nbgrader's."""
    tags = {"grade_id": name.replace(".", "-"), "grade": False, "solution": False, "locked": True, "task": False}
    return tags | {"schema_version": 3, "cell_type": "code"} | more


def archive(target: Path) -> None:
    """Write what students get: the library, from which ``./run course`` works, without what is left out and tests."""
    names = [path.parent.name for path in sorted(ROOT.glob("*/__init__.py"))]
    names = [x for x in names if x not in ("tests", "benchmarks")]
    names += ["docs/course", "README.md", "LICENSE", "pyproject.toml", "setup.py", "constraints.txt", "run"]

    def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        name = member.name.partition("/")[2]
        return None if f"{name}/".startswith(LEFT_OUT) or "__pycache__" in name else member

    with tarfile.open(target, "w:gz") as file:
        for name in names:
            file.add(ROOT / name, f"gangplan-course/{name}", filter=kept)
    print(target)


def main() -> int:
    """Write the notebooks that are not there yet into the folder that is named; solved and graded ones anew."""
    kinds = [x for x in sys.argv[1:] if x in ("--solutions", "--nbgrader")]
    names = [x for x in sys.argv[1:] if x not in kinds]
    if len(names) != 1 or names[0].startswith("-") or len(kinds) > 1:
        print("usage: notebooks.py OUT [--solutions | --nbgrader]", file=sys.stderr)
        return 2
    out = Path(names[0], *(x.strip("-") for x in kinds))
    out.mkdir(parents=True, exist_ok=True)
    for path in sources():
        target = out / f"{path.stem}.ipynb"
        if kinds == ["--nbgrader"]:
            target = out / "source" / path.stem / target.name
            target.parent.mkdir(parents=True, exist_ok=True)
        elif target.exists() and not kinds:
            print(f"{target} is there and was kept; move it away to have it empty")
            continue
        jupytext.write(graded(path) if kinds == ["--nbgrader"] else notebook(path, bool(kinds)), target)
        print(target)
    if kinds == ["--nbgrader"]:
        (out / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    elif not kinds and (HERE / "solutions").exists():
        archive(out / "students.tar.gz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
