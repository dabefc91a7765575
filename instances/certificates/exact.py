"""Numbers of certificates: rationals as text, floats taken for what they are, and what the verifier lets pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from ..errors import InstanceError, brief

SLACK = Fraction(1, 10**9) + Fraction(1, 2**40)
"""Relative slack of the verifier on sums of floats, 1e-9, and the rounding of 4,000 terms on top."""
PLACES = Fraction(1, 2**49)
"""What a time may be off by on the verifier's clock, as a share of it: four last places, and as many for rounding."""
_DIGITS = 400
"""Characters of a number: a float of 1e-300 as a quotient has as many."""
_NUMBER = re.compile(r"-?[0-9]+(/[0-9]+)?")


def number(data: Any, field: str) -> Fraction:
    """Return the rational that a whole number or a text such as ``-3/8`` says."""
    if isinstance(data, int) and not isinstance(data, bool):
        return Fraction(data)
    if not isinstance(data, str) or len(data) > 2 * _DIGITS or not _NUMBER.fullmatch(data):
        raise InstanceError(field, f"{brief(data)} is neither a whole number nor a quotient like '3/8'")
    above, _, below = data.partition("/")
    if below and not int(below):
        raise InstanceError(field, f"{data!r} divides by zero")
    return Fraction(int(above), int(below or 1))


def exact(value: Any) -> Fraction | float:
    """Return a finite float as the rational that it is, an infinite one as it is."""
    return Fraction(value) if isfinite(value) else inf


def exactly(values: Iterable[float]) -> list[Fraction | float]:
    """Return floats as rationals, infinite ones as they are."""
    return [exact(x) for x in values]


def not_negative(values: Iterable[Fraction], field: str) -> None:
    """Raise if a number is below 0."""
    for i, x in enumerate(values):
        if x < 0:
            raise InstanceError(f"{field}[{i}]", f"{x} is negative")


def indices(values: Iterable[int], below: int, field: str) -> None:
    """Raise unless all are different and from 0 up to, not including, `below`."""
    seen = set[int]()
    for i, x in enumerate(values):
        if not 0 <= x < below:
            raise InstanceError(f"{field}[{i}]", f"{x} is not from 0 to {below - 1}")
        if x in seen:
            raise InstanceError(f"{field}[{i}]", f"{x} is there twice")
        seen.add(x)


def of_length(values: tuple[Any, ...], count: int, field: str) -> None:
    """Raise unless there are `count` of them."""
    if len(values) != count:
        raise InstanceError(field, f"has {len(values)} entries where {count} are expected")
