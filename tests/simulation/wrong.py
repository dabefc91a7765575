"""What is raised when something does not hold that the page promises."""

from __future__ import annotations

from typing import Any

IGNORED: set[str] = set()
"""Rules that are not looked at, so that what lies behind a known fault can be seen."""


class Wrong(Exception):  # noqa: N818, it is no error of the program but what the machine is looking for
    """Something that the page promises does not hold; `events` led there, on `cluster`."""

    def __init__(self, rule: str, words: str) -> None:
        super().__init__(f"{rule}: {words}")
        self.rule, self.words = rule, words
        self.events: list[list[Any]] = []
        self.cluster: dict[str, Any] = {}


def hold(truth: object, rule: str, words: str) -> None:
    """Raise `Wrong` unless a promise holds."""
    if not truth and rule not in IGNORED:
        raise Wrong(rule, words)
