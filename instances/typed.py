"""Read values by their types from parsed JSON or TOML: lists as tuples, objects as dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache, partial
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .arrays import require_flag, require_number, require_text
from .errors import InstanceError, brief, within

T = TypeVar("T")
Read = Callable[[Any, str], Any]
"""What makes a value of data, and of the name of its field for errors."""


class Typed:
    """Read values of types: those that `known` says, any, literals, tuples, mappings by text, and dataclasses.

    Of a union with `None` the rest is one type. Errors name the field and the value.
    """

    def __init__(self, known: Mapping[Any, Read]) -> None:
        self._known = {Any: lambda data, field: data, **known}

    def read(self, kind: Any, data: Any, field: str = "") -> Any:
        """Return the value of a type that data hold."""
        if kind not in self._known:
            self._known[kind] = self._made(kind)
        return self._known[kind](data, field)

    def build(self, kind: Callable[..., T], data: Any, field: str = "") -> T:
        """Return a dataclass of a table that has no other keys than its fields, and all that have no default."""
        if not isinstance(data, Mapping):
            raise InstanceError(field, f"{brief(data)} is not a table")
        hints, needed = _hints(kind)
        with within(field):
            for name in (x for x in data if x not in hints):
                raise InstanceError(name, f"is unknown; known are {', '.join(hints)}")
            for name in (x for x in needed if x not in data):
                raise InstanceError(name, "is missing")
            return kind(**{name: self.read(hints[name], value, name) for name, value in data.items()})

    def _made(self, kind: Any) -> Read:
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Literal:
            return partial(_choice, inner)
        if origin in (Union, UnionType):
            (some,) = (x for x in inner if x is not type(None))
            return lambda data, field: None if data is None else self.read(some, data, field)
        if origin is tuple:
            return partial(self._items, inner)
        return partial(self._table, inner[1]) if inner else partial(self.build, kind)

    def _items(self, kinds: tuple[Any, ...], data: Any, field: str) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple) or (kinds[-1] is not ... and len(data) != len(kinds)):
            raise InstanceError(field, f"{brief(data)} is not a list" + f" of {len(kinds)}" * (kinds[-1] is not ...))
        each = kinds[:1] * len(data) if kinds[-1] is ... else kinds
        return tuple(self.read(kind, x, f"{field}[{i}]") for i, (kind, x) in enumerate(zip(each, data, strict=True)))

    def _table(self, kind: Any, data: Any, field: str) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise InstanceError(field, f"{brief(data)} is not a table")
        return {name: self.read(kind, x, f"{field}.{name}") for name, x in data.items()}


@cache
def _hints(kind: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the types of the fields of a dataclass, and the names of those without a default."""
    hints, known = get_type_hints(kind), fields(kind)
    needed = [x.name for x in known if x.default is MISSING and x.default_factory is MISSING]
    return {x.name: hints[x.name] for x in known}, needed


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
"""Read what this package wrote, numbers as they are: those of a state are not negative."""
SETTINGS = Typed(_plain(signed=True) | {float: _float})
"""Reads what people write: a whole number will do for a float."""
