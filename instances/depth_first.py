"""Depth-first searches as generators, on a stack of their own: Python's ends at a thousand calls."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any


def walked(root: Iterator[Any]) -> Iterator[Any]:
    """Run a generator, and every generator that one yields before what follows it; yield all else that they yield."""
    stack = [root]
    while stack:
        for found in stack[-1]:
            if isinstance(found, Generator):
                stack.append(found)
                break
            yield found
        else:
            stack.pop()


def walk(root: Iterator[Any]) -> None:
    """Run such a generator, for what it does."""
    for _ in walked(root):
        pass
