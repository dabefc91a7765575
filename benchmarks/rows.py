"""Rows of all benchmarks, a run each: ``benchmarks/rows/STUDY.csv``, one schema for all studies."""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import math
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "rows"
MEASURED = ("instances", "solvers", "simulator", "learned", "scheduler", "hybrid", "api")
"""What can change a figure: a commit elsewhere leaves rows up to date."""
COLUMNS = ("case", "policy", "seed", "weights", "date", "commit")
"""Of every file; the figures of its study follow, empty where one is not known."""


class Task(NamedTuple):
    """What is run.

    Attributes:
        case: workload or problem, with its settings in words.
        policy: that decides, or the method that solves.
        seed: of the case.
        weights: the first twelve digits of their SHA-256, empty of a policy without.
    """

    case: str
    policy: str
    seed: int
    weights: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One run.

    Attributes:
        task: what was run.
        figures: what was measured, by name; seconds and bytes where the study does not say otherwise.
        date, commit: when, of what.
    """

    task: Task
    figures: Mapping[str, float]
    date: str = ""
    commit: str = ""


def read(path: Path) -> list[Row]:
    """Return the rows of a file, oldest first; none if there is no file.

    Raises:
        ValueError: naming file and line, if a row is not whole.
    """
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        names = _figures(path, next(lines, []))
        return [_row(cells, names, f"{path}:{lines.line_num}") for cells in lines]


def append(rows: Sequence[Row], path: Path, figures: Sequence[str]) -> None:
    """Add rows: whole or not at all, on the disk when this returns, whoever else appends at the same time.

    Raises:
        ValueError: naming the file, if it has other columns than those of `figures`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path) as file:
        file.seek(0)
        content = file.read()
        whole = content.rfind(b"\n") + 1  # a writer that was killed may have left half a row
        file.truncate(whole)
        if whole and _figures(path, next(csv.reader(content.decode().splitlines()))) != tuple(figures):
            raise ValueError(f"{path}:1: expected the figures {', '.join(figures)}")
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerows([] if whole else [(*COLUMNS, *figures)])
        out.writerows((*x.task, x.date, x.commit, *(x.figures.get(name, "") for name in figures)) for x in rows)
        file.write(text.getvalue().encode())
        file.flush()
        os.fsync(file.fileno())


def _figures(path: Path, head: Sequence[str]) -> tuple[str, ...]:
    if tuple(head[: len(COLUMNS)]) != COLUMNS:
        raise ValueError(f"{path}:1: columns are {', '.join(head)}; expected {', '.join(COLUMNS)}, then figures")
    return tuple(head[len(COLUMNS) :])


def _row(cells: Sequence[str], names: Sequence[str], where: str) -> Row:
    expected = len(COLUMNS) + len(names)
    if len(cells) != expected:
        raise ValueError(f"{where}: {len(cells)} cells where {expected} are expected")
    case, policy, seed, weights, date, commit, *values = cells
    try:
        figures = {name: float(value) for name, value in zip(names, values, strict=True) if value}
        return Row(Task(case, policy, int(seed), weights), figures, date, commit)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def short(figures: Mapping[str, Any]) -> dict[str, float]:
    """Return figures in nine digits, without those that are None or not a number."""
    return {name: float(f"{x:.9g}") for name, x in figures.items() if x is not None and not math.isnan(x)}


def digest(path: Path | None) -> str:
    """Return the first twelve digits of a file's SHA-256, nothing of no file."""
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def measured_commit(root: Path = ROOT) -> str:
    """Return the short hash of the last commit that changed `MEASURED`, with a + if the working tree differs."""
    commit = _git(root, "log", "-1", "--format=%h", "--abbrev=9", "--", *MEASURED)
    return commit + ("+" if _git(root, "status", "--porcelain", "--", *MEASURED) else "")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
