"""Read the fields of parsed JSON objects, or say which one is wrong."""

from __future__ import annotations

from math import nan
from typing import Any

from ..arrays import plain, require_number
from ..errors import InstanceError

MISSING = object()


def number(record: dict[str, Any], key: str, where: str = "", default: Any = MISSING, *, whole: bool = False) -> Any:
    """Return a finite, non-negative number, or the default where the key is missing."""
    value = plain(record.get(key, default))
    field = f"{where}.{key}" if where else key
    if value is MISSING:
        raise InstanceError(field, "is missing")
    if value is not default:
        require_number(value, field, whole=whole)
    return value


def value_of(word: str) -> float | str:
    """Return the number that a word is, else the word."""
    try:
        return float(word)
    except ValueError:
        return word


def as_number(word: str) -> float:
    """Return the number that a word is, NaN for what is none."""
    value = value_of(word)
    return value if isinstance(value, float) else nan


def whole_number(word: str, field: str, least: int = 0, digits: int = 15) -> int:
    """Return the whole number of digits that a word is, from `least` on."""
    if not word.isascii() or not word.isdigit() or len(word) > digits or int(word) < least:
        raise InstanceError(field, f"{word!r} is not a whole number of {least} or more")
    return int(word)


def flag(record: dict[str, Any], key: str, where: str, default: bool) -> bool:
    """Return true or false, which files write so or as 1 and 0."""
    value = plain(record.get(key, default))
    if not isinstance(value, int) or value not in (0, 1):
        raise InstanceError(f"{where}.{key}", f"{value!r} is not true or false")
    return bool(value)


def label(record: dict[str, Any], key: str, where: str) -> int | str:
    """Return an id, a whole number or a name."""
    if key not in record:
        raise InstanceError(f"{where}.{key}", "is missing")
    value = plain(record[key])
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise InstanceError(f"{where}.{key}", f"{value!r} is not a whole number or a name")
    return value


def objects(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of objects."""
    if key not in record:
        raise InstanceError(key, "is missing")
    items = record[key]
    if not isinstance(items, list):
        raise InstanceError(key, f"{items!r} is not a list")
    for i, item in enumerate(items):
        if not isinstance(item, dict):
            raise InstanceError(f"{key}[{i}]", f"{item!r} is not an object")
    return items


def classes(labels: list[int | str | None]) -> list[int]:
    """Return class numbers from 0, in order of appearance; -1 for no label."""
    known: dict[int | str, int] = {}
    return [-1 if x is None else known.setdefault(x, len(known)) for x in labels]


class Index:
    """Positions of ops by id; names each id once."""

    def __init__(self) -> None:
        self.position: dict[str, int] = {}

    def add(self, name: int | str, where: str) -> None:
        """Give the next position to an op."""
        if str(name) in self.position:
            raise InstanceError(where, f"{name!r} is a duplicate")
        self.position[str(name)] = len(self.position)

    def find(self, name: int | str, where: str) -> int:
        """Return the position of an op."""
        try:
            return self.position[str(name)]
        except KeyError:
            raise InstanceError(where, f"{name!r} is not an op of the graph") from None
