"""Traces as tables: CSV with a header, pipes between the columns, or no header at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

Table = tuple[tuple[str, ...], Iterator[tuple[int, list[str]]]]
"""The columns, and (line, values) of each row."""


def table(text: str, columns: tuple[str, ...] = (), delimiter: str = ",") -> Table:
    """Split a table; its first line names the columns unless they are given."""
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    names = columns or tuple(name.strip() for name in next(rows, []))
    return names, ((rows.line_num, values) for values in rows if values)
