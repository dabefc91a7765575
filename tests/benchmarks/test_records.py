"""Rows of benchmarks as CSV: what is appended is kept, whoever else writes or is killed."""

from __future__ import annotations

import multiprocessing
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # a folder of the repository, not of the package
    sys.path.insert(0, str(ROOT))

from benchmarks.records import append_records, read_records  # noqa: E402


@dataclass(frozen=True, slots=True)
class Row:
    """A row of some types."""

    name: str
    seed: int
    value: float | None = None


def read(path: Path) -> list[Row]:
    """Return the rows of a file."""
    return read_records(path, Row)


def test_rows_survive(tmp_path: Path) -> None:
    """What is appended is read back the same, in order, missing values and odd characters included."""
    path = tmp_path / "rows.csv"
    rows = [Row("a", 1), Row('b "quoted", one', 2, 0.1 + 0.2), Row("ü,\nx", 3, 1 / 3)]
    for row in rows:
        append_records([row], path)
    assert read(path) == rows
    assert read(tmp_path / "absent.csv") == []


def test_half_a_row_is_dropped(tmp_path: Path) -> None:
    """A row that a killed writer left unfinished is refused when read and replaced by the next."""
    path = tmp_path / "rows.csv"
    append_records([Row("a", 1)], path)
    with path.open("a") as file:
        file.write("b,2")
    with pytest.raises(ValueError, match=r"rows\.csv:3: 2 cells where 3 are expected"):
        read(path)
    append_records([Row("c", 7)], path)
    assert read(path) == [Row("a", 1), Row("c", 7)]


def test_other_columns_are_refused(tmp_path: Path) -> None:
    """A file with other columns is neither read nor written."""
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    for use in (lambda: read(path), lambda: append_records([Row("a", 1)], path)):
        with pytest.raises(ValueError, match="columns are a, b"):
            use()
    assert path.read_text() == "a,b\n1,2\n"


def _write(path: Path, seed: int) -> None:
    for i in range(20):
        append_records([Row("a", 100 * seed + i)], path)


def test_writers_at_the_same_time(tmp_path: Path) -> None:
    """Four processes appending at once lose no row and write one header."""
    path = tmp_path / "rows.csv"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(path, seed)) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(row.seed for row in read(path)) == [100 * s + i for s in range(4) for i in range(20)]
