"""Rows of benchmarks as CSV: what is appended is kept, whoever else writes or is killed."""

from __future__ import annotations

import multiprocessing
from math import nan
from pathlib import Path

import pytest

from benchmarks.rows import Row, Task, append, read, short

FIGURES = ("mean_jct", "bound")


def row(case: str, seed: int, **figures: float) -> Row:
    """Return a row of a policy with weights."""
    return Row(Task(case, "a policy", seed, "0123"), figures, "2026", "abc")


def test_rows_survive(tmp_path: Path) -> None:
    """What is appended is read back the same, in order, missing figures and odd characters included."""
    path = tmp_path / "rows.csv"
    rows = [row("a", 1), row('b "quoted", one', 2, mean_jct=0.1 + 0.2), row("ü,\nx", 3, bound=1 / 3)]
    for one in rows:
        append([one], path, FIGURES)
    assert read(path) == rows
    assert read(tmp_path / "absent.csv") == []


def test_half_a_row_is_dropped(tmp_path: Path) -> None:
    """A row that a killed writer left unfinished is refused when read and replaced by the next."""
    path = tmp_path / "rows.csv"
    append([row("a", 1)], path, FIGURES)
    with path.open("a") as file:
        file.write("b,2")
    with pytest.raises(ValueError, match=r"rows\.csv:3: 2 cells where 8 are expected"):
        read(path)
    append([row("c", 7)], path, FIGURES)
    assert read(path) == [row("a", 1), row("c", 7)]


def test_what_is_no_number_is_refused(tmp_path: Path) -> None:
    """A figure or a seed that is no number is named by line."""
    path = tmp_path / "rows.csv"
    append([row("a", 1, bound=2.0)], path, FIGURES)
    path.write_text(path.read_text().replace("2.0", "two"))
    with pytest.raises(ValueError, match=r"rows\.csv:2: .*'two'"):
        read(path)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    """A file with other columns is neither read nor written, one with other figures not written."""
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    for use in (lambda: read(path), lambda: append([row("a", 1)], path, FIGURES)):
        with pytest.raises(ValueError, match="columns are a, b"):
            use()
    assert path.read_text() == "a,b\n1,2\n"
    append([row("a", 1)], tmp_path / "other.csv", FIGURES)
    with pytest.raises(ValueError, match="expected the figures rate"):
        append([row("a", 1)], tmp_path / "other.csv", ("rate",))


def test_short() -> None:
    """Nine digits are kept; what is not known is left out."""
    assert short({"a": 1 / 3, "b": None, "c": nan, "d": 12}) == {"a": 0.333333333, "d": 12.0}


def _write(path: Path, seed: int) -> None:
    for i in range(20):
        append([row("a", 100 * seed + i)], path, FIGURES)


def test_writers_at_the_same_time(tmp_path: Path) -> None:
    """Four processes appending at once lose no row and write one header."""
    path = tmp_path / "rows.csv"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(path, seed)) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(x.task.seed for x in read(path)) == [100 * s + i for s in range(4) for i in range(20)]
