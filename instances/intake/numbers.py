"""Numbers of any origin as floats."""

from __future__ import annotations

from math import isfinite

from ..errors import InstanceError


def as_float(value: object, field: str, *, positive: bool = False) -> float:
    """Return a finite number from 0 on, or above 0, that is given as a number or as text.

    Raises:
        InstanceError: naming the field and the value found.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InstanceError(field, f"{value!r} is not a number")
    try:
        found = float(value)
    except ValueError:
        raise InstanceError(field, f"{value!r} is not a number") from None
    except OverflowError:
        found = float("inf")
    if not isfinite(found) or found < 0 or (positive and not found):
        wanted = "a positive number" if positive else "a finite number from 0 on"
        raise InstanceError(field, f"{value!r} is not {wanted}")
    return found
