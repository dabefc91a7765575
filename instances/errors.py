"""The one error a user's input can cause, and what an input may ask for at most: limits that the environment sets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any


class InstanceError(ValueError):
    """Say which field of which input is wrong and what was found there.

    Args:
        field: path of the field, e.g. ``graph.time[0][17]``.
        problem: what is wrong, with the value found, e.g. ``-1.0 is negative``.
        source: the file it came from, if any.
    """

    def __init__(self, field: str, problem: str, source: str | None = None) -> None:
        self.field = field
        self.problem = problem
        self.source = source
        super().__init__(": ".join(_one_line(part) for part in (source, field, problem) if part))

    def __reduce__(self) -> tuple[type[InstanceError], tuple[str, str, str | None]]:
        """Let it come whole from another process."""
        return type(self), (self.field, self.problem, self.source)

    def within(self, prefix: str) -> InstanceError:
        """Return the same error with its field seen from an enclosing object."""
        joint = "" if self.field.startswith("[") or not (self.field and prefix) else "."
        return InstanceError(f"{prefix}{joint}{self.field}", self.problem, self.source)

    def of(self, source: str) -> InstanceError:
        """Return the same error with the file it came from."""
        return InstanceError(self.field, self.problem, source)


@contextmanager
def in_file(source: Any) -> Iterator[None]:
    """Have an error inside name the file that it comes from."""
    try:
        yield
    except InstanceError as error:
        raise error.of(os.fsdecode(source)) if isinstance(source, str | bytes | os.PathLike) else error from None


@contextmanager
def within(prefix: str) -> Iterator[None]:
    """Have an error inside name its field as seen from an enclosing object."""
    try:
        yield
    except InstanceError as error:
        raise error.within(prefix) from None


def _one_line(text: str) -> str:
    """Return `text` short and printable, whatever a file holds."""
    if len(text) > 300:
        text = f"{text[:200]} ... {text[-60:]}"
    return printable(text).replace("\n", "\\n")


def printable(text: str) -> str:
    """Return text without what a terminal would obey: of all that is not printable only line ends stay."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def unknown(value: object, known: Iterable[str]) -> str:
    """Return that `value` is none of the known words, and the one that was probably meant."""
    words = list(known)
    return f"{brief(value)} is not one of {', '.join(words)}{did_you_mean(value, words)}"


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """Return the question whether the known word nearest to `value` is meant, nothing if none is near."""
    by_lower = {word.lower(): word for word in known}
    near = get_close_matches(value.lower(), by_lower, 1) if isinstance(value, str) else []
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


def require_known(given: Iterable[str], known: Iterable[str], said: str = "is unknown") -> None:
    """Raise at the first name that is none of the known ones, with the one that is probably meant."""
    words = list(known)
    for name in given:
        if name not in words:
            raise InstanceError(name, f"{said}{did_you_mean(name, words)}")


def extra(name: str) -> str:
    """Return how an extra is installed: from the clone, since no index has this package."""
    return f'in the clone of gangplan: pip install ".[{name}]"'


def brief(value: object) -> str:
    """Return what a value is in a few words: as Python writes it, or its type if that takes several lines."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # lists in lists in lists, a number of thousands of digits
        return f"a {type(value).__name__} that is too large to be shown"
    return f"a {type(value).__name__}" if "\n" in text else text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, slots=True)
class InputLimit:
    """One limit.

    Attributes:
        variable: of the environment; read whenever the limit is asked for.
        default: the limit where the variable is not set.
        unit: what is counted.
    """

    variable: str
    default: int
    unit: str

    @property
    def value(self) -> int:
        """The limit in force."""
        text = os.environ.get(self.variable, "").strip()
        if not text:
            return self.default
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text)):
            raise InstanceError(self.variable, f"{text!r} is not a positive whole number")
        return int(text)

    def check(self, count: int, field: str, most: int | None = None) -> None:
        """Raise unless `count` is within the limit, or within `most` where a caller gives one."""
        limit = self.value if most is None else most
        if count > limit:
            raise InstanceError(field, f"{count!r} is more than {limit} {self.unit} ({self.variable} sets the limit)")


BYTES = InputLimit("GANGPLAN_MAX_BYTES", 2**30, "bytes")
"""Of a file, once gzip is undone."""
JSON_BYTES = InputLimit("GANGPLAN_MAX_JSON_BYTES", 2**28, "bytes of JSON or TOML")
"""Of a document: parsed, it takes up to 25 times as much memory."""
DEPTH = InputLimit("GANGPLAN_MAX_DEPTH", 64, "lists and objects inside one another")
"""No known format has more than ten."""
ROWS = InputLimit("GANGPLAN_MAX_ROWS", 20_000_000, "rows")
"""Of a table. The largest published trace has 3.4 million."""
DEVICES = InputLimit("GANGPLAN_MAX_DEVICES", 10_000_000, "devices")
"""Of a cluster, however few words ask for them."""
ENTRIES = InputLimit("GANGPLAN_MAX_ENTRIES", 100_000_000, "entries")
"""Of one array that is larger than what the input spells out: a matrix of all pairs, a list of all blocks."""

LEVELS = InputLimit("GANGPLAN_MAX_LEVELS", 64, "levels")
"""Of a tree of devices; clusters have two to four."""
