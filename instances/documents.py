"""JSON documents: a value with its schema version, its kind and its content hash, to and fro, and its JSON Schema.

All is driven by the dataclass fields: a new field is written, read, checked and described without a line here. Arrays
become lists (an infinite entry becomes null where the field's metadata say so), unions carry a ``kind``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from .errors import InstanceError, unknown
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
    from .errors import JSON_BYTES
    from .intake import parse_json, read_text

    if isinstance(source, str) and (not source.strip() or any(c in source for c in '{}[]"\n')):
        return from_document(parse_json(source))
    path = str(fspath(source))
    if isinstance(source, str) and not (Path(path).suffix or Path(path).exists()):
        raise InstanceError("document", f"{source!r} is neither a document nor the name of a file")
    text = read_text(path, limit=JSON_BYTES)
    try:
        if not text.lstrip().startswith(("{", "[")):
            raise InstanceError("content", f"is no gangplan document; for other formats: gangplan.read({path!r})")
        data = parse_json(text)
        if isinstance(data, dict) and "schema_version" not in data:
            if "plan" in data and "status" in data:  # what `gangplan solve --json` prints
                return from_document(data["plan"])
            raise InstanceError("schema_version", f"is missing; for other formats: gangplan.read({path!r})")
        return from_document(data)
    except InstanceError as error:
        raise error.of(path) from None


def from_document(data: Any) -> Any:
    """Build the value of a parsed document; see `load`."""
    if not isinstance(data, dict):
        raise InstanceError("document", "is not a JSON object")
    body = dict(data)
    version, kind, stated = (body.pop(key, None) for key in ("schema_version", "kind", "content_hash"))
    if isinstance(version, bool) or version != SCHEMA_VERSION:
        raise InstanceError("schema_version", f"{version!r} is not {SCHEMA_VERSION}")
    if not isinstance(kind, str) or kind not in DOCUMENTS:
        raise InstanceError("kind", unknown(kind, DOCUMENTS))
    value = from_data(DOCUMENTS[kind], body)
    if stated is not None and stated != content_hash(value):
        raise InstanceError("content_hash", f"{stated!r} does not match the content: the document was altered or cut")
    return value


def content_hash(value: Any) -> str:
    """Return ``sha256:...`` of the value's fields, the same on every machine."""
    return _hash(to_data(value))


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of one kind of document."""
    body = schema(DOCUMENTS[kind])
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
    raise InstanceError("document", f"{type(value).__name__} is no problem and no plan")


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
        return _tag(cls) | {name: to_data(getattr(value, name)) for name in names}
    if isinstance(value, np.ndarray):
        data = value.tolist()
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return [[x if np.isfinite(x) else None for x in row] for row in data]
        return data
    if isinstance(value, tuple):
        return [to_data(x) for x in value]
    return value


@cache
def _names(cls: type) -> tuple[str, ...] | None:
    """Return the names of the fields of a dataclass, `None` of anything else."""
    return tuple(f.name for f in fields(cls)) if is_dataclass(cls) else None


def from_data(cls: type, data: Any) -> Any:
    """Build a `cls` from what `to_data` made of one.

    Raises:
        InstanceError: naming the field, from `data` down, and the value found.
    """
    if not isinstance(data, dict):
        raise InstanceError("", f"{_brief(data)} is not an object")
    known = {f.name: f for f in fields(cls)}
    for name in data:
        if name not in known and not (name == "kind" and cls.__name__ in KINDS):
            raise InstanceError(name, "is not a known field")
    values = {}
    for name, f in known.items():
        if name in data:
            try:
                hint = _hints(cls)[name]
                absent = data[name] is None and type(None) in _members(hint)
                values[name] = None if absent else _read(hint, f, data[name])
            except InstanceError as error:
                raise error.within(name) from None
        elif _required(f):
            raise InstanceError(name, "is missing")
    return cls(**values)


def schema(cls: type) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what `to_data` makes of a `cls`."""
    tag = {key: {"const": name} for key, name in _tag(cls).items()}
    required = [f.name for f in fields(cls) if _required(f)]
    return {
        "type": "object",
        "properties": tag | {f.name: _describe(_hints(cls)[f.name], f) for f in fields(cls)},
        "required": [*tag, *required],
        "additionalProperties": False,
    }


def _tag(cls: type) -> dict[str, Any]:
    """Return what tells a member of a union from the others, nothing for other classes."""
    return {"kind": KINDS[cls.__name__]} if cls.__name__ in KINDS else {}


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _required(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


def _is_array(hint: Any) -> bool:
    return get_origin(hint) is np.ndarray


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _read(hint: Any, f: Field[Any], data: Any) -> Any:
    if _is_array(hint):
        if f.metadata.get("null") == "infinite" and isinstance(data, list):
            return [[np.inf if x is None else x for x in row] if isinstance(row, list) else row for row in data]
        return data
    classes = [m for m in _members(hint) if isinstance(m, type) and is_dataclass(m)]
    if len(classes) > 1:
        kind = data.get("kind") if isinstance(data, dict) else data
        known = {KINDS[cls.__name__]: cls for cls in classes}
        if not isinstance(kind, str) or kind not in known:
            raise InstanceError("kind", unknown(kind, known))
        return from_data(known[kind], data)
    if classes:
        return from_data(classes[0], data)
    if get_origin(hint) is tuple:
        if not isinstance(data, list):
            raise InstanceError("", f"{_brief(data)} is not a list")
        return tuple(_item(get_args(hint)[0], i, x) for i, x in enumerate(data))
    return data


def _item(hint: Any, i: int, data: Any) -> Any:
    if not isinstance(hint, type) or not is_dataclass(hint):
        return data
    try:
        return from_data(hint, data)
    except InstanceError as error:
        raise error.within(f"[{i}]") from None


_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}


def _describe(hint: Any, f: Field[Any]) -> dict[str, Any]:
    if _is_array(hint):
        dtype = get_args(get_args(hint)[1])[0]
        kind = {np.float64: "number", np.int32: "integer", np.bool_: "boolean"}[dtype]
        entry: dict[str, Any] = {"type": [kind, "null"] if "null" in f.metadata else kind}
        for _ in range(f.metadata.get("rank", 1)):
            entry = {"type": "array", "items": entry}
        return entry
    members = _members(hint)
    if len(members) > 1:
        return {"anyOf": [_describe(m, f) for m in members]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _describe(get_args(hint)[0], f)}
    return _SCALARS[hint] if hint in _SCALARS else schema(hint)


def _brief(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else text[:57] + "..."
