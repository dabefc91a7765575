"""Numbers on the command line, refused with the text that was found."""

from __future__ import annotations

from typing import Any

import typer

from gangplan.instances import InstanceError


def whole(text: Any) -> int:
    """Return the whole number that `text` says."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a whole number") from None


def number(text: Any) -> float:
    """Return the number that `text` says."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None


def numbers(text: Any) -> Any:
    """Return the number that `text` says, or of several joined by commas a tuple."""
    found = tuple(map(number, str(text).split(",")))
    return found if len(found) > 1 else found[0]


def wholes(text: Any) -> tuple[int, ...]:
    """Return the whole numbers that `text` says, joined by commas."""
    return tuple(map(whole, str(text).split(",")))


def by_name(text: str, field: str) -> dict[str, float]:
    """Return the numbers that ``a=1,b=0.3`` says.

    Raises:
        InstanceError: naming the field and the part that says none.
    """
    found = {}
    for part in text.split(",") if text else []:
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InstanceError(field, f"{part!r} is not name=number") from None
    return found
