"""JSON documents: a value with its schema version, its kind and its content hash."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .codec import from_data, schema, to_data
from .errors import InstanceError
from .intake import parse_json
from .partition import (
    LatencyPlan,
    LatencyProblem,
    PartitionPlan,
    PartitionProblem,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
)
from .placement import PlacementPlan, PlacementProblem
from .schedule import SchedulePlan, ScheduleProblem

SCHEMA_VERSION = 1
DOCUMENTS: dict[str, type] = {
    "partition": PartitionProblem,
    "partition_plan": PartitionPlan,
    "latency": LatencyProblem,
    "latency_plan": LatencyPlan,
    "step": StepProblem,
    "step_plan": StepPlan,
    "stages": StagesProblem,
    "stages_plan": StagesPlan,
    "placement": PlacementProblem,
    "placement_plan": PlacementPlan,
    "schedule": ScheduleProblem,
    "schedule_plan": SchedulePlan,
}
"""The kinds of documents there are."""


def dump(value: Any) -> str:
    """Return `value` as a JSON document of one line."""
    kind = next(name for name, cls in DOCUMENTS.items() if type(value) is cls)
    data = to_data(value)
    head = {"schema_version": SCHEMA_VERSION, "kind": kind, "content_hash": _hash(data)}
    return json.dumps(head | data, allow_nan=False)


def load(text: str) -> Any:
    """Read a document that `dump` wrote, or one written by hand without a content hash.

    Raises:
        InstanceError: naming the field and the value found.
    """
    return from_document(parse_json(text))


def from_document(data: Any) -> Any:
    """Build the value of a parsed document; see `load`."""
    if not isinstance(data, dict):
        raise InstanceError("document", "is not a JSON object")
    body = dict(data)
    version, kind, stated = (body.pop(key, None) for key in ("schema_version", "kind", "content_hash"))
    if isinstance(version, bool) or version != SCHEMA_VERSION:
        raise InstanceError("schema_version", f"{version!r} is not {SCHEMA_VERSION}")
    if not isinstance(kind, str) or kind not in DOCUMENTS:
        raise InstanceError("kind", f"{kind!r} is not one of {', '.join(DOCUMENTS)}")
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


def _hash(data: Any) -> str:
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
