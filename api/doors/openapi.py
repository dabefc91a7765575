"""Describe what the service takes and answers, for OpenAPI: read off the types of `Scheduler` and of the documents."""

from __future__ import annotations

from functools import cache
from math import isfinite
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from gangplan.hybrid.online import Decision, Scheduler, Terms
from gangplan.hybrid.online.calendar import Window
from gangplan.hybrid.online.explain import Explanation, WaitingJob
from gangplan.hybrid.online.journal.write import OF_LOG
from gangplan.hybrid.online.moves import Moves
from gangplan.hybrid.online.runs import RunsNow
from gangplan.hybrid.online.sharing import Sharing
from gangplan.hybrid.online.starts import Start
from gangplan.hybrid.online.stops import Stop
from gangplan.instances.documents import DOCUMENTS, form, json_schema
from gangplan.instances.placement import Fleet, GangJob

from .pictures import ClusterState, Frame, Pictures
from .schema import KNOWN, QUESTIONS, event_schema

_OWN = ("cluster", "policy", "sharing", "speeds", "return")
_REF = "#/components/schemas/"
Row = dict[str, Any]


class Problem(TypedDict):
    """What is wrong with a field."""

    field: str
    problem: str


class State(TypedDict):
    """Who runs where and who waits."""

    now: float
    decisions: int
    idle: int
    wake: float | None
    running: list[RunsNow]
    waiting: list[str]
    down: list[str]
    windows: list[Window]


class LoggedDecision(TypedDict, total=False):
    """A line of the log."""

    number: int
    now: float
    tier: str
    seconds: float
    stops: list[Stop]
    starts: list[Start]
    notes: list[str]
    more: bool


class Progress(TypedDict):
    """How far a solve is."""

    seconds: float
    objective: float | None
    bound: float | None
    gap: float | None
    by: str


class Verdict(TypedDict, total=False):
    """What the verifier says of a plan."""

    feasible: bool
    objective: float | None
    violations: list[str]
    bound: float | None


_TYPES: dict[str, Any] = {
    "Problem": Problem, "State": State, "LoggedDecisions": list[LoggedDecision], "Progress": Progress,
    "Verdict": Verdict, "ClusterState": ClusterState, "Pictures": Pictures, "Frames": list[Frame],
    "Explained": Explanation | WaitingJob | RunsNow, "WaitingJob": WaitingJob, "Decision": Decision,
    "Proposal": Moves | None, "Names": list[str], "Window": Window, "Sharing": Sharing,
}  # fmt: skip
_GIVEN: dict[str, Any] = {
    "seconds": float | list[float] | dict[str, float | list[float]] | None,
    "price": float | None,
    "gpus": int | list[int],
    "nodes": dict[str, int] | list[str] | int,
    "moves": Moves,
    "what": str | int,
    "gang": str | None,
    "domain": str | int | list[str | int] | None,
    **dict.fromkeys(("users", "queues", "jobs"), list[str]),
}
"""Types of fields that many events have, or that say more in Python."""
_OF_QUESTION = {"explain": "Explained", "whatif": "WaitingJob", "defragment": "Proposal", "state": "State"}
_OF_QUESTION |= {"snapshot": "Snapshot", "decisions": "LoggedDecisions"}
_OF_RESULT = {"Decision": "Decision", "Window": "Window", "tuple[str, ...]": "Names", "None": "Nothing"}


def _ref(name: str) -> Row:
    return {"$ref": _REF + name}


def _some(**properties: Row) -> Row:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _typed(adapters: dict[str, Any]) -> tuple[dict[str, Row], dict[str, Row]]:
    """Return the schemas of types, and of the types in them; a number that may be infinite is null then."""
    given = [(name, "validation", TypeAdapter(kind)) for name, kind in adapters.items()]
    found, more = TypeAdapter.json_schemas(given, ref_template=_REF + "{model}")  # type: ignore[arg-type]
    return {name: _finite(x) for (name, _), x in found.items()}, _finite(more.get("$defs", {}))


def _finite(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_finite(x) for x in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(usual := schema.get("default"), float) and not isfinite(usual):
        return {"anyOf": [{"type": "number"}, {"type": "null"}]}
    return {key: _finite(x) for key, x in schema.items() if key != "title" or not isinstance(x, str)}


def _answer(event: str) -> Row:
    """Return the schema of what an event is answered by."""
    made = str(getattr(Scheduler, event).__annotations__.get("return", "None")) if event not in QUESTIONS else ""
    kind = _OF_QUESTION.get(event) or _OF_RESULT[made]
    row = _some(event={"const": event}, now={"type": "number"}, answer=_ref(kind))
    row["properties"] |= {"id": _ref("Id"), "text": {"type": "string"}, "seconds": {"type": "number"}}
    return row | {"title": f"{event} is answered"}


@cache
def components() -> dict[str, Row]:
    """Return all schemas by name."""
    hints = get_type_hints(Terms) | _GIVEN
    made = {x: y for x, y in get_type_hints(Scheduler.__init__).items() if x not in (*OF_LOG, *_OWN)}
    mine = {f"field.{x}": y for x, y in hints.items()} | {f"made.{x}": y for x, y in made.items()}
    named, more = _typed(_TYPES | mine)
    terms = {name: named.pop(f"field.{name}") for name in hints}
    arguments = {name: named.pop(f"made.{name}") for name in made}
    job, fleet = form(GangJob).schema, form(Fleet).schema
    name, count = {"type": "string"}, {"type": "integer", "minimum": 1}
    regular = {"racks": count, "nodes": count, "gpus": {"anyOf": [count, {"type": "array", "items": count}]}}
    regular["gpu_type"] = {
        "anyOf": [name, {"type": "array", "items": name}, {"type": "object", "additionalProperties": count}]
    }
    regular |= {each: {"type": "number"} for each in ("cpu", "memory", "link", "nic", "uplink")}
    where = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": ["string", "integer"]}}}
    regular |= {"labels": where, "taints": where}
    events = {x: event_schema(x) for x in KNOWN}
    for x in events.values():
        x["properties"] |= {
            key: terms[key] for key, known in x["properties"].items() if key in terms and "type" not in known
        }
        if "job" in x["properties"] and x["title"] in ("submit", "submit_array", "whatif"):
            x["properties"]["job"] = {"anyOf": [name, _ref("Job")]}
        if "fleet" in x["properties"]:
            x["properties"]["fleet"] = _ref("Cluster")
        if "snapshot" in x["properties"]:
            x["properties"]["snapshot"] = _ref("Snapshot")
        x["properties"]["id"] = _ref("Id")
    plans = [kind for kind in DOCUMENTS if kind.endswith("_plan")]
    problems = [kind for kind in DOCUMENTS if kind not in plans]
    solved = {"plan": {"anyOf": [_ref("Plan"), {"type": "null"}]}, "status": name}
    solved |= {each: {"type": ["number", "null"]} for each in ("objective", "bound", "gap")}
    solving = _some(id=name, state={"enum": ["queued", "running", "done", "failed", "cancelled"]})
    solving["properties"] |= {"progress": _ref("Progress"), "answer": _ref("Solved"), "error": _ref("Problem")}
    snapshot = _some(
        gangplan={"const": "scheduler"}, version=count, now={"type": "number"}, decisions={"type": "integer"}
    )
    return {
        **{f"{kind}_document": json_schema(kind) for kind in DOCUMENTS}, **named, **more,
        **{f"{x}_event": schema for x, schema in events.items()}, **{f"{x}_answer": _answer(x) for x in KNOWN},
        "Document": {"oneOf": [_ref(f"{kind}_document") for kind in problems]},
        "Plan": {"oneOf": [_ref(f"{kind}_document") for kind in plans]},
        "Event": {"oneOf": [_ref(f"{x}_event") for x in KNOWN]},
        "Answer": {"oneOf": [*(_ref(f"{x}_answer") for x in KNOWN), _ref("Error")]},
        "Error": _some(error=_ref("Problem")),
        "Nothing": {"type": "null"},
        "Id": {"anyOf": [name, {"type": "number"}, {"type": "null"}]},
        "Job": job | {"required": ["name", "workers"]},
        "Fleet": fleet,
        "Cluster": {"anyOf": [{"type": "string", "examples": ["20x8"]}, _ref("Fleet"),
                              {"type": "object", "properties": regular, "required": ["racks", "nodes"]}]},
        "Session": {"type": "object", "required": ["cluster"], "properties": {
            "cluster": _ref("Cluster"), "policy": name, **arguments, "sharing": _ref("Sharing")}},
        "Snapshot": snapshot | {"additionalProperties": True},
        "Solved": {"type": "object", "properties": solved, "required": [*solved]},
        "Solving": solving,
    }  # fmt: skip


_NAME: Row = {"type": "string"}
_EVENTS: Row = {"anyOf": [_ref("Event"), {"type": "array", "items": _ref("Event")}]}
_ANSWERS: Row = {"anyOf": [_ref("Answer"), {"type": "array", "items": _ref("Answer")}]}
OF_PATH: dict[str, dict[str, Row]] = {
    "/v1/sessions/{name}/events": {"post": _ANSWERS},
    "/health": {"get": _some(status={"enum": ["ok", "closing", "no state"]})},
    "/v1/solve": {"post": _ref("Solving")},
    "/v1/solves/{name}": {"get": _ref("Solving"), "delete": _ref("Solving")},
    "/v1/solves/{name}/plan": {"get": _ref("Plan")},
    "/v1/verify": {"post": _ref("Verdict")},
    "/v1/decide": {"post": _some(answers={"type": "array", "items": _ref("Answer")}, snapshot=_ref("Snapshot"))},
    "/v1/sessions": {"get": _some(sessions=_ref("Names"))},
    "/v1/sessions/{name}": {"put": _some(session=_NAME), "delete": _some(session=_NAME)},
    "/v1/sessions/{name}/cluster": {"get": _ref("ClusterState")},
    "/v1/examples": {"get": _some(examples={"type": "array", "items": _some(name=_NAME, title=_NAME)})},
    "/v1/examples/{name}": {"get": _ref("Document")},
    "/v1/picture": {"post": _ref("Pictures")},
    "/v1/replay": {"post": _some(cluster=_ref("Fleet"), frames=_ref("Frames"))},
}
_SOLVE = _some(problem=_ref("Document"), time_limit={"type": "number", "exclusiveMinimum": 0})
_SOLVE["properties"] |= {"wait": {"type": "number", "minimum": 0, "maximum": 60}, "initial": _ref("Plan")}
_SOLVE["properties"] |= {
    "method": _NAME,
    "objective": _NAME,
    "seed": {"type": "integer"},
    "workers": {"type": "integer"},
}
_SOLVE["properties"] |= {"gap": {"type": "number"}, "certify": {"type": "boolean"}}
_VERIFY = _some(problem=_ref("Document"), plan=_ref("Plan"))
_PICTURE = {"cluster": _ref("Cluster"), "held": {"type": "object"}, "down": _ref("Names"), "problem": _ref("Document")}
_PICTURE |= {"plan": _ref("Plan"), "status": _NAME, "bound": {"type": "number"}, "objective": _NAME}
_STATELESS = _some(events={"type": "array", "items": _ref("Event")})
_STATELESS["properties"]["snapshot"] = {"anyOf": [_ref("Snapshot"), {"type": "null"}]}
TAKES: dict[tuple[str, str], Row] = {
    ("/v1/sessions/{name}/events", "post"): _EVENTS,
    ("/v1/sessions/{name}", "put"): _ref("Session"),
    ("/v1/decide", "post"): {"allOf": [_ref("Session"), _STATELESS]},
    ("/v1/solve", "post"): _SOLVE,
    ("/v1/verify", "post"): _VERIFY | {"properties": {**_VERIFY["properties"], "certificate": {"type": "object"}}},
    ("/v1/picture", "post"): {"type": "object", "properties": _PICTURE},
    ("/v1/replay", "post"): _some(log=_NAME),
}
_TEXTS = {"/metrics": "text/plain", "/v1/solves/{name}/progress": "text/event-stream"}
_TEXTS |= {"/v1/sessions/{name}/log": "application/jsonl"}


def described(found: Row) -> Row:
    """Return what FastAPI says of its routes with the types of what they answer."""
    found["components"] = {"schemas": components()}
    for path, methods in found["paths"].items():
        for method, row in methods.items():
            schema = OF_PATH[path][method] if path not in _TEXTS else _NAME
            content = {_TEXTS.get(path, "application/json"): {"schema": schema}}
            refused = {"description": "What is wrong", "content": {"application/json": {"schema": _ref("Error")}}}
            if body := TAKES.get((path, method)):
                row["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
            row["responses"] = {"200": {"description": "Done", "content": content}, "default": refused}
    return found
