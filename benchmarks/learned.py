"""Judge a learned policy beside its rivals wherever benchmarks/learned_PROBLEM.csv lacks it.

Each problem has a module ``benchmarks/learned_PROBLEM.py`` with

- ``tasks(weights)``: what is to be judged, a `Task` an instance, given the folder of the weights;
- ``TABLES``: the sections of docs/learned-PROBLEM.md by name, each made from the rows; see `learned_tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from .learned_rows import LearnedRow, append, csv_of, raise_reference, read
from .ledger import ROOT
from .report import SECTION

WEIGHTS = ROOT / "learned" / "weights"


@dataclass(frozen=True, slots=True)
class Task:
    """One instance, and the methods to be judged on it.

    Attributes:
        set, family, size, seed: see `LearnedRow`.
        methods: by name.
        judge: from those of the methods that are missing to their rows.
        bound: from the best objective and the bound known to what can be proved now, seconds; None if the optimum is
            known.
    """

    set: str
    family: str
    size: int
    seed: int
    methods: tuple[str, ...]
    judge: Callable[[Sequence[str]], Iterable[LearnedRow]]
    bound: Callable[[float, float], float] | None = None


def run(problem: str, *, weights: Path = WEIGHTS, only: str = "", say: Callable[[str], None] = print) -> None:
    """Judge what is missing; a row is written as soon as its instance is done, so that Ctrl-C loses little.

    Args:
        problem: of `PROBLEMS`.
        weights: folder of the weights.
        only: only methods with this in 'set family size seed method'.
        say: takes a line an instance.
    """
    path = csv_of(problem)
    done = {row.key for row in read(path)}
    for task in _module(problem).tasks(weights):
        at = task.set, task.family, task.size, task.seed
        label = " ".join(map(str, at))
        missing = [m for m in task.methods if (*at, m) not in done and only in f"{label} {m}"]
        if missing:
            rows = list(task.judge(missing))
            append(rows, path)
            say(f"{label}: " + ", ".join(f"{row.method} {row.gap:.2%} {row.milliseconds:.1f} ms" for row in rows))


def prove(problem: str, *, weights: Path = WEIGHTS, only: str = "", say: Callable[[str], None] = print) -> None:
    """Bound anew the instances whose references are bounds, and raise the references; see `run` for the arguments."""
    path = csv_of(problem)
    for task in _module(problem).tasks(weights):
        at = task.set, task.family, task.size, task.seed
        label = " ".join(map(str, at))
        rows = [row for row in read(path) if row.instance == at]
        best = min((row.objective for row in rows if row.objective and row.method != "bound"), default=None)
        if task.bound is None or best is None or only not in label or best <= rows[0].reference * (1 + 1e-6):
            continue
        bound = task.bound(best, rows[0].reference)
        raise_reference(at, bound, path)
        say(f"{label}: least gap {best / rows[0].reference - 1:.2%} before, {best / bound - 1:.2%} now")


def renew(page: str, problem: str, rows: Sequence[LearnedRow]) -> str:
    """Return `page` with every generated section made anew.

    Raises:
        ValueError: if a table has no section, or a section no table.
    """
    tables: dict[str, Callable[[Sequence[LearnedRow]], str]] = _module(problem).TABLES
    named = [match[2] for match in SECTION.finditer(page)]
    if sorted(named) != sorted(tables):
        raise ValueError(f"sections are {', '.join(named)}; tables are {', '.join(tables)}")
    return SECTION.sub(lambda match: f"{match[1]}\n{tables[match[2]](rows)}\n\n{match[3]}", page)


def write_page(problem: str, check: bool = False) -> int:
    """Renew docs/learned-PROBLEM.md; with `check` write nothing and return 1 if it does not agree with the rows."""
    page = ROOT / "docs" / f"learned-{problem}.md"
    if not page.exists():
        print(f"{page.name} is not there yet")
        return 0
    before = page.read_text(encoding="utf-8")
    after = renew(before, problem, read(csv_of(problem)))
    if before == after:
        print(f"{page.name} agrees with {csv_of(problem).name}")
        return 0
    if check:
        print(f"{page.name} does not agree with {csv_of(problem).name}: python -m benchmarks learned {problem} --page")
        return 1
    page.write_text(after, encoding="utf-8")
    print(f"{page.name} renewed")
    return 0


def _module(problem: str) -> Any:
    return import_module(f"{__package__}.learned_{problem}")
