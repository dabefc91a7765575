"""Traces as tables: CSV with a header, pipes between the columns, or no header at all."""

from __future__ import annotations

from ...intake import Table, csv_rows


def table(text: str, columns: tuple[str, ...] = (), delimiter: str = ",") -> Table:
    """Split a table; its first line names the columns unless they are given."""
    rows = csv_rows(text, delimiter)
    names = columns or tuple(name.strip() for name in next(rows, (0, []))[1])
    return names, rows
