"""What an input may ask for at most: limits by name, each with an environment variable that replaces its default."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .errors import InstanceError


@dataclass(frozen=True, slots=True)
class Limit:
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
        """The limit in force.

        Raises:
            InstanceError: if the variable holds no positive whole number.
        """
        text = os.environ.get(self.variable, "").strip()
        if not text:
            return self.default
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text)):
            raise InstanceError(self.variable, f"{text!r} is not a positive whole number")
        return int(text)

    def check(self, count: int, field: str, most: int | None = None) -> None:
        """Raise unless `count` is within the limit, or within `most` where a caller gives one.

        Raises:
            InstanceError: naming the field, the count and how to raise the limit.
        """
        limit = self.value if most is None else most
        if count > limit:
            raise InstanceError(field, f"{count!r} is more than {limit} {self.unit} ({self.variable} sets the limit)")


BYTES = Limit("GANGPLAN_MAX_BYTES", 2**30, "bytes")
"""Of a file, once gzip is undone."""
JSON_BYTES = Limit("GANGPLAN_MAX_JSON_BYTES", 2**28, "bytes of JSON or TOML")
"""Of a document: parsed, it takes up to 25 times as much memory."""
DEPTH = Limit("GANGPLAN_MAX_DEPTH", 64, "lists and objects inside one another")
"""No known format has more than ten."""
ROWS = Limit("GANGPLAN_MAX_ROWS", 20_000_000, "rows")
"""Of a table. The largest published trace has 3.4 million."""
DEVICES = Limit("GANGPLAN_MAX_DEVICES", 10_000_000, "devices")
"""Of a cluster, however few words ask for them."""
ENTRIES = Limit("GANGPLAN_MAX_ENTRIES", 100_000_000, "entries")
"""Of one array that is larger than what the input spells out: a matrix of all pairs, a list of all blocks."""

LEVELS = Limit("GANGPLAN_MAX_LEVELS", 64, "levels")
"""Of a tree of devices; clusters have two to four."""

LIMITS = (BYTES, JSON_BYTES, DEPTH, ROWS, DEVICES, ENTRIES, LEVELS)
