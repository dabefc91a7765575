"""Tables of pages."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, rule, *lines])
