"""Look up the newest rows of the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from .ledger import Row


class Rows:
    """The newest row of each (suite, instance, variant, method)."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.newest = {(r.suite, r.instance, r.variant, r.method): r for r in rows}

    def find(self, suite: str, instance: str, variant: str = "contiguous", method: str = "auto") -> Row | None:
        """Return that row, `None` if it has not been run."""
        return self.newest.get((suite, instance, variant, method))

    def of(self, suite: str) -> list[Row]:
        """Return the newest rows of a suite."""
        return [row for row in self.newest.values() if row.suite == suite]
