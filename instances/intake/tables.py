"""Rows of delimited text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from ..errors import ROWS, InstanceError

Table = tuple[tuple[str, ...], Iterator[tuple[int, list[str]]]]
"""The columns, and (line, values) of each row."""


def csv_rows(text: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield (line, values) of each row that is not blank; lines may end as on any system.

    Raises:
        InstanceError: naming the line at which the text is no table, or has too many rows.
    """
    most, count = ROWS.value, 0
    rows = csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)
    try:
        for values in rows:
            if values:
                count += 1
                ROWS.check(count, f"line {rows.line_num}", most)
                yield rows.line_num, values
    except csv.Error as error:
        raise InstanceError(f"line {rows.line_num}", str(error)) from None
