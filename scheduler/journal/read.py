"""Read a scheduler's log: its first line and those that follow; a half-written one is dropped."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import in_file
from gangplan.instances.intake import decoded, file_name, parse_json, read_bytes
from gangplan.instances.placement import Fleet

from .values import decode
from .write import FORMAT, RESTORE, content_hash

_STATE, _RESIZE = (f'\n{{"event":"{event}",'.encode() for event in (RESTORE, "resize"))
_LINE = re.compile(rb'{"event":"restore","line":(\d+),')
_BACK = 2**20
"""Bytes in which a state is looked for from the end of a log."""


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Hold what a log says.

    Attributes:
        version: of gangplan that began it.
        fleet: the nodes that there were before the first of `rows`.
        policy: of a policy of the user's own, the name of its class in a dict.
        arguments: other arguments of `Scheduler`.
        rows: lines after the first, with their numbers.
        size: bytes up to the last whole line.
        notes: what was dropped.
    """

    path: str
    version: str
    fleet: Fleet
    policy: Any
    arguments: Mapping[str, Any]
    rows: tuple[tuple[int, dict[str, Any]], ...]
    size: int
    notes: tuple[str, ...]


BEGIN = b'{"gangplan":"log"'
"""First bytes of each log."""


def read_log(path: str | PathLike[str], *, last: bool = False) -> ReadLog:
    """Read a log, with `last` from the last whole state on; drop a last line that is not whole."""
    name, notes = file_name(path), list[str]()
    content, skipped, lines = (last and _from_state(path)) or (read_bytes(path), 0, 0)
    with in_file(path):
        size = content.rfind(b"\n") + 1
        if not content.startswith(BEGIN) or not size:
            raise InstanceError("content", "is no log of a Scheduler")
        if size < len(content):
            notes.append(f"the last line is cut off after {len(content) - size} bytes, and is dropped")
        first = content.index(b"\n") + 1
        begin = max(first, content.rfind(_STATE, 0, size) + 1) if last else first
        number = lines + content.count(b"\n", 0, begin) + 1
        with at_line(1):
            head = _parsed(content[:first])
            version, arguments = head["version"], head["arguments"]
            if head["format"] != FORMAT:
                raise InstanceError("format", f"{head['format']!r} is not {FORMAT}: it is of gangplan {version}")
            cluster, policy = arguments.pop("cluster"), arguments.pop("policy", "hybrid")
            if head["hash"] != content_hash(json.dumps(cluster, separators=(",", ":"))):
                raise InstanceError("hash", "is not that of the cluster: the line was altered")
            own = isinstance(policy, dict) and policy.get("type") == "object"
            given = {"max_wait": None} | {key: decode(value) for key, value in arguments.items()}
            fleet = decode(_resized(content, begin, size, skipped) or cluster)
        rows = tuple(_rows(content[begin:size].split(b"\n")[:-1], number, notes))
    return ReadLog(name, version, fleet, policy if own else decode(policy), given, rows, skipped + size, tuple(notes))


def _from_state(path: str | PathLike[str]) -> tuple[bytes, int, int] | None:
    """Return a log's first line and what follows from the last whole state on, and the bytes and lines between them.

    The end is read first, so that it takes as long for a log of years as for one of a day. Nothing is returned of no
    file, and of one whose last state does not say which line it is: earlier versions did not.
    """
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return None
    with open(path, "rb") as file:
        head, end, back, start, rest = file.readline(), os.fstat(file.fileno()).st_size, _BACK, -1, b""
        first = max(0, len(head) - 1)  # the line break before the second line
        found = -1
        while found < 0 and start != first:
            start, back = max(first, end - back), 4 * back
            file.seek(start)
            rest = file.read()
            found = rest.rfind(_STATE, 0, rest.rfind(b"\n") + 1)
    line = _LINE.match(rest, found + 1)
    return (head + rest[found + 1 :], start + found - first, int(line[1]) - 2) if found >= 0 and line else None


def _resized(content: bytes, begin: int, size: int, skipped: int) -> Any:
    """Return the nodes of the whole state at which a log begins, `None` if they are still those of its first line."""
    if not skipped and begin == content.index(b"\n") + 1:
        return None
    if nodes := _parsed(content[begin : content.index(b"\n", begin, size)]).get("nodes"):
        return nodes
    last = content.rfind(_RESIZE, 0, begin) + 1
    return _parsed(content[last : content.index(b"\n", last)])["fleet"] if last else None


@contextmanager
def at_line(number: int, source: str | None = None) -> Iterator[None]:
    """Have errors inside name their line and file."""
    try:
        yield
    except InstanceError as error:
        raise InstanceError(f"line {number}: {error.field}", error.problem, source) from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        words = f"cannot be read: {type(error).__name__}: {error}"
        raise InstanceError(f"line {number}", words, source) from None


def _rows(lines: list[bytes], number: int, notes: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines, but for those that a state after a gap makes up for."""
    for i, line in enumerate(lines):
        if not line and i + 1 < len(lines):
            continue
        with at_line(number + i):
            try:
                yield number + i, _parsed(line)
            except InstanceError:
                if i + 1 == len(lines) or b'"gap":true' not in lines[i + 1][:200]:
                    raise
                notes.append(f"line {number + i} is cut off; the next one has the whole state")


def _parsed(line: bytes) -> dict[str, Any]:
    row = parse_json(decoded(line))
    if not isinstance(row, dict):
        raise InstanceError("", "is no object")
    return row
