"""Checked, read-only arrays: the stuff every instance is made of."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache, partial
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .errors import DEVICES, InstanceError, brief, unknown

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


def frozen(
    value: Any, dtype: type, field: str, shape: tuple[int | None, ...], axes: Iterable[str | None] = ()
) -> NDArray[Any]:
    """Return `value` as an array of `dtype` that nobody can make writable; `None` in `shape` allows any length.

    Of each axis an error names what is as long, if anything is.
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
        found = f"{' x '.join(map(str, raw.shape))} entries" if raw.shape else "a single value"
        words = f": {' x '.join(x or 'any' for x in axes)}" if any(axes) else ""
        raise InstanceError(field, f"has {found} where {wanted} are expected{words}")
    if dtype is np.int32:
        require((raw >= -(2**31)) & (raw < 2**31), raw, field, "does not fit 32 bits")
    return np.ndarray(raw.shape, dtype, raw.astype(dtype, copy=False).tobytes())


def sums(index: NDArray[Any], weights: NDArray[Any], count: int) -> FloatArray:
    """Return the sum of the weights at each index below `count`, float64 (count,)."""
    return np.bincount(index, weights=weights, minlength=count).astype(np.float64)


def offsets(counts: NDArray[np.integer] | Sequence[int]) -> NDArray[np.int64]:
    """Return 0 and the running sums of counts."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def ranges(begin: NDArray[np.integer], end: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the numbers of all ranges, one after the other."""
    size = end - begin
    return np.asarray(np.repeat(begin - offsets(size)[:-1], size) + np.arange(size.sum()))


def row_sums(index: NDArray[Any], rows: Iterable[NDArray[Any]], count: int) -> FloatArray:
    """Return `sums` of each row, float64 (rows, count)."""
    return np.stack([sums(index, row, count) for row in rows])


def distinct(*columns: NDArray[Any]) -> tuple[list[NDArray[np.int64]], NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct rows of whole numbers from 0 on as sorted columns, each row's index among them, and counts.

    A row is taken for one number, which numpy sorts a hundred times as fast as a tuple.
    """
    widths = [int(column.max(initial=0)) + 1 for column in columns]
    number = np.zeros(len(columns[0]), dtype=np.int64)
    for column, width in zip(columns, widths, strict=True):
        number = number * width + column
    found, index, times = np.unique(number, return_inverse=True, return_counts=True)
    rows: list[NDArray[np.int64]] = []
    for width in reversed(widths):
        found, last = np.divmod(found, width)
        rows.insert(0, last)
    return rows, index, times


def require(ok: NDArray[np.bool_], array: NDArray[Any], field: str, problem: str) -> None:
    """Raise at the first entry of `array` where `ok` is false: ``field[i]: value problem``."""
    if not ok.all():
        where = np.unravel_index(int(np.argmin(ok)), ok.shape)
        index = "".join(f"[{i}]" for i in where)
        raise InstanceError(f"{field}{index}", f"{array[where].item()!r} {problem}")


_PLAIN = {int, float, str}


def plain(value: Any) -> Any:
    """Return the Python number, text or flag that a scalar of numpy is; anything else as it is."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value


def listed(value: Any, field: str) -> tuple[Any, ...]:
    """Return the items of a sequence, scalars of numpy as Python's."""
    try:
        if isinstance(value, str | bytes | Mapping):
            raise TypeError
        items = tuple(value)
    except TypeError:
        one = plain(value)
        bare = int(one) if isinstance(one, str) and one.isdecimal() else one
        hint = f"; write ({brief(bare)},)" if isinstance(one, str | int | float) else ""
        raise InstanceError(
            field, f"{brief(one)} is not a sequence{hint or '; write [...] around it' * is_dataclass(one)}"
        ) from None
    return tuple(map(plain, items)) if any(issubclass(kind, np.generic) for kind in set(map(type, items))) else items


def _is_usual(value: Any, whole: bool) -> bool:
    return (type(value) is int or (type(value) is float and not whole)) and 0 < value < 2**63


LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "least": (operator.ge, "less than"),
    "above": (operator.gt, "not above"),
    "most": (operator.le, "more than"),
    "below": (operator.lt, "not below"),
}
"""What may be said of a number, what it means, and what is said of one of which it does not hold."""


def require_number(
    value: object,
    field: str,
    *,
    positive: bool = False,
    whole: bool = False,
    optional: bool = False,
    signed: bool = False,
    **limits: float,
) -> None:
    """Raise unless `value` is a finite number that an array can hold, not negative unless `signed`, within `LIMITS`."""
    if (_is_usual(value, whole) and not limits) or (optional and value is None):
        return
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise InstanceError(field, f"{value!r} is not a {'whole number' if whole else 'number'}")
    if not -sys.float_info.max <= value <= sys.float_info.max:
        raise InstanceError(field, f"{value!r} is not finite")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise InstanceError(field, f"{value!r} does not fit into 64 bits")
    if (value < 0 and not signed) or (positive and value == 0):
        raise InstanceError(field, f"{value!r} is {'not positive' if positive else 'negative'}")
    for name, limit in limits.items():
        holds, words = LIMITS[name]
        if not holds(value, limit):
            raise InstanceError(field, f"{value!r} is {words} {limit:g}")


def require_counts(**values: object) -> None:
    """Raise unless the values, by their names, are positive whole numbers."""
    for name, value in values.items():
        require_number(value, name, positive=True, whole=True)


def require_share(value: object, field: str, *, positive: bool = False) -> None:
    """Raise unless `value` is a number from 0, or above it, to 1."""
    require_number(value, field, positive=positive, most=1)


def require_count(count: object, field: str) -> None:
    """Raise unless `count` is a number of devices within the limit: a mistyped one must not exhaust the memory."""
    require_number(count, field, whole=True)
    DEVICES.check(plain(count), field)


def require_unique(values: Sequence[Hashable], field: str, of: str = "") -> None:
    """Raise at the first value that was there before: ``field[i]of: value is a duplicate``."""
    if len(set(values)) == len(values):
        return
    seen: set[Hashable] = set()
    for i, value in enumerate(values):
        if value in seen:
            raise InstanceError(f"{field}[{i}]{of}", f"{value!r} is a duplicate")
        seen.add(value)


def require_text(value: object, field: str, *, optional: bool = False, empty: bool = False) -> None:
    """Raise unless `value` is a string, and not an empty one unless it may be."""
    if (not isinstance(value, str) or not (value or empty)) and not (optional and value is None):
        raise InstanceError(field, f"{value!r} is not a name")


def require_flag(value: object, field: str, *, optional: bool = False) -> None:
    """Raise unless `value` is true or false."""
    if not isinstance(value, bool) and not (optional and value is None):
        raise InstanceError(field, f"{value!r} is not true or false")


def require_choice(value: object, field: str, choices: Iterable[str]) -> None:
    """Raise unless `value` is one of the words."""
    if not isinstance(value, str) or value not in choices:
        raise InstanceError(field, unknown(value, choices))


def require_kind(value: object, field: str, kinds: tuple[Any, ...], *, optional: bool = False) -> None:
    """Raise unless `value` is of one of some dataclasses; the error says how one is made."""
    if not isinstance(value, kinds) and not (optional and value is None):
        call = f"{kinds[0].__name__}({', '.join(required(kinds[0]) or [fields(kinds[0])[0].name])})"
        raise InstanceError(field, f"{brief(value)} is no {' or '.join(x.__name__ for x in kinds)}; write {call}")


def required(kind: Any) -> list[str]:
    """Return the fields of a dataclass that have to be given."""
    return [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]


def limited(default: Any, **words: Any) -> Any:
    """Return a dataclass field with that default, and what else its metadata say: see `check_fields`."""
    return field(default=default, metadata=words)


Bounds = tuple[tuple[Callable[[Any], Any], str], ...]
"""What must hold of every entry, and what is said of the first of which it does not."""
AMOUNT: Bounds = ((np.isfinite, "is not finite"), (lambda x: x >= 0, "is negative"))
POSITIVE: Bounds = ((lambda x: x > 0, "is not positive"),)
TIMES: Bounds = ((lambda x: ~np.isnan(x), "is not a number"), (lambda x: x >= 0, "is negative"))
"""Seconds, infinite where there is no such time."""
SHARE: Bounds = (*AMOUNT, (lambda x: x <= 1, "is more than 1"))


NONE: Any = ()
"""The default of an array field that may have no entry."""


def array(
    *size: str | None,
    holds: Bounds = (),
    of: str = "",
    what: str = "",
    usual: Any = None,
    null: str = "",
    ascending: bool = False,
) -> dict[str, Any]:
    """Return the metadata of an array field, which `check_fields` and documents go by.

    Args:
        size: of each axis the field before it that is as long, `None` where any length will do.
        holds: of every entry.
        of: the field that the entries are indices into, whose members are called `what`.
        usual: every entry of an array that is not given.
        null: ``infinite`` if JSON has null where an entry of a matrix is infinite.
        ascending: whether no entry is below the one before it.
    """
    some = {"null": null, "ascending": ascending}
    known = {"size": size, "holds": holds, "of": of, "what": what, "usual": usual}
    return known | {name: value for name, value in some.items() if value}


def check_fields(owner: Any) -> None:
    """Check the fields of a frozen dataclass by types and metadata; make tuples of sequences and freeze arrays.

    Texts are not empty, numbers finite and not negative. The metadata of a field say more: ``positive``, ``signed``,
    those of `LIMITS`, ``unique``, ``ascending``, ``empty`` (texts may be), ``choices``, ``later`` (documents leave
    out what is empty or `None`), or of an array what `array` says. A default is right.
    """
    for name, usual, check, make in _rules(type(owner)):  # type: ignore[arg-type] # a type is hashable
        value = getattr(owner, name)
        if value is usual and check is not None:
            continue
        if isinstance(value, np.generic):
            value = plain(value)
            object.__setattr__(owner, name, value)
        if check is not None:
            check(value, name)
        elif make is not None:
            object.__setattr__(owner, name, make(owner, value))


class Checked:
    """What frozen dataclasses derive from of which `check_fields` is all that has to be checked."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self)


Rule = tuple[str, Any, Callable[[Any, str], None] | None, Callable[[Any, Any], Any] | None]
"""A field; its default; what checks its value and the name; or what makes what is kept of the owner and the value."""


@cache
def _rules(cls: type) -> list[Rule]:
    """Return the rules of the fields of a class that have one."""
    found: list[Rule] = []
    for f in (f for f in fields(cls) if f.init):
        kind, meta = str(f.type).removesuffix(" | None"), f.metadata
        optional = kind != f.type
        check: Callable[[Any, str], None] | None = None
        make: Callable[[Any, Any], Any] | None = None
        if "choices" in meta:
            check = partial(require_choice, choices=meta["choices"])
        elif kind in ("int", "float"):
            words = {name: meta[name] for name in ("positive", "signed", *LIMITS) if name in meta}
            check = partial(require_number, whole=kind == "int", optional=optional, **words)
        elif kind == "bool":
            check = partial(require_flag, optional=optional)
        elif kind == "str":
            check = partial(require_text, optional=optional, empty=meta.get("empty", False))
        elif kind.startswith("tuple["):
            make = partial(_items, f.name, kind[6:-6], meta, _dataclasses(cls, f.name))
        elif kind in _DTYPES:
            make = partial(_array, f.name, _DTYPES[kind], meta or array(None))
        elif kinds := _dataclasses(cls, f.name):
            check = partial(require_kind, kinds=kinds, optional=optional)
        found.append((f.name, f.default, check, make))
    return found


def _dataclasses(cls: type, name: str) -> tuple[type, ...]:
    """Return the dataclasses that a field, or each item of its tuple, may be of; none if it may be something else."""
    hint = get_type_hints(cls)[name]
    hint = get_args(hint)[0] if get_origin(hint) is tuple else hint
    kinds = tuple(kind for kind in get_args(hint) or (hint,) if kind is not type(None))
    return kinds if all(map(is_dataclass, kinds)) else ()


def _items(
    name: str, kind: str, meta: Mapping[str, Any], kinds: tuple[type, ...], owner: Any, value: Any
) -> tuple[Any, ...]:
    found = value if type(value) is tuple and _PLAIN.issuperset(map(type, value)) else listed(value, name)
    if not found:
        return found
    if kind == "str" and not meta.get("empty") and (set(map(type, found)) - {str} or not all(found)):
        for i, x in enumerate(found):
            require_text(x, f"{name}[{i}]")
    if kind in ("int", "float"):
        whole, positive = kind == "int", meta.get("positive", False)
        for i, x in enumerate(found):
            if not _is_usual(x, whole):
                require_number(x, f"{name}[{i}]", whole=whole, positive=positive)
            if i and "ascending" in meta and x <= found[i - 1]:
                raise InstanceError(f"{name}[{i}]", f"{x!r} does not ascend")
    if kinds and not all(isinstance(x, kinds) for x in found):
        for i, x in enumerate(found):
            require_kind(x, f"{name}[{i}]", kinds)
    if "unique" in meta:
        require_unique(found, name)
    return found


def _array(name: str, dtype: type, meta: Mapping[str, Any], owner: Any, value: Any) -> NDArray[Any]:
    shape = tuple(None if x is None else len(getattr(owner, x)) for x in meta["size"])
    size = value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, list | tuple) else 1
    if meta["usual"] is not None and (value is None or not size):
        value = np.full([n or 0 for n in shape], meta["usual"])
    if "null" in meta and isinstance(value, list | tuple):
        value = [[np.inf if x is None else x for x in row] if isinstance(row, list) else row for row in value]
    found = frozen(value, dtype, name, shape, meta["size"])
    for ok, problem in meta["holds"]:
        require(ok(found), found, name, problem)
    if "ascending" in meta:
        require(np.diff(found, prepend=0) >= 0, found, name, "does not ascend")
    if meta["of"]:
        count = len(getattr(owner, meta["of"]))
        require((found >= 0) & (found < count), found, name, f"is not one of the {count} {meta['what']}")
    return found


_DTYPES = {"FloatArray": np.float64, "IntArray": np.int32, "BoolArray": np.bool_}
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
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        for i, entry in enumerate(value):
            yield from _entries(entry, f"{field}[{i}]")
    else:
        yield field, value
