"""Seconds and bytes for readers: a prefix that suits the size, and the unit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import floor, isfinite, log10
from typing import Any

STEPS = {
    "s": (
        *((172800.0, 86400.0, "d"), (7200.0, 3600.0, "h"), (600.0, 60.0, "min")),
        *((1.0, 1.0, "s"), (1e-3, 1e-3, "ms"), (1e-6, 1e-6, "µs"), (1e-9, 1e-9, "ns")),
    ),
    "B": (
        *((1e15, 1e15, "PB"), (1e12, 1e12, "TB"), (1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (1e3, 1e3, "kB")),
        (1.0, 1.0, "B"),
    ),
}
"""From which size on a prefix is used, what it stands for, and the unit with it."""

_DATED, _LATEST = 1e8, 2e11
"""Seconds since 1970 that are taken for a date: those of 1973, and of a year of four digits."""


def scale(largest: float, unit: str, digits: int = 3) -> tuple[float, str]:
    """Return (factor, prefixed unit) to show numbers up to `largest` by; divide by the factor.

    What would be shown with `digits` as the size from which a prefix is used has that prefix: 1 ms, never 1000 µs.
    """
    steps = STEPS.get(unit)
    if steps is None or not largest:
        return 1.0, unit
    nearly = abs(largest) / (1 - 0.5 * 10.0**-digits)
    return next(((factor, name) for least, factor, name in steps if nearly >= least), steps[-1][1:])


def quantity(value: float | None, unit: str, digits: int = 4) -> str:
    """Return `value` with `digits` significant digits and its unit; a dash for None, ``unlimited`` for infinity."""
    if value is None or not isfinite(value):
        return short(value)
    factor, name = scale(value, unit, digits)
    return f"{short(value / factor, digits)} {name}".rstrip()


def counted(n: Any, word: str) -> str:
    """Return a number of things in words: ``1 GPU``, ``8 GPUs``."""
    number = float(n)
    return f"{number:,g} {word}" if number == 1 else f"{number:,.10g} {word}s"


def moment(seconds: float) -> str:
    """Return a time in words: of seconds since 1970 the date in UTC, of seconds since a start ``90 s``."""
    if _DATED <= seconds < _LATEST:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{seconds:.6g} s"


def alike(values: Sequence[float | None], unit: str = "", digits: int = 3) -> tuple[list[str], str]:
    """Return numbers in one unit, with the decimals that give the largest so many digits, and the unit; "" for None."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    factor, name = scale(largest, unit, digits)
    decimals = min(digits, max(0, digits - 1 - floor(log10(largest / factor)))) if largest else 0
    return ["" if value is None else f"{value / factor:,.{decimals}f}" for value in values], name


def short(value: float | None, digits: int = 4) -> str:
    """Return a number with `digits` significant digits, but a large one as a whole number; a dash for None."""
    if value is None:
        return "-"
    if not isfinite(value):
        return "unlimited"
    if abs(value) >= 10**digits:
        return f"{value:.0f}"
    if abs(value) < 1e-4 and value:
        return f"{value:.1e}"
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e" in text else text
