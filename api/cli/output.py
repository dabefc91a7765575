"""Write to stdout in one piece when everything has worked, whatever the streams are; show a bar for what takes long."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NewType

from gangplan.instances import InstanceError
from gangplan.instances.errors import printable
from gangplan.instances.outlet import write_whole

LEAST_WIDTH = 60
"""Columns for which tables are made even if there are fewer; lines then go on below."""
LONGEST = 1000
"""Columns of the widest table."""
LEAST_WORDS = 12
"""Characters of a word up to which it is never folded."""


def emit(text: str) -> None:
    """Print `text`; a reader that has gone away has seen enough."""
    if closed():
        raise InstanceError("stdout", "is closed")
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError as error:
        lost(error)
    except OSError as error:
        raise InstanceError("stdout", lost(error)) from None


def emit_blocks(*blocks: Any) -> None:
    """Print lines of text and rich tables, with an empty line between blocks.

    Both are as wide as the terminal, or 80 columns: words go on below. A table whose numbers alone need more is wider,
    for no number is cut. A block that is empty is left out.
    """
    from rich.console import Console

    width = terminal()
    console = Console(width=width, markup=False, highlight=False, emoji=False, soft_wrap=True)
    with console.capture() as capture:
        for i, block in enumerate(filter(None, blocks)):
            if i:
                console.print()
            words = isinstance(block, str)
            longest = console.options.update(width=LONGEST)
            console.width = width if words else max(width, console.measure(block, options=longest).minimum)
            console.print(wrapped(printable(block), width) if words else block, soft_wrap=words)
    emit("\n".join(line.rstrip() for line in capture.get().splitlines()))


Told = NewType("Told", int)
"""The exit code of a command that has told what it found, to people or to machines."""
AS_JSON: ContextVar[bool] = ContextVar("AS_JSON", default=False)
"""Whether machines are told."""


def tell(data: Any, *blocks: Any, code: int = 0) -> Told:
    """Print `data` for machines or blocks for people, and return the exit code; what takes long is a function."""
    if AS_JSON.get():
        emit(json.dumps(data() if callable(data) else data, allow_nan=False))
    else:
        emit_blocks(*(x for block in blocks for x in (block() if callable(block) else [block])))
    return Told(code)


def write(*files: tuple[str | None, Callable[[str], bytes | str]]) -> None:
    """Write what is made for each path that was asked for: all of it, or nothing."""
    made = {path: make(path) for path, make in files if path is not None}
    write_whole({path: x.encode() if isinstance(x, str) else x for path, x in made.items()})


def note(*words: str) -> None:
    """Say what somebody should know who reads no table, a line each on stderr."""
    for x in words:
        print(f"note: {x}", file=sys.stderr)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Any:
    """Return a rich table whose first `left` columns are words, folded where need be, and whose others are numbers."""
    from rich import box
    from rich.table import Table

    cells = [tuple(map(printable, row)) for row in rows]
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", collapse_padding=True)
    for i, column in enumerate(columns):
        if i < left:
            longest = max((len(word) for row in cells for word in row[i].split()), default=0)
            result.add_column(column, overflow="fold", min_width=min(longest, LEAST_WORDS))
            continue
        # a head is folded between its words, to be as narrow as the numbers below it
        words = [line for row in cells for line in row[i].splitlines()] + column.split()
        room = max(map(len, words), default=1)
        result.add_column("\n".join(textwrap.wrap(column, room)), justify="right", no_wrap=True, min_width=room)
    for row in cells:
        result.add_row(*row)
    return result


def table_of(columns: Mapping[str, Sequence[str]], left: int = 1) -> Any:
    """Return the table of columns by their heads, without those that have no cells; nothing if none has."""
    shown = {head: cells for head, cells in columns.items() if cells}
    return shown and table(tuple(shown), zip(*shown.values(), strict=True), left)


def listed(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], left: int = 1) -> Any:
    """Return the table of rows as machines have them: of each column what it shows of a row, like ``{gap:.1%}``."""
    return table_of({head: [cell.format_map(row) for row in rows] for head, cell in columns.items()}, left)


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values below one another; a value folds between words, one that is too long has its own line.

    Names without a value are left out.
    """
    pairs = [row for row in rows if row[1]]
    indent = max((len(name) for name, _ in pairs), default=0) + 2
    lines = []
    for name, value in pairs:
        room = terminal() - indent
        if max(map(len, value.split()), default=0) > room:
            lines += [name, f"  {value}"]
            continue
        head, *rest = textwrap.wrap(value, room, break_on_hyphens=False) or [""]
        lines += [f"{name:{indent}}{head}", *(f"{'':{indent}}{line}" for line in rest)]
    return "\n".join(lines)


def wrapped(text: str, width: int) -> str:
    """Return lines of which none is longer than `width` but for a long word, those below the first of each indented."""
    lines = []
    for line in text.splitlines():
        how: Any = {"subsequent_indent": line[: len(line) - len(line.lstrip())] + "  "}
        lines += textwrap.wrap(line, width, **how, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def terminal() -> int:
    """Return the columns of the terminal, 80 where there is none."""
    return max(LEAST_WIDTH, shutil.get_terminal_size((80, 24)).columns)


@contextmanager
def progress(doing: str) -> Iterator[Callable[[float], None]]:
    """Yield what shows how much is done, by a bar on a terminal's stderr; nothing where there is none, or as JSON."""
    from rich.console import Console
    from rich.progress import Progress

    quiet = AS_JSON.get() or not sys.stderr.isatty()
    with Progress(console=Console(stderr=True), disable=quiet, transient=True) as bar:
        task = bar.add_task(doing, total=1.0)
        yield lambda share: bar.update(task, completed=share)


_closed: list[bool] = []
"""Holds an entry if stdout was closed when the command began."""


def settle() -> None:
    """Put something in the place of streams that are closed; else the next file that is opened would be taken for one.

    What is logged to a stream that is full is lost, without a word on it.
    """
    for descriptor, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free
    if sys.stdout is None:
        _closed.append(True)
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    logging.raiseExceptions = False


def closed() -> bool:
    """Return whether stdout was closed when the command began."""
    return bool(_closed)


def lost(error: OSError) -> str:
    """Give stdout up, so that the interpreter does not try once more as it ends; return what is wrong with it."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return (error.strerror or str(error)).lower()


def finish() -> None:
    """End quietly: Ctrl-C has nothing left to interrupt, and what cannot be flushed is lost."""
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
