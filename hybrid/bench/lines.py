"""Dataclasses as lines of JSON: written whole, read with errors that name file and line."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from gangplan.instances import InstanceError
from gangplan.instances.intake import parse_json, read_text

T = TypeVar("T")


def line_of(value: Any) -> bytes:
    """Return a dataclass of numbers, words, lists and dicts as a line of JSON."""
    return json.dumps(asdict(value), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_lines(path: Path, cls: type[T]) -> list[T]:
    """Return the whole lines of a file, oldest first, none if there is no file; what was cut off is no line."""
    if not path.exists():
        return []
    names = {field.name: str(field.type) for field in fields(cls)}  # type: ignore[arg-type]
    needed = {field.name for field in fields(cls) if field.default is MISSING}  # type: ignore[arg-type]
    whole, _, _ = read_text(path, empty=True).rpartition("\n")
    found = []
    for number, line in enumerate(whole.splitlines()):
        try:
            data = parse_json(line)
            if not isinstance(data, dict) or not needed <= data.keys() <= names.keys():
                raise InstanceError("", f"has not the fields {', '.join(names)}")
            for name, value in data.items():
                _check(name, names[name], value)
            found.append(cls(**data))
        except InstanceError as error:
            raise error.within(f"line {number + 1}").of(str(path)) from None
    return found


_TYPES: dict[str, Any] = {"str": str, "int": int, "float": (int, float), "float | None": (int, float, type(None))}


def _check(name: str, hint: str, value: Any) -> None:
    kind = _TYPES.get(hint, dict if hint.startswith("Mapping") else list)
    if not isinstance(value, kind) or (isinstance(value, bool) and hint != "bool"):
        raise InstanceError(name, f"{value!r} is not of type {hint}")
