"""Read values by their types from parsed JSON or TOML: lists as tuples, objects as dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from itertools import repeat
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .arrays import require_choice, require_flag, require_number, require_text, required
from .errors import InstanceError, brief, within

T = TypeVar("T")
Read = Callable[[Any, str], Any]
"""What makes a value of data, and of the name of its field for errors."""


def same(data: Any, field: str) -> Any:
    """Return a value that whoever is made of it checks."""
    return data


class Typed:
    """Read values of types: those that `known` says, any, literals, tuples, mappings by text, and dataclasses.

    Of a union with `None` the rest is one type, or dataclasses: then `kinds` has what their ``kind`` is in the data, by
    the names of their types. Arrays are as they are. Errors name the field and the value.
    """

    def __init__(self, known: Mapping[Any, Read], kinds: Mapping[str, str] | None = None) -> None:
        self._known = {Any: same, **known}
        self._kinds = kinds or {}

    def read(self, kind: Callable[..., T], data: Any, field: str = "") -> T:
        """Return the value of a type that data hold.

        Data of a dataclass have no other keys than its fields, and all that have no default.
        """
        found: T = self._reader(kind)(data, field)
        return found

    def _reader(self, kind: Any) -> Read:
        if kind not in self._known:
            self._known[kind] = self._made(kind)
        return self._known[kind]

    def _made(self, kind: Any) -> Read:
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Literal:
            return partial(_choice, inner)
        if origin in (np.ndarray, NDArray):  # which NumPy 2.5 no longer takes for the same
            return same
        if origin in (Union, UnionType):
            return self._any_of([x for x in inner if x is not type(None)], type(None) in inner)
        if origin is tuple:
            return partial(self._items, inner)
        return partial(self._table, inner[1]) if inner else self._dataclass(kind)

    def _any_of(self, some: list[Any], optional: bool) -> Read:
        if len(some) == 1:
            one = self._reader(some[0])
            return one if one is same else lambda data, field: None if data is None else one(data, field)
        known = {self._kinds[x.__name__]: self._reader(x) for x in some}

        def read(data: Any, field: str) -> Any:
            if data is None and optional:
                return None
            kind: Any = data.get("kind") if isinstance(data, Mapping) else data
            require_choice(kind, f"{field}.kind", known)
            return known[kind](data, field)

        return read

    def _dataclass(self, kind: Any) -> Read:
        hints = get_type_hints(kind)
        needed = required(kind)
        by = {x.name: ROWS if self is STATE and "signed" in x.metadata else self for x in fields(kind)}
        readers = {name: typed._reader(hints[name]) for name, typed in by.items()}
        known = {*readers, "kind"} if kind.__name__ in self._kinds else {*readers}

        def read(data: Any, field: str) -> Any:
            if not isinstance(data, Mapping):
                raise InstanceError(field, f"{brief(data)} is not a table")
            with within(field):
                for name in (x for x in data if x not in known):
                    raise InstanceError(f"{name}", f"is unknown; known are {', '.join(readers)}")
                for name in (x for x in needed if x not in data):
                    raise InstanceError(name, "is missing")
                return kind(**{name: readers[name](x, name) for name, x in data.items() if name in readers})

        return read

    def _items(self, kinds: tuple[Any, ...], data: Any, field: str) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple) or (kinds[-1] is not ... and len(data) != len(kinds)):
            raise InstanceError(field, f"{brief(data)} is not a list" + f" of {len(kinds)}" * (kinds[-1] is not ...))
        first = self._reader(kinds[0])
        if kinds[-1] is ... and first is same:
            return tuple(data)
        each = repeat(first, len(data)) if kinds[-1] is ... else map(self._reader, kinds)
        return tuple(read(x, f"{field}[{i}]") for i, (read, x) in enumerate(zip(each, data, strict=True)))

    def _table(self, kind: Any, data: Any, field: str) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise InstanceError(field, f"{brief(data)} is not a table")
        return {name: self.read(kind, x, f"{field}.{name}") for name, x in data.items()}


def _choice(words: tuple[Any, ...], data: Any, field: str) -> Any:
    if data not in words:
        raise InstanceError(field, f"{data!r} is not one of {', '.join(map(repr, words))}")
    return data


def _checked(check: Callable[..., None], **how: bool) -> Read:
    def read(data: Any, field: str) -> Any:
        check(data, field, **how)
        return data

    return read


def _float(data: Any, field: str) -> float:
    require_number(data, field, signed=True)
    return float(data)


def _plain(signed: bool) -> dict[Any, Read]:
    return {
        int: _checked(require_number, whole=True, signed=signed),
        float: _checked(require_number, signed=signed),
        str: _checked(require_text, empty=True),
        bool: _checked(require_flag),
    }


STATE, ROWS = Typed(_plain(signed=False)), Typed(_plain(signed=True))
"""Read what this package wrote, numbers as they are: of a state not negative, but in fields that are ``signed``."""
SETTINGS = Typed(_plain(signed=True) | {float: _float})
"""Reads what people write: a whole number will do for a float."""
