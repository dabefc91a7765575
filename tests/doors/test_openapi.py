"""OpenAPI: all that is answered has a type, and real answers are of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from gangplan.scheduler.queueing.request import Terms

from .conftest import EVENTS

jsonschema = pytest.importorskip("jsonschema")


def bare(schema: Any, all_of: dict[str, Any], seen: set[str], path: str) -> Iterator[str]:
    """Yield where a schema says nothing of what there is."""
    if ref := schema.get("$ref"):
        name = ref.rpartition("/")[2]
        if name not in seen:
            seen.add(name)
            yield from bare(all_of[name], all_of, seen, name)
        return
    parts = [x for key in ("anyOf", "oneOf", "allOf") for x in schema.get(key, ())]
    more = schema.get("additionalProperties")
    parts += [*schema.get("properties", {}).values(), *([more] if isinstance(more, dict) else [])]
    parts += [schema["items"]] if isinstance(schema.get("items"), dict) else []
    told = {"const", "enum", "prefixItems"} & schema.keys() or schema.get("type") not in (None, "object", "array")
    if not parts and not told:
        yield path
    for i, part in enumerate(parts):
        yield from bare(part, all_of, seen, f"{path}/{i}")


def test_all_answers_have_a_type(client: TestClient) -> None:
    """Whatever is answered, and each cluster, job and event that is taken, says what it is made of."""
    found = client.get("/v1/openapi.json").json()
    schemas, answers, takes, seen = found["components"]["schemas"], 0, 0, set[str]()
    for path, methods in found["paths"].items():
        for method, row in methods.items():
            for status, response in row["responses"].items():
                for content in response["content"].values():
                    assert not [*bare(content["schema"], schemas, seen, f"{method} {path} {status}")]
                    answers += 1
            if body := row.get("requestBody"):
                schema = body["content"]["application/json"]["schema"]
                if path not in ("/v1/verify", "/v1/picture"):  # of certificates and pictures not all
                    assert not [*bare(schema, schemas, seen, f"{method} {path}")]
                takes += 1
            assert method in ("get", "delete") or "requestBody" in row
    assert answers > 30 and takes == 7
    assert {"Decision", "Start", "Job", "Fleet", "Cluster", "ClusterState"} <= seen
    assert {"queue", "user", "seconds"} <= schemas["submit_event"]["properties"].keys()
    assert {x for x in Terms.__slots__ if x != "array"} <= schemas["submit_event"]["properties"].keys()


def test_answers_are_of_their_types(client: TestClient) -> None:
    """What a session really answers is valid, of events that change something, of questions and of errors."""
    found = client.get("/v1/openapi.json").json()
    schema = {"$ref": "#/components/schemas/Answer", "components": found["components"]}
    checker = jsonschema.Draft202012Validator(schema)
    client.put("/v1/sessions/a", json={"cluster": {"racks": 1, "nodes": 2, "gpu_type": {"H100": 1, "A100": 1}}})
    asked = [
        {"event": "explain", "what": "a"}, {"event": "explain", "what": 1}, {"event": "state"}, {"event": "snapshot"},
        {"event": "whatif", "job": "z", "gpus": 8, "seconds": 60}, {"event": "defragment", "domain": "node0"},
        {"event": "decisions"}, {"event": "reserve", "nodes": ["node1"], "begin": 500}, {"event": "finish", "job": "?"},
    ]  # fmt: skip
    events = [*EVENTS, {"event": "submit", "job": "late", "gpus": [8, 16], "seconds": 60}, *asked]
    answers = [x for i in range(0, len(events), 10) for x in client.post(
        "/v1/sessions/a/events", json=events[i : i + 10]).json()]  # fmt: skip
    assert len(answers) == len(events) and sum("error" in x for x in answers) <= 2
    for answer in answers:
        assert not [error.message for error in checker.iter_errors(answer)][:1], answer
    cluster = checker.evolve(schema=schema | {"$ref": "#/components/schemas/ClusterState"})
    assert not [*cluster.iter_errors(client.get("/v1/sessions/a/cluster").json())]
