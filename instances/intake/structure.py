"""JSON and TOML as Python's values."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable
from math import isfinite
from os import PathLike, fspath
from typing import Any

from ..errors import DEPTH, JSON_BYTES, InstanceError
from .content import read_text


def parse_json(text: str) -> Any:
    """Parse strict JSON: no NaN, no infinity, no repeated key, no more and no deeper than the limits.

    Raises:
        InstanceError: with line and column, or the offending key.
    """
    _not_too_much(text)
    try:
        data = json.loads(text, parse_constant=_refuse, parse_float=_finite("JSON"), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise InstanceError("JSON", f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise InstanceError("JSON", "is nested too deeply") from None
    except InstanceError:
        raise
    except ValueError:  # the interpreter's limit on digits
        raise InstanceError("JSON", "a whole number has thousands of digits") from None
    _not_too_deep(data, "JSON")
    return data


def read_json(path: str | PathLike[str]) -> Any:
    """Return the values that a file of strict JSON holds.

    Raises:
        InstanceError: naming the file and what is wrong with it.
    """
    text = read_text(path, limit=JSON_BYTES)
    try:
        return parse_json(text)
    except InstanceError as error:
        raise error.of(str(fspath(path))) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML: no NaN, no infinity, no more and no deeper than the limits.

    Raises:
        InstanceError: with line and column.
    """
    _not_too_much(text)
    try:
        data = tomllib.loads(text, parse_float=_finite("TOML"))
    except InstanceError:
        raise
    except ValueError as error:
        raise InstanceError("TOML", str(error).lower()) from None
    except RecursionError:
        raise InstanceError("TOML", "is nested too deeply") from None
    _not_too_deep(data, "TOML")
    return data


def _not_too_much(text: str) -> None:
    most = JSON_BYTES.value
    if len(text) > most // 4:  # a character has up to four bytes
        JSON_BYTES.check(len(text.encode(errors="surrogatepass")), "content", most)


def _not_too_deep(data: Any, what: str) -> None:
    """Raise if lists and objects are inside one another beyond the limit: whoever walks them does so by recursion."""
    most, depth = DEPTH.value, 0
    level = [data] if isinstance(data, list | dict) else []
    while level:
        depth += 1
        if depth > most:
            raise InstanceError(what, f"is nested too deeply: more than {most} {DEPTH.unit}")
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]


def _refuse(name: str) -> None:
    raise InstanceError("JSON", f"{name} is not a number")


def _finite(what: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = float(text)
        if not isfinite(value):
            raise InstanceError(what, f"{text} is {'too large' if text[-1:].isdigit() else 'not'} a number")
        return value

    return read


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InstanceError(key, "is given twice")
    return result
