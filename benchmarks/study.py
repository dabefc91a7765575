"""A study: what is run, what is measured of a run, and the pages that its rows fill."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path

from gangplan.instances import InstanceError

from .found import Found
from .rows import FOLDER, ROOT, Row, Task, append, measured_commit, read, short

NOT_RUN = "Not run yet."
Tables = Mapping[str, Callable[[Found], str]]
"""Tables in Markdown, by the name of their section of a page."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for.

    Attributes:
        cases, policies: names, all of the study if there are none.
        only: text in "case policy seed".
        seeds: how many, None for as many as the study has.
        processes: that run at once.
        data, weights: folders of published data and of weights.
        rows: the file of rows, None for that of the study.
        out: folder of what is trained, if anything is.
        as_json: whether what is printed is JSON.
    """

    cases: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    only: str = ""
    seeds: int | None = None
    processes: int = 1
    data: Path = ROOT.parent / "shared" / "data"
    weights: Path = ROOT / "learned" / "weights"
    rows: Path | None = None
    out: Path = ROOT / "build" / "benchmarks"
    as_json: bool = False

    def chosen(self, cases: Iterable[str]) -> list[str]:
        """Return those of some cases that are asked for."""
        return [case for case in cases if not self.cases or case in self.cases]


@dataclass(frozen=True, slots=True)
class Study:
    """One of the benchmarks.

    Attributes:
        name: of the command, and of the file of rows.
        figures: names of what is measured.
        tasks: all that there is to run.
        measure: runs one of them; an `InstanceError` leaves it out, in words.
        pages: what its rows fill, by page in docs/.
        more: further commands, by name.
        alike: see `Found`.
    """

    name: str
    figures: tuple[str, ...]
    tasks: Callable[[Options], Iterable[Task]]
    measure: Callable[[Task, Options], Mapping[str, float | None]]
    pages: Mapping[str, Tables] = field(default_factory=dict)
    more: Mapping[str, Callable[[Options], object]] = field(default_factory=dict)
    alike: Callable[[Row], object] = attrgetter("task.case", "task.policy")

    @property
    def path(self) -> Path:
        """The file of its rows."""
        return FOLDER / f"{self.name}.csv"

    def found(self, path: Path | None = None) -> Found:
        """Return what its rows say."""
        return Found(read(path or self.path), self.alike)

    def run(self, options: Options, say: Callable[[str], None] = print) -> list[Row]:
        """Run what has no row yet; a row is on the disk as soon as it is there. Return the new rows."""
        from joblib import Parallel, delayed

        path = options.rows or self.path
        known, new, told = {row.task for row in read(path)}, list[Row](), set[str]()
        every = [t for t in self.tasks(options) if options.only in f"{t.case} {t.policy} {t.seed}"]
        tasks = [task for task in every if task not in known]
        if not every:
            say("nothing to run: is there such a case, and such a policy?")
        about = datetime.now(UTC).isoformat(timespec="seconds"), measured_commit()
        work = Parallel(n_jobs=options.processes, return_as="generator_unordered")(
            delayed(_measured)(self.measure, task, options) for task in tasks
        )
        for i, (task, found) in enumerate(work, 1):
            where = f"{task.case} {task.policy}"
            if isinstance(found, str):
                if where not in told:
                    say(f"{where}: left out, {found}")
                told.add(where)
                continue
            new.append(Row(task, short(found), *about))
            append(new[-1:], path, self.figures)
            say(f"{i:4}/{len(tasks)}  {where} seed {task.seed}  {_told(new[-1].figures)}")
        return new

    def write(self, rows: Path | None = None, *, check: bool = False, folder: Path = ROOT / "docs") -> int:
        """Renew the sections of its pages; with `check` write nothing and return 1 if one does not agree."""
        found, wrong = self.found(rows), 0
        for page, tables in self.pages.items():
            wrong |= renew(folder / page, {name: make(found) for name, make in tables.items()}, self.name, check=check)
        return wrong


def _measured(
    measure: Callable[[Task, Options], Mapping[str, float | None]], task: Task, options: Options
) -> tuple[Task, Mapping[str, float | None] | str]:
    try:
        return task, measure(task, options)
    except InstanceError as error:
        return task, str(error)


def _told(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.5g}" for name, value in list(figures.items())[:3]) or "cut off"


def renew(page: Path, tables: Mapping[str, str], name: str, *, check: bool = False) -> int:
    """Put tables into a page between their markers; the prose around them is written by hand.

    With `check` nothing is written, and 1 is returned if the page does not agree.

    Raises:
        ValueError: if a table has no section.
    """
    before = after = page.read_text(encoding="utf-8")
    for section, text in tables.items():
        begin, end = f"<!-- generated: {section} -->\n", f"<!-- end of {section} -->"
        parts = re.split(f"({re.escape(begin)}).*?({re.escape(end)})", after, flags=re.DOTALL)
        if len(parts) != 4:
            raise ValueError(f"{page.name} has no section {section}")
        after = "".join((parts[0], begin, "\n", text, "\n\n", *parts[2:]))
    if check and before != after:
        print(f"{page.name} does not agree with its rows: python -m benchmarks {name} page")
        return 1
    if before != after:
        page.write_text(after, encoding="utf-8")
    print(f"{page.name} {'agrees with its rows' if before == after else 'renewed'}")
    return 0
