"""JSON documents: a value with its schema version, its kind and its content hash, to and fro, and its JSON Schema.

All is driven by the dataclass fields: a new field is written, read, checked and described without a line here. Arrays
become lists (an infinite entry becomes null where the field's metadata say so), unions carry a ``kind``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .arrays import require_choice
from .errors import InstanceError, brief
from .kinds import DOCUMENTS

SCHEMA_VERSION = 1


def dump(value: Any) -> str:
    """Return `value` as a JSON document of one line."""
    kind = _kind(value)
    data = to_data(value)
    head = {"schema_version": SCHEMA_VERSION, "kind": kind, "content_hash": _hash(data)}
    return json.dumps(head | data, allow_nan=False)


def save(value: Any, path: str | PathLike[str]) -> None:
    """Write a problem or a plan to a file, whole or not at all; `load` and `read` take it back.

    Raises:
        InstanceError: naming the file, if it cannot be written.
    """
    from .outlet import write_whole

    write_whole({path: f"{dump(value)}\n".encode()})


def load(source: str | PathLike[str]) -> Any:
    """Return the problem or the plan in a gangplan document: what `dump` and `save` wrote, or one written by hand.

    Args:
        source: the text of the document, or the path of its file. Text has a brace or a line break; a path has none.

    Raises:
        InstanceError: naming file, field and the value found. A file of another format is for `read`.
    """
    from .errors import JSON_BYTES, in_file
    from .intake import file_name, parse_json, read_text

    if isinstance(source, str) and (not source.strip() or any(c in source for c in '{}[]"\n')):
        return from_document(parse_json(source))
    path = file_name(source)
    if isinstance(source, str) and not (Path(path).suffix or Path(path).exists()):
        raise InstanceError("document", f"{source!r} is neither a document nor the name of a file")
    text = read_text(path, limit=JSON_BYTES)
    with in_file(path):
        if not text.lstrip().startswith(("{", "[")):
            raise InstanceError("content", f"is no gangplan document; for other formats: gangplan.read({path!r})")
        data = parse_json(text)
        if isinstance(data, dict) and "schema_version" not in data:
            if "plan" in data and "status" in data:  # what `gangplan solve --json` prints
                return from_document(data["plan"])
            raise InstanceError("schema_version", f"is missing; for other formats: gangplan.read({path!r})")
        return from_document(data)


def from_document(data: Any) -> Any:
    """Build the value of a parsed document; see `load`."""
    if not isinstance(data, dict):
        raise InstanceError("document", "is not a JSON object")
    body = dict(data)
    version, kind, stated = (body.pop(key, None) for key in ("schema_version", "kind", "content_hash"))
    if isinstance(version, bool) or version != SCHEMA_VERSION:
        raise InstanceError("schema_version", f"{version!r} is not {SCHEMA_VERSION}")
    require_choice(kind, "kind", DOCUMENTS)
    value = from_data(DOCUMENTS[kind], body)
    if stated is not None and stated != _hash(body) and stated != content_hash(value):
        raise InstanceError("content_hash", f"{stated!r} does not match the content: the document was altered or cut")
    return value


def content_hash(value: Any) -> str:
    """Return ``sha256:...`` of the value's fields, the same on every machine."""
    _kind(value)
    return _hash(to_data(value))


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of one kind of document."""
    body = form(DOCUMENTS[kind]).schema
    head = {
        "schema_version": {"const": SCHEMA_VERSION},
        "kind": {"const": kind},
        "content_hash": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"gangplan {kind}",
        **body,
        "properties": head | body["properties"],
        "required": ["schema_version", "kind", *body["required"]],
    }


def _kind(value: Any) -> str:
    """Return the kind of document that `value` makes, told by the name of its type."""
    for kind in DOCUMENTS:
        if DOCUMENTS.attribute(kind) == type(value).__name__:
            return kind
    hint = "; write result.plan" if type(value).__name__ == "Result" else ""
    raise InstanceError("document", f"{type(value).__name__} is no problem and no plan{hint}")


def _hash(data: Any) -> str:
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


KINDS = {"TreeTopology": "tree", "RampTopology": "ramp", "Pool": "pool", "NodePool": "nodes"}
"""The ``kind`` that members of unions carry in JSON, by the names of their types."""


def to_data(value: Any) -> Any:
    """Return `value` (a dataclass of this package, or a part of one) as JSON-ready data."""
    cls: type = type(value)
    names = _names(cls)
    if names is not None:
        entries = ((name, getattr(value, name), later) for name, later in names)
        return _tag(cls) | {name: to_data(entry) for name, entry, later in entries if not later or len(entry)}
    if isinstance(value, np.ndarray):
        data = value.tolist()
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return [[x if np.isfinite(x) else None for x in row] for row in data]
        return data
    if isinstance(value, tuple):
        return [to_data(x) for x in value] if value and is_dataclass(value[0]) else list(value)
    return value


@cache
def _names(cls: type) -> tuple[tuple[str, bool], ...] | None:
    """Return the fields, and which came later: those are left out where empty, so that hashes stay as they were."""
    return tuple((f.name, "later" in f.metadata) for f in fields(cls)) if is_dataclass(cls) else None


def _tag(cls: type) -> dict[str, Any]:
    """Return what tells a member of a union from the others, nothing for other classes."""
    return {"kind": KINDS[cls.__name__]} if cls.__name__ in KINDS else {}


def from_data(cls: type, data: Any) -> Any:
    """Build a `cls` from what `to_data` made of one."""
    return form(cls).read(data)


class Form(NamedTuple):
    """How values of a type are read from JSON, and their JSON Schema (2020-12)."""

    read: Callable[[Any], Any]
    schema: dict[str, Any]
    plain: bool = False


@cache
def form(cls: type) -> Form:
    """Return the form of a dataclass, which is that of its fields."""
    hints = get_type_hints(cls)
    parts = {f.name: _form(hints[f.name], f.metadata) for f in fields(cls)}
    required = [f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    tag = _tag(cls)

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise InstanceError("", f"{brief(data)} is not an object")
        values = {}
        for name, entry in data.items():
            if name in parts:
                values[name] = entry if parts[name].plain else _inside(parts[name].read, entry, name)
            elif name not in tag:
                raise InstanceError(name, "is not a known field")
        for name in required:
            if name not in values:
                raise InstanceError(name, "is missing")
        return cls(**values)

    schema = {
        "type": "object",
        "properties": {x: {"const": kind} for x, kind in tag.items()} | {x: part.schema for x, part in parts.items()},
        "required": [*tag, *required],
        "additionalProperties": False,
    }
    return Form(read, schema)


def _inside(read: Callable[[Any], Any], data: Any, place: str) -> Any:
    try:
        return read(data)
    except InstanceError as error:
        raise error.within(place) from None


_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_ENTRIES = {np.float64: "number", np.int32: "integer", np.bool_: "boolean"}


def _form(hint: Any, metadata: Mapping[str, Any]) -> Form:
    """Return the form of a field by its type; the metadata are those of `arrays.array`."""
    if get_origin(hint) in (Union, UnionType):
        return _any_of(get_args(hint), [_form(member, metadata) for member in get_args(hint)])
    if hint in _SCALARS:
        return Form(_same, {"type": _SCALARS[hint]}, plain=True)
    if get_origin(hint) in (np.ndarray, NDArray):  # which NumPy 2.5 no longer takes for the same
        entry = get_args(hint)[-1]
        kind = _ENTRIES[(get_args(entry) or (entry,))[0]]
        schema: dict[str, Any] = {"type": [kind, "null"] if "null" in metadata else kind}
        for _ in metadata.get("size", "1"):
            schema = {"type": "array", "items": schema}
        return Form(_infinite, schema) if "null" in metadata else Form(_same, schema, plain=True)
    if get_origin(hint) is tuple:
        item = _form(get_args(hint)[0], {})

        def listed(data: Any) -> Any:
            if not isinstance(data, list):
                raise InstanceError("", f"{brief(data)} is not a list")
            return data if item.plain else [_inside(item.read, x, f"[{i}]") for i, x in enumerate(data)]

        return Form(listed, {"type": "array", "items": item.schema})
    return form(hint)


def _same(data: Any) -> Any:
    return data


def _infinite(data: Any) -> Any:
    if not isinstance(data, list) or not any(isinstance(row, list) and None in row for row in data):
        return data
    return [[np.inf if x is None else x for x in row] if isinstance(row, list) else row for row in data]


def _any_of(hints: tuple[Any, ...], members: list[Form]) -> Form:
    """Return the form of a value of any of some types: null, or the one of which the data say the kind."""
    pairs = [(x, member) for x, member in zip(hints, members, strict=True) if x is not type(None)]
    known = {KINDS[x.__name__]: member.read for x, member in pairs} if len(pairs) > 1 else {}

    def read(data: Any) -> Any:
        if data is None and len(pairs) < len(hints):
            return None
        if not known:
            return pairs[0][1].read(data)
        kind: Any = data.get("kind") if isinstance(data, dict) else data
        require_choice(kind, "kind", known)
        return known[kind](data)

    return Form(read, {"anyOf": [member.schema for member in members]}, plain=all(member.plain for member in members))
