"""A policy may fail, and its error is the caller's; it may not end the caller's program."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from gangplan.instances import InstanceError

T = TypeVar("T")


class Held:
    """A context in which policies are asked: what would end the program becomes an error like any other.

    Raises:
        RuntimeError: in the place of a SystemExit or GeneratorExit. Ctrl-C goes through.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if isinstance(error, SystemExit | GeneratorExit):
            raise RuntimeError(f"a policy raised {type(error).__name__}({str(error)[:200]!r})") from error


def told(answer: Any, convert: Callable[[Any], T], decision: str) -> T:
    """Return the answer of a policy as what it should be.

    Raises:
        InstanceError: naming the decision and the answer, if that is none.
    """
    try:
        return convert(answer)
    except (TypeError, ValueError, OverflowError, AttributeError):
        raise InstanceError(decision, f"{answer!r} is no answer to this") from None
