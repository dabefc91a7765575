"""Numbers of certificates: rationals as text, floats taken for what they are, and what the verifier lets pass."""

from __future__ import annotations

import re
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from ..errors import InstanceError, brief

SLACK = Fraction(1, 10**9) + Fraction(1, 2**34)
"""Relative slack of the verifier on sums of floats, 1e-9, and the rounding of half a million terms on top."""
PLACES = Fraction(1, 2**49)
"""What a time may be off by on the verifier's clock, as a share of it: four last places, and as many for rounding."""
_DIGITS = 800
"""Characters of a number: a float of 1e-300 as a quotient has half as many."""
_MOST = 10**_DIGITS
_NUMBER = re.compile(r"-?[0-9]+(/0*[1-9][0-9]*)?")


class Budget:
    """Steps that searches may still take; who makes a certificate may have other reasons to end them."""

    def __init__(self, steps: int, words: str = "the search is not over in so many") -> None:
        self.left, self._words = steps, words

    def take(self, steps: int = 1) -> None:
        """Take some; raise if there are no more."""
        self.left -= steps
        if self.left < 0:
            raise InstanceError("steps", self._words)


def number(data: Any, field: str) -> Fraction:
    """Return the rational that a whole number or a text such as ``-3/8`` says."""
    if isinstance(data, int):
        return Fraction(whole(data, field))
    if not isinstance(data, str) or len(data) > _DIGITS or not _NUMBER.fullmatch(data):
        raise InstanceError(field, f"{brief(data)} is neither a whole number nor a quotient like '3/8'")
    return Fraction(data)


def whole(data: Any, field: str) -> int:
    """Return a whole number of no more digits than others may have."""
    if not isinstance(data, int) or isinstance(data, bool) or abs(data) >= _MOST:
        raise InstanceError(field, f"{brief(data)} is not a whole number of at most {_DIGITS} digits")
    return data


def exact(rows: Any) -> list[list[Fraction | float]]:
    """Return a matrix of floats as the rationals that they are, infinite ones as they are."""
    return [[Fraction(x) if isfinite(x) else inf for x in row] for row in rows.tolist()]


def weights(values: tuple[Fraction, ...], count: int, field: str) -> None:
    """Raise unless there are `count` numbers, none below 0."""
    if len(values) != count:
        raise InstanceError(field, f"has {len(values)} entries where {count} are expected")
    if values and min(values) < 0:
        raise InstanceError(f"{field}[{values.index(min(values))}]", f"{min(values)} is negative")
