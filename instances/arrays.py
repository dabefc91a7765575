"""Checked, read-only arrays: the stuff every instance is made of."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DEVICES, InstanceError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


def frozen(value: Any, dtype: type, field: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Return `value` as a read-only array of `dtype`; `None` in `shape` allows any length.

    Raises:
        InstanceError: naming the field and the first entry that does not fit.
    """
    try:
        raw = np.asarray(value)
    except ValueError:
        raise InstanceError(field, "its rows differ in length") from None
    if raw.size == 0:
        raw = raw.astype(dtype)
        if 0 in shape and len(raw.shape) < len(shape):
            raw = raw.reshape([n or 0 for n in shape])
    if raw.dtype.kind not in _ALLOWED[dtype] or (dtype is not np.bool_ and _holds_bool(value)):
        raise InstanceError(*_first_misfit(value, dtype, field))
    if len(raw.shape) != len(shape) or any(n not in (None, m) for n, m in zip(shape, raw.shape, strict=True)):
        wanted = " x ".join("any" if n is None else str(n) for n in shape)
        found = " x ".join(map(str, raw.shape)) or "a single value"
        raise InstanceError(field, f"has {found} entries where {wanted} are expected")
    if dtype is np.int32:
        require((raw >= -(2**31)) & (raw < 2**31), raw, field, "does not fit 32 bits")
    result: NDArray[Any] = np.array(raw, dtype=dtype, order="C")
    result.setflags(write=False)
    return result


def sums(index: NDArray[Any], weights: NDArray[Any], count: int) -> FloatArray:
    """Return the sum of the weights at each index below `count`, float64 (count,)."""
    return np.bincount(index, weights=weights, minlength=count).astype(np.float64)


def require(ok: NDArray[np.bool_], array: NDArray[Any], field: str, problem: str) -> None:
    """Raise at the first entry of `array` where `ok` is false: ``field[i]: value problem``."""
    if not ok.all():
        where = np.unravel_index(int(np.argmin(ok)), ok.shape)
        index = "".join(f"[{i}]" for i in where)
        raise InstanceError(f"{field}{index}", f"{array[where].item()!r} {problem}")


def require_number(
    value: object, field: str, *, positive: bool = False, whole: bool = False, optional: bool = False
) -> None:
    """Raise unless `value` is a finite, non-negative (or positive) number that an array can hold."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise InstanceError(field, f"{value!r} is not a {'whole number' if whole else 'number'}")
    if not -sys.float_info.max <= value <= sys.float_info.max:
        raise InstanceError(field, f"{value!r} is not finite")
    if isinstance(value, int) and value >= 2**63:
        raise InstanceError(field, f"{value!r} does not fit into 64 bits")
    if value < 0 or (positive and value == 0):
        raise InstanceError(field, f"{value!r} is {'not positive' if positive else 'negative'}")


def require_count(count: object, field: str) -> None:
    """Raise unless `count` is a number of devices within the limit: a mistyped one must not exhaust the memory."""
    require_number(count, field, whole=True)
    if isinstance(count, int):
        DEVICES.check(count, field)


def require_unique(values: Sequence[Hashable], field: str, of: str = "") -> None:
    """Raise at the first value that was there before: ``field[i]of: value is a duplicate``."""
    if len(set(values)) == len(values):
        return
    seen: set[Hashable] = set()
    for i, value in enumerate(values):
        if value in seen:
            raise InstanceError(f"{field}[{i}]{of}", f"{value!r} is a duplicate")
        seen.add(value)


def require_text(value: object, field: str) -> None:
    """Raise unless `value` is a non-empty string."""
    if not isinstance(value, str) or not value:
        raise InstanceError(field, f"{value!r} is not a name")


def require_names(owner: Any, *fields: str, unique: bool = True) -> None:
    """Make tuples of some fields of a frozen dataclass, and raise at the first entry that is no name or a duplicate."""
    for field in fields:
        values = tuple(getattr(owner, field))
        object.__setattr__(owner, field, values)
        for i, value in enumerate(values):
            require_text(value, f"{field}[{i}]")
        if unique:
            require_unique(values, field)


_ALLOWED = {np.float64: "fiu", np.int32: "iu", np.bool_: "b"}
_KIND = {np.float64: "a number", np.int32: "a whole number", np.bool_: "true or false"}


def _first_misfit(value: Any, dtype: type, field: str) -> tuple[str, str]:
    for path, entry in _entries(value, field):
        if np.asarray(entry).dtype.kind not in _ALLOWED[dtype]:
            return path, f"{entry!r} is not {_KIND[dtype]}"
    return field, f"is not a list of {_KIND[dtype].removeprefix('a ')}s"


def _holds_bool(value: Any) -> bool:
    # numpy takes true for 1 when a list holds numbers too
    if not isinstance(value, list | tuple):
        return False
    kinds = set(map(type, value))
    return bool in kinds or (bool(kinds & {list, tuple}) and any(map(_holds_bool, value)))


def _entries(value: Any, field: str) -> Iterable[tuple[str, Any]]:
    if isinstance(value, list | tuple | np.ndarray):
        for i, entry in enumerate(value):
            yield from _entries(entry, f"{field}[{i}]")
    else:
        yield field, value
