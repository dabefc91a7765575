"""Describe what the service takes and answers, for OpenAPI: read off the types of `Scheduler` and of the documents."""

from __future__ import annotations

import json
from functools import cache
from inspect import unwrap
from math import isfinite
from types import SimpleNamespace
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from gangplan.instances.documents import json_schema, schema
from gangplan.instances.kinds import DOCUMENTS
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Decision, Scheduler, Terms
from gangplan.scheduler.decision import Explanation, WaitingJob
from gangplan.scheduler.explaining.explain import RunsNow
from gangplan.scheduler.journal.write import OF_LOG
from gangplan.scheduler.moving.migration import Moves
from gangplan.scheduler.settings import Sharing
from gangplan.scheduler.starting.calendar import Window

from .schema import EVENTS, KNOWN, event_schema

_OWN = ("cluster", "policy", "sharing", "speeds", "return")
"""Arguments of `Scheduler` with schemas of their own, or that no request has."""
_REF = "#/components/schemas/"
Row = dict[str, Any]


_TYPES: dict[str, Any] = {
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
    **dict.fromkeys(("users", "queues", "jobs", "requires"), list[str]),
}
"""Types of fields that many events have, or that say more in Python."""
_OF_QUESTION = {"explain": "Explained", "whatif": "WaitingJob", "defragment": "Proposal", "state": "State"}
_OF_QUESTION |= {"snapshot": "Snapshot", "decisions": "LoggedDecisions"}


def _ref(name: str) -> Row:
    return {"$ref": _REF + name}


def _some(optional: Row | None = None, /, **properties: Row) -> Row:
    return {"type": "object", "properties": properties | (optional or {}), "required": list(properties)}


def _list(of: Row) -> Row:
    return {"type": "array", "items": of}


def _any(*of: Row) -> Row:
    return {"anyOf": [*of]}


_TEXT, _NUMBER, _WHOLE, _TRUTH, _NULL = ({"type": x} for x in ("string", "number", "integer", "boolean", "null"))
_TEXTS, _WHOLES, _MAYBE = _list(_TEXT), _list(_WHOLE), _any(_NUMBER, _NULL)


def _about(words: str, whole: bool = True, /, **properties: Row) -> Row:
    """Return an object in words, of which all properties are there, or any."""
    needed = {"required": list(properties)} if whole else {}
    return {"description": words, "type": "object", "properties": properties} | needed


def _by_name(of: Row) -> Row:
    return {"type": "object", "additionalProperties": of}


_ROWS: dict[str, Row] = {
    "Problem": _about("What is wrong with a field.", field=_TEXT, problem=_TEXT),
    "State": _about(
        "Who runs where and who waits.", now=_NUMBER, decisions=_WHOLE, idle=_WHOLE, wake=_MAYBE,
        running=_list(_ref("RunsNow")), waiting=_TEXTS, down=_TEXTS, windows=_list(_ref("Window")),
    ),
    "LoggedDecision": _about(
        "A line of the log.", False, number=_WHOLE, now=_NUMBER, tier=_TEXT, seconds=_NUMBER, stops=_list(_ref("Stop")),
        starts=_list(_ref("Start")), notes=_TEXTS, more=_TRUTH,
    ),
    "LoggedDecisions": _list(_ref("LoggedDecision")),
    "Progress": _about("How far a solve is.", seconds=_NUMBER, objective=_MAYBE, bound=_MAYBE, gap=_MAYBE, by=_TEXT),
    "Verdict": _about(
        "What the verifier says of a plan.", False, feasible=_TRUTH, objective=_MAYBE, violations=_TEXTS, bound=_MAYBE
    ),
    "TypeFigures": _about(
        "GPUs of a type: held, idle, and on nodes that are down.", type=_TEXT, held=_WHOLE, idle=_WHOLE, down=_WHOLE
    ),
    "QueueFigures": _about(
        "What a queue has: GPUs with those of queues below it, its share and, if it is declared, its quota.",
        queue=_TEXT, running=_WHOLE, waiting=_WHOLE, gpus=_WHOLE, share=_NUMBER, guaranteed=_MAYBE, most=_MAYBE,
    ),
    "UserFigures": _about(
        "What a user has, and may have, `None` if there is no limit.", user=_TEXT, running=_WHOLE, waiting=_WHOLE,
        gpus=_WHOLE, most=_any(_WHOLE, _NULL),
    ),
    "JobFigures": _about(
        "A job: GPUs that it holds, or needs at least; since when it runs or waits, and the seconds that it has left.",
        job=_TEXT, gpus=_WHOLE, user=_TEXT, queue=_TEXT, priority=_WHOLE, since=_NUMBER, left=_NUMBER,
    ),
    "FleetRow": _about(
        "A cluster as the log has it, with the arguments of `Fleet` that are not as usual.", names=_TEXTS,
        gpu_types=_TEXTS, gpu_type=_WHOLES, gpus=_WHOLES,
    ),
    "ClusterState": _about(
        "What the page shows of a session: the figures, the first jobs that run and wait, and what the picture needs."
        "\n\nOf `line`, the number of the log's last line, a later state can be asked for.",
        types=_list(_ref("TypeFigures")), queues=_list(_ref("QueueFigures")), users=_list(_ref("UserFigures")),
        now=_NUMBER, line=_WHOLE, cluster=_ref("FleetRow"), held=_by_name(_by_name(_WHOLES)), down=_TEXTS,
        running=_list(_ref("JobFigures")), waiting=_list(_ref("JobFigures")), runs=_WHOLE, waits=_WHOLE,
        tier=_any(_TEXT, _NULL),
    ),
    "Pictures": _about("A picture as SVG, and that of each of its panels.", False, svg=_TEXT, panels=_by_name(_TEXT)),
    "Frame": _about(
        "What an event said and changed: who holds what, `None` if no more, and what is otherwise than before.", False,
        now=_NUMBER, text=_TEXT, held=_by_name(_any(_by_name(_WHOLES), _NULL)), waiting=_TEXTS, waits=_WHOLE,
        down=_TEXTS,
    ),
    "Frames": _list(_ref("Frame")),
}  # fmt: skip
"""Types of answers that have none in Python, as rows."""


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
        return _MAYBE
    return {key: _finite(x) for key, x in schema.items() if key != "title" or not isinstance(x, str)}


def _answer(event: str) -> Row:
    """Return the schema of what an event is answered by."""
    kind = _OF_QUESTION.get(event) or f"{event}_result"
    beside = {"id": _ref("Id"), "text": _TEXT, "seconds": _NUMBER}
    return _some(beside, event={"const": event}, now=_NUMBER, answer=_ref(kind)) | {"title": f"{event} is answered"}


def _result(event: str) -> Any:
    """Return the type of what a method of `Scheduler` returns."""
    method = unwrap(getattr(Scheduler, event))
    only = SimpleNamespace(__annotations__={"return": method.__annotations__["return"]})
    return get_type_hints(only, method.__globals__)["return"]


@cache
def components() -> dict[str, Row]:
    """Return all schemas by name."""
    hints = get_type_hints(Terms) | _GIVEN
    made = {x: y for x, y in get_type_hints(Scheduler.__init__).items() if x not in (*OF_LOG, *_OWN)}
    mine = {f"field.{x}": y for x, y in hints.items()} | {f"made.{x}": y for x, y in made.items()}
    named, more = _typed(_TYPES | mine | {f"{event}_result": _result(event) for event in EVENTS})
    arguments = {name: named.pop(f"made.{name}") for name in made} | {"sharing": _ref("Sharing")}
    terms = arguments | {name: named.pop(f"field.{name}") for name in hints}
    terms |= {"job": _any(_TEXT, _ref("Job")), "fleet": _ref("Cluster"), "snapshot": _ref("Snapshot"), "id": _ref("Id")}
    events = {x: event_schema(x) for x in KNOWN}
    for x in events.values():  # what has no plain type has one of these
        plain = (key for key, own in x["properties"].items() if key in terms and "type" not in own)
        x["properties"] |= {key: terms[key] for key in plain}
    plans = [kind for kind in DOCUMENTS if kind.endswith("_plan")]
    figures = dict.fromkeys(("objective", "bound", "gap"), _MAYBE)
    where = _by_name(_list(_any(_TEXT, _WHOLE)))
    regular = {
        "gpus": _any(_WHOLE, _WHOLES),
        "gpu_type": _any(_TEXT, _TEXTS, _by_name(_WHOLE)),
        **dict.fromkeys(("cpu", "memory", "link", "nic", "uplink"), _NUMBER), "labels": where, "taints": where,
    }  # fmt: skip
    more_of_solve = {"progress": _ref("Progress"), "answer": _ref("Solved"), "error": _ref("Problem")}
    return {
        **{f"{kind}_document": json_schema(kind) for kind in DOCUMENTS}, **named, **more, **_ROWS,
        **{f"{x}_event": schema for x, schema in events.items()}, **{f"{x}_answer": _answer(x) for x in KNOWN},
        "Document": {"oneOf": [_ref(f"{kind}_document") for kind in DOCUMENTS if kind not in plans]},
        "Plan": {"oneOf": [_ref(f"{kind}_document") for kind in plans]},
        "Event": {"oneOf": [_ref(f"{x}_event") for x in KNOWN]},
        "Answer": {"oneOf": [*(_ref(f"{x}_answer") for x in KNOWN), _ref("Error")]},
        "Error": _some(error=_ref("Problem")),
        "Id": _any(_TEXT, _NUMBER, _NULL),
        "Job": schema(GangJob) | {"required": ["name", "workers"]},
        "Fleet": schema(Fleet),
        "Cluster": _any(_TEXT | {"examples": ["20x8"]}, _ref("Fleet"), _some(regular, racks=_WHOLE, nodes=_WHOLE)),
        "Session": _some({"policy": _TEXT, **arguments}, cluster=_ref("Cluster")),
        "Snapshot": _some(gangplan={"const": "scheduler"}, version=_WHOLE, now=_NUMBER, decisions=_WHOLE),
        "Solved": _some(**figures, plan=_any(_ref("Plan"), _NULL), status=_TEXT),
        "Solving": _some(more_of_solve, id=_TEXT, state={"enum": ["queued", "running", "done", "failed", "cancelled"]}),
    }  # fmt: skip


OF_PATH: dict[str, dict[str, Row]] = {
    "/v1/sessions/{name}/events": {"post": _any(_ref("Answer"), _list(_ref("Answer")))},
    "/health": {"get": _some(status={"enum": ["ok", "closing", "no state"]})},
    "/v1/solve": {"post": _ref("Solving")},
    "/v1/solves/{name}": {"get": _ref("Solving"), "delete": _ref("Solving")},
    "/v1/solves/{name}/plan": {"get": _ref("Plan")},
    "/v1/verify": {"post": _ref("Verdict")},
    "/v1/decide": {"post": _some(answers=_list(_ref("Answer")), snapshot=_ref("Snapshot"))},
    "/v1/sessions": {"get": _some(sessions=_ref("Names"))},
    "/v1/sessions/{name}": {"put": _some(session=_TEXT), "delete": _some(session=_TEXT)},
    "/v1/sessions/{name}/cluster": {"get": _ref("ClusterState")},
    "/v1/examples": {"get": _some(examples=_list(_some(name=_TEXT, title=_TEXT)))},
    "/v1/examples/{name}": {"get": _ref("Document")},
    "/v1/picture": {"post": _ref("Pictures")},
    "/v1/replay": {"post": _some(cluster=_ref("Fleet"), frames=_ref("Frames"))},
}
_OF_SOLVE = {
    "wait": _NUMBER, "initial": _ref("Plan"), "method": _TEXT, "objective": _TEXT, "seed": _WHOLE, "workers": _WHOLE,
    "gap": _NUMBER, "certify": _TRUTH,
}  # fmt: skip
_OF_PICTURE = {
    "cluster": _ref("Cluster"), "held": {"type": "object"}, "down": _ref("Names"), "problem": _ref("Document"),
    "plan": _ref("Plan"), "status": _TEXT, "bound": _NUMBER, "objective": _TEXT, "progress": _list(_ref("Progress")),
    "now": _NUMBER, "until": _NUMBER, "width": _NUMBER, "unit": _TEXT,
}  # fmt: skip
_STATELESS = _some({"snapshot": _any(_ref("Snapshot"), _NULL)}, events=_list(_ref("Event")))
TAKES: dict[tuple[str, str], Row] = {
    ("/v1/sessions/{name}/events", "post"): _any(_ref("Event"), _list(_ref("Event"))),
    ("/v1/sessions/{name}", "put"): _ref("Session"),
    ("/v1/decide", "post"): {"allOf": [_ref("Session"), _STATELESS]},
    ("/v1/solve", "post"): _some(_OF_SOLVE, problem=_ref("Document"), time_limit=_NUMBER),
    ("/v1/verify", "post"): _some({"certificate": {"type": "object"}}, problem=_ref("Document"), plan=_ref("Plan")),
    ("/v1/picture", "post"): _some(_OF_PICTURE),
    ("/v1/replay", "post"): _some(log=_TEXT),
}
_KINDS = {"/metrics": "text/plain", "/v1/solves/{name}/progress": "text/event-stream"}
_KINDS |= {"/v1/sessions/{name}/log": "application/jsonl"}


def described(found: Row) -> Row:
    """Return what FastAPI says of its routes with the types of what they answer."""
    found["components"] = {"schemas": components()}
    for path, methods in found["paths"].items():
        for method, row in methods.items():
            schema = OF_PATH[path][method] if path not in _KINDS else _TEXT
            content = {_KINDS.get(path, "application/json"): {"schema": schema}}
            refused = {"description": "What is wrong", "content": {"application/json": {"schema": _ref("Error")}}}
            if body := TAKES.get((path, method)):
                row["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
            row["responses"] = {"200": {"description": "Done", "content": content}, "default": refused}
    return dict(json.loads(json.dumps(found).replace("`None`", "`null`")))  # descriptions are those of Python's types
