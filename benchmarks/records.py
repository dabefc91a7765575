"""Dataclasses as rows of a CSV file: what the ledgers of all benchmarks share."""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import IO, Any, TypeVar, get_type_hints

Record = TypeVar("Record")
_TRUTH = {"True": True, "False": False}


def columns(cls: type[Any]) -> tuple[str, ...]:
    """Return the names of the columns of a dataclass: those of its fields."""
    return tuple(field.name for field in fields(cls))


def read_records(path: Path, cls: type[Record]) -> list[Record]:
    """Return the rows of a file, oldest first; none if there is no file.

    Raises:
        ValueError: naming file and line, if a row is not whole.
    """
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        _check_header(path, next(lines, []), columns(cls))
        return [parse(cls, cells, f"{path}:{lines.line_num}") for cells in lines]


def append_records(rows: Sequence[Any], path: Path) -> None:
    """Add rows: whole or not at all, on the disk when this returns, whoever else appends at the same time.

    An empty cell is what is not known.

    Raises:
        ValueError: naming the file, if it has other columns.
    """
    if not rows:
        return
    names = columns(type(rows[0]))
    with locked(path) as file:
        file.seek(0)
        content = file.read()
        whole = content.rfind(b"\n") + 1  # a writer that was killed may have left half a row
        file.truncate(whole)
        if whole:
            _check_header(path, next(csv.reader(content.decode().splitlines())), names)
        file.write(_text(([] if whole else [names]) + [_cells(row) for row in rows]))
        file.flush()
        os.fsync(file.fileno())


def _cells(row: Any) -> list[Any]:
    return ["" if x is None else x for x in astuple(row)]


def _text(lines: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def _check_header(path: Path, cells: Sequence[str], names: Sequence[str]) -> None:
    if tuple(cells) != tuple(names):
        raise ValueError(f"{path}:1: columns are {', '.join(cells)}; expected {', '.join(names)}")


def parse(cls: type[Record], cells: Sequence[str], where: str) -> Record:
    """Return the row that the cells of a line make; fields are of type str, int, bool, float, or float or None.

    Raises:
        ValueError: saying where, if there are too few cells or too many, or one is not what its field is.
    """
    names = columns(cls)
    if len(cells) != len(names):
        raise ValueError(f"{where}: {len(cells)} cells where {len(names)} are expected")
    hints, values = get_type_hints(cls), dict[str, Any]()
    for name, cell in zip(names, cells, strict=True):
        kind = hints[name]
        if kind is bool:
            if cell not in _TRUTH:
                raise ValueError(f"{where}: {name}: {cell!r} is neither True nor False")
            values[name] = _TRUTH[cell]
            continue
        try:
            values[name] = kind(cell) if kind in (str, int, float) else float(cell) if cell else None
        except ValueError:
            raise ValueError(f"{where}: {name}: {cell!r} is not a number") from None
    return cls(**values)


@contextmanager
def locked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to append to, for this process alone."""
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
