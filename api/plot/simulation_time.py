"""Long times for readers: seconds to years."""

from __future__ import annotations

import numpy as np

from .layout import FloatArray

UNITS = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
LEAST = 2
"""Of a unit, for an axis or a number to be in it."""
TICKS = ((1, 5, 10, 30), (1, 2, 5, 10, 30), (1, 2, 6, 12), (1, 2, 7, 30, 90, 365))
"""Of a logarithmic axis: seconds, minutes, hours, days."""
FEW, MANY = ({1, 10}, {1, 10}, {1, 6}, {1, 7, 30, 365}), 5
"""Those shown if there are more than so many."""


def unit(longest: float) -> tuple[float, str]:
    """Return (seconds, name) of the unit for times up to `longest`."""
    return next((one for one in UNITS if longest >= LEAST * one[0]), UNITS[-1])


def words(seconds: float, digits: int = 3) -> str:
    """Return a time with `digits` significant digits, in the unit that suits it."""
    factor, name = unit(seconds)
    value = seconds / factor
    return f"{value:,.0f} {name}" if value >= 10**digits else f"{value:.{digits}g} {name}"


def ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Return places and words of the ticks of a logarithmic axis from `low` to `high` seconds."""
    short = [(10.0**k, f"{10.0**k:g} s", True) for k in range(int(np.floor(np.log10(low))), 0)]
    usual = [
        (count * factor, f"{count} {name.removesuffix('s') if count == 1 and name == 'days' else name}", count in few)
        for (factor, name), counts, few in zip(reversed(UNITS), TICKS, FEW, strict=True)
        for count in counts
    ]
    shown = [tick for tick in (*short, *usual) if low <= tick[0] <= high]
    if len(shown) > MANY:
        shown = [tick for tick in shown if tick[2]]
    return [at for at, _, _ in shown], [text for _, text, _ in shown]


def distribution(jct: FloatArray, most: int = 1000) -> tuple[FloatArray, FloatArray]:
    """Return a curve of at most `most` steps: completion times, ascending, and the share of jobs done within each.

    A logarithmic axis has no 0: what takes no time is put at the shortest time there is.
    """
    ordered = np.sort(jct)
    n = len(ordered)
    rank = np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))
    positive = ordered[ordered > 0]
    least = positive[0] if len(positive) else 1.0
    return np.maximum(ordered[rank], least), (rank + 1) / max(n, 1)
