"""Student's t, for intervals of means over few seeds, without SciPy."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt


@lru_cache(maxsize=256)
def quantile(level: float, freedom: int) -> float:
    """Return the t that a variable of `freedom` degrees stays within, both sides, with probability `level`.

    By bisection on the finite sums of Abramowitz and Stegun (1964), 26.7.3 and 26.7.4.
    """
    low, high = 0.0, 1.0
    while within(high, freedom) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < level else (low, middle)
    return high


def within(t: float, freedom: int) -> float:
    """Return the probability that a variable of `freedom` degrees is from -t to t."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cos(angle) ** 2 * k / (k + 1)
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
