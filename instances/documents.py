"""JSON documents: a value with its schema version, its kind and its content hash."""

from __future__ import annotations

import hashlib
import json
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from .codec import from_data, schema, to_data
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
    from .intake import parse_json, read_text
    from .limits import JSON_BYTES

    if isinstance(source, str) and (not source.strip() or any(c in source for c in '{}[]"\n')):
        return from_document(parse_json(source))
    path = str(fspath(source))
    if isinstance(source, str) and not (Path(path).suffix or Path(path).exists()):
        return from_document(parse_json(source))  # a word: neither document nor file
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
