"""Open an input: text, JSON, TOML, CSV and gzip from files, or an `InstanceError`; nobody else opens one."""

from __future__ import annotations

import csv
import io
import json
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from gzip import GzipFile
from math import isfinite
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any

from .errors import BYTES, DEPTH, JSON_BYTES, ROWS, InputLimit, InstanceError, brief, in_file

_CHUNK = 2**20
_GZIP = b"\x1f\x8b"


def file_name(path: Any) -> str:
    """Return the name of a file as text."""
    try:
        return fsdecode(path)
    except TypeError:
        raise InstanceError("path", f"{brief(path)} is not the name of a file") from None


def read_bytes(path: str | PathLike[str], *, limit: InputLimit = BYTES) -> bytes:
    """Return what a file holds; of a device or a pipe that never ends no more than the limit is read."""
    with in_file(path):
        return _read(path, limit)


def read_text(path: str | PathLike[str], *, gzip: bool = False, empty: bool = False, limit: InputLimit = BYTES) -> str:
    """Return the text of a file, without a byte order mark, lines ending in a line feed whatever ended them there.

    Args:
        path: the file.
        gzip: whether it may be compressed, which its first bytes tell.
        empty: whether there may be nothing in it.
        limit: of its bytes, once they are uncompressed.
    """
    with in_file(path):
        content = _read(path, limit, text=not gzip)
        if gzip and content.startswith(_GZIP):
            content = _unzipped(content, limit)
        text = decoded(content)
        if not empty and not text.strip():
            raise InstanceError("content", "the file is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def decoded(content: bytes) -> str:
    """Return UTF-8 text without a byte order mark."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        offset = error.start + (len(content) - len(error.object))  # the codec counts from behind the mark
        raise InstanceError("content", f"byte {content[offset]:#04x} at offset {offset} is not UTF-8 text") from None
    if "\0" in text:
        raise InstanceError("content", f"byte 0x00 at offset {content.index(0)} is not text")
    return text


def io_error(error: Exception) -> str:
    """Return what a failed call of the system has to say."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def _read(path: str | PathLike[str], limit: InputLimit, *, text: bool = False) -> bytes:
    most, parts, size = limit.value, [], 0
    name = file_name(path)
    try:
        with Path(name).open("rb") as file:
            while part := file.read(_CHUNK):
                size += len(part)
                limit.check(size, "content", most)
                parts.append(part)
                if text and len(parts) == 1 and 0 in part:
                    decoded(part[: part.index(0) + 1])  # /dev/zero, or a binary: no need to read on
    except InstanceError:
        raise
    except (OSError, ValueError) as error:
        raise InstanceError("file", io_error(error)) from None
    except MemoryError:
        raise InstanceError("content", f"{size} bytes do not fit into the memory") from None
    return b"".join(parts)


def _unzipped(content: bytes, limit: InputLimit) -> bytes:
    """Undo gzip, of one member after the other, without ever holding more than the limit."""
    most = limit.value
    try:
        with GzipFile(fileobj=io.BytesIO(content)) as file:
            text = file.read(most + 1)
    except EOFError:
        raise InstanceError("content", "is gzip that was cut off") from None
    except (OSError, zlib.error) as error:
        raise InstanceError("content", f"is broken gzip: {error}") from None
    limit.check(len(text), "content", most)
    return text


def as_float(value: object, field: str, *, positive: bool = False) -> float:
    """Return a finite number from 0 on, or above 0, that is given as a number or as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InstanceError(field, f"{value!r} is not a number")
    try:
        found = float(value)
    except ValueError:
        raise InstanceError(field, f"{value!r} is not a number") from None
    except OverflowError:
        found = float("inf")
    if not isfinite(found) or found < 0 or (positive and not found):
        wanted = "a positive number" if positive else "a finite number from 0 on"
        raise InstanceError(field, f"{value!r} is not {wanted}")
    return found


def cluster_sizes(text: str, form: str, like: str, most: int = 1000) -> tuple[int, ...]:
    """Return the sizes of a cluster that a text like ``2x4x4`` says, each from 1 to `most`.

    Args:
        text: of the user.
        form: what the numbers are, for the message, if it is to say so.
        like: an example with as many numbers.
        most: of each number.
    """
    parts = [part.lstrip("0") for part in text.lower().split("x")]
    if len(parts) != len(like.split("x")) or not all(part.isascii() and part.isdigit() for part in parts):
        raise InstanceError("cluster", f"{brief(text)} is not {f'{form}, ' if form else ''}like {like}")
    if any(len(part) > 18 or int(part) > most for part in parts):
        raise InstanceError("cluster", f"{brief(text)} is too large: a number is more than {most}")
    return tuple(map(int, parts))


def parse_json(text: str) -> Any:
    """Parse strict JSON: no NaN, no infinity, no repeated key, no more and no deeper than the limits."""
    _not_too_much(text)
    try:
        data = json.loads(text, parse_constant=_refuse, parse_float=_finite("JSON"), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise InstanceError("JSON", f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise InstanceError("JSON", "is nested too deeply") from None
    except InstanceError:
        raise
    except ValueError:  # the interpreter's limit on digits
        raise InstanceError("JSON", "a whole number has thousands of digits") from None
    _not_too_deep(data, "JSON", text.count("[") + text.count("{"))
    return data


def read_json(path: str | PathLike[str]) -> Any:
    """Return the values that a file of strict JSON holds."""
    text = read_text(path, limit=JSON_BYTES)
    with in_file(path):
        return parse_json(text)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML: no NaN, no infinity, no more and no deeper than the limits."""
    _not_too_much(text)
    try:
        data = tomllib.loads(text, parse_float=_finite("TOML"))
    except InstanceError:
        raise
    except ValueError as error:
        raise InstanceError("TOML", str(error).lower()) from None
    except RecursionError:
        raise InstanceError("TOML", "is nested too deeply") from None
    _not_too_deep(data, "TOML", len(text))
    return data


def _not_too_much(text: str) -> None:
    most = JSON_BYTES.value
    if len(text) > most // 4:  # a character has up to four bytes
        JSON_BYTES.check(len(text.encode(errors="surrogatepass")), "content", most)


def _not_too_deep(data: Any, what: str, opened: int) -> None:
    """Raise if lists and objects are inside one another beyond the limit: whoever walks them does so by recursion.

    Of fewer brackets than that, `opened` in the text, nothing can be.
    """
    most, depth = DEPTH.value, 0
    if opened <= most:
        return
    level = [data] if isinstance(data, list | dict) else []
    while level:
        depth += 1
        if depth > most:
            raise InstanceError(what, f"is nested too deeply: more than {most} {DEPTH.unit}")
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]


def _refuse(name: str) -> None:
    raise InstanceError("JSON", f"{name} is not a number")


def _finite(what: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = float(text)
        if not isfinite(value):
            raise InstanceError(what, f"{text} is {'too large' if text[-1:].isdigit() else 'not'} a number")
        return value

    return read


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InstanceError(key, "is given twice")
    return result


Table = tuple[tuple[str, ...], Iterator[tuple[int, list[str]]]]
"""The columns, and (line, values) of each row."""


def csv_rows(text: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield (line, values) of each row that is not blank; lines may end as on any system."""
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
