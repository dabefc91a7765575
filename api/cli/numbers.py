"""Numbers on the command line, refused with the text that was found."""

from __future__ import annotations

from typing import Any

import typer


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
