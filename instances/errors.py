"""The one error a user's input can cause."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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

    def within(self, prefix: str) -> InstanceError:
        """Return the same error with its field seen from an enclosing object."""
        joint = "" if self.field.startswith("[") or not self.field else "."
        return InstanceError(f"{prefix}{joint}{self.field}", self.problem, self.source)

    def of(self, source: str) -> InstanceError:
        """Return the same error with the file it came from."""
        return InstanceError(self.field, self.problem, source)


def _one_line(text: str) -> str:
    """Return `text` short and printable, whatever a file holds."""
    if len(text) > 300:
        text = f"{text[:200]} ... {text[-60:]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def unknown(value: object, known: Iterable[str]) -> str:
    """Return that `value` is none of the known words, and the one that was probably meant."""
    words = list(known)
    return f"{value!r} is not one of {', '.join(words)}{did_you_mean(value, words)}"


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """Return the question whether the known word nearest to `value` is meant, nothing if none is near."""
    near = get_close_matches(value, list(known), 1) if isinstance(value, str) else []
    return f"; did you mean {near[0]}?" if near else ""
