"""A policy may fail, and its error is the caller's; it may not end the caller's program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from gangplan.instances import InstanceError

T = TypeVar("T")


@contextmanager
def asking() -> Iterator[None]:
    """Ask policies in this context: what would end the program becomes an error like any other.

    Raises:
        RuntimeError: in the place of a SystemExit or GeneratorExit. Ctrl-C goes through.
    """
    try:
        yield
    except (SystemExit, GeneratorExit) as error:
        raise RuntimeError(f"a policy raised {type(error).__name__}({str(error)[:200]!r})") from error


def converted(answer: Any, convert: Callable[[Any], T], decision: str) -> T:
    """Return the answer of a policy as what it should be; an error names the decision and the answer."""
    try:
        return convert(answer)
    except (TypeError, ValueError, OverflowError, AttributeError):
        raise InstanceError(decision, f"{answer!r} is no answer to this") from None
