"""What goes to stdout: in one piece, when everything has worked."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from gangplan.instances import InstanceError

from . import streams

WIDTH = 160
"""Columns where stdout is no terminal."""
LEAST_WIDTH = 60
"""Columns for which tables are made even if the terminal has fewer; its lines then go on below."""


def emit(text: str) -> None:
    """Print `text`; a reader that has gone away has seen enough.

    Raises:
        InstanceError: if stdout is closed, or there is no room where it leads.
    """
    if streams.closed():
        raise InstanceError("stdout", "is closed")
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError as error:
        streams.lost(error)
    except OSError as error:
        raise InstanceError("stdout", streams.lost(error)) from None


def emit_json(data: Any) -> None:
    """Print `data` as one JSON object on one line."""
    emit(json.dumps(data, allow_nan=False))


def emit_blocks(*blocks: Any) -> None:
    """Print lines of text and rich tables, with an empty line between blocks."""
    from rich.console import Console

    console = Console(width=WIDTH, markup=False, highlight=False, emoji=False, soft_wrap=True)
    if sys.stdout.isatty():
        console.width = max(LEAST_WIDTH, shutil.get_terminal_size().columns)
    with console.capture() as capture:
        for i, block in enumerate(blocks):
            if i:
                console.print()
            console.print(block, soft_wrap=isinstance(block, str))
    emit("\n".join(line.rstrip() for line in capture.get().splitlines()))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Any:
    """Return a rich table whose first `left` columns are words and whose others are numbers."""
    from rich import box
    from rich.table import Table

    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        result.add_column(column, justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        result.add_row(*row)
    return result


def facts(rows: Iterable[tuple[str, str]]) -> Any:
    """Return a rich grid of names and values."""
    from rich.table import Table

    result = Table.grid(padding=(0, 2))
    result.add_column(style="bold")
    result.add_column(overflow="fold")
    for name, value in rows:
        result.add_row(name, value)
    return result
