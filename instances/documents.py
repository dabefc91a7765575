"""JSON documents: a value with its schema version, its kind and its content hash, to and fro, and its JSON Schema.

All is driven by the dataclass fields: a new field is written, read, checked and described without a line here. Arrays
become lists (an infinite entry becomes null where the field's metadata say so), unions carry a ``kind``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .arrays import require_choice, required
from .errors import InstanceError
from .kinds import DOCUMENTS
from .typed import Typed, same

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
    hint = "; write result.plan" if type(value).__name__ == "Result" else ""
    raise InstanceError("document", f"{type(value).__name__} is no problem and no plan{hint}")


def _hash(data: Any) -> str:
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


KINDS = {"TreeTopology": "tree", "RampTopology": "ramp", "Pool": "pool", "NodePool": "nodes"}
KINDS |= {"Transformer": "transformer", "MeasuredLayers": "measured"}
"""The ``kind`` that members of unions carry in JSON, by the names of their types."""


def _absent(value: Any) -> bool:
    """Return whether a field that came later says nothing."""
    return value is None or (hasattr(value, "__len__") and not len(value))


def to_data(value: Any) -> Any:
    """Return `value` (a dataclass of this package, or a part of one) as JSON-ready data."""
    cls: type = type(value)
    names = _names(cls)
    if names is not None:
        entries = ((name, getattr(value, name), later) for name, later in names)
        return _tag(cls) | {name: to_data(entry) for name, entry, later in entries if not (later and _absent(entry))}
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
    return _DOCUMENT.read(cls, data)


_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_ENTRIES = {np.float64: "number", np.int32: "integer", np.bool_: "boolean"}
_DOCUMENT = Typed(dict.fromkeys(_SCALARS, same), KINDS)


def schema(cls: type) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a dataclass."""
    hints, tag = get_type_hints(cls), _tag(cls)
    return {
        "type": "object",
        "properties": {x: {"const": kind} for x, kind in tag.items()}
        | {f.name: _schema(hints[f.name], f.metadata) for f in fields(cls)},
        "required": [*tag, *required(cls)],
        "additionalProperties": False,
    }


def _schema(hint: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a field by its type; the metadata are those of `arrays.array`."""
    if get_origin(hint) in (Union, UnionType):
        return {"anyOf": [_schema(member, metadata) for member in get_args(hint)]}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0], {})}
    if get_origin(hint) not in (np.ndarray, NDArray):  # which NumPy 2.5 no longer takes for the same
        return schema(hint)
    entry = get_args(hint)[-1]
    kind = _ENTRIES[(get_args(entry) or (entry,))[0]]
    found: dict[str, Any] = {"type": [kind, "null"] if "null" in metadata else kind}
    for _ in metadata.get("size", "1"):
        found = {"type": "array", "items": found}
    return found
