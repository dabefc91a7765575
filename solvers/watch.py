"""Loops that look at the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_OFTEN = 256
"""Turns between two looks: a look takes as long as a short turn."""


def never() -> bool:
    """Return false: there is no clock."""
    return False


def watched(items: Iterable[T], stopped: Callable[[], bool], often: int = _OFTEN) -> Iterator[T]:
    """Yield the items, and look at the clock every so `often` items.

    Raises:
        TimeoutError: once `stopped` is true.
    """
    for i, item in enumerate(items):
        if not i % often and stopped():
            raise TimeoutError
        yield item
