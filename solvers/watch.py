"""Loops that look at the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_OFTEN = 255
"""Turns between two looks, one less than a power of two: a look takes as long as a short turn."""


def never() -> bool:
    """Return false: there is no clock."""
    return False


def watched(items: Iterable[T], stopped: Callable[[], bool]) -> Iterator[T]:
    """Yield the items, and look at the clock now and then.

    Raises:
        TimeoutError: once `stopped` is true.
    """
    for i, item in enumerate(items):
        if not i & _OFTEN and stopped():
            raise TimeoutError
        yield item
