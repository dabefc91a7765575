"""One event, one answer: the same decisions through Python, JSON lines and HTTP."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gangplan.doors.core import Core, answer_lines, text_of
from gangplan.doors.schema import EVENTS as NAMES
from gangplan.doors.schema import KNOWN, event_schema
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler

from .conftest import EVENTS


def in_python() -> list[str]:
    """Return the decisions of a `Scheduler` whose methods are called, as text."""
    scheduler, decisions = Scheduler(Fleet.regular(1, 2, 8)), []
    for event in EVENTS:
        given = dict(event)
        name = given.pop("event")
        if isinstance(given.get("job"), dict):
            given["job"] = GangJob(given["job"]["name"], "any", tuple(given["job"]["workers"]))
        elif "gpus" in given:
            given["job"] = GangJob(given["job"], "any", (given.pop("gpus"),))
        answer = getattr(scheduler, name)(**given)
        if name == "decide":
            row = answer.as_dict()
            del row["seconds"]  # of the machine's clock
            decisions.append(json.dumps(row, separators=(",", ":")))
    return decisions


def decisions_of(answers: list[dict[str, Any]]) -> list[str]:
    """Return the decisions among answers, as text, once none is an error."""
    assert [x for x in answers if "error" in x] == []
    return [text_of(x["answer"]) for x in answers if x["event"] == "decide"]


def lines(core: Core, content: bytes) -> list[dict[str, Any]]:
    """Return what JSON lines are answered by."""
    out = io.BytesIO()
    answer_lines(core, io.BytesIO(content), out.write)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_the_same_decisions_through_every_door(client: TestClient, tmp_path: Path) -> None:
    """One sequence of events through Python, JSON lines and HTTP gives decisions equal to the byte, and equal logs."""
    expected = in_python()
    assert len(expected) == 6 and '"starts":[{' in expected[0] and '"degree":8' in expected[0]
    log = tmp_path / "lines.jsonl"
    core = Core(Scheduler(Fleet.regular(1, 2, 8), log=log), log)
    content = "".join(f"{json.dumps(event)}\n" for event in EVENTS).encode()
    assert decisions_of(lines(core, content)) == expected
    assert client.put("/v1/sessions/x", json={"cluster": "2x8"}).status_code == 201
    answers = [client.post("/v1/sessions/x/events", json=event).json() for event in EVENTS]
    assert decisions_of(answers) == expected
    found = client.post("/v1/decide", json={"cluster": "2x8", "events": EVENTS}).json()
    assert decisions_of(found["answers"]) == expected
    texts = log.read_text(), client.get("/v1/sessions/x/log").text
    rows = [[json.loads(line) for line in text.splitlines()] for text in texts]
    for some in rows:
        for row in some:
            row.pop("seconds" if row.get("event") == "decide" else "", None)
    assert rows[0] == rows[1]


def test_stateless_goes_on_from_its_snapshot(client: TestClient) -> None:
    """Events in two requests, the second with the snapshot of the first, decide as in one."""
    first = client.post("/v1/decide", json={"cluster": "2x8", "events": EVENTS[:8]}).json()
    given = {"cluster": "2x8", "events": EVENTS[8:], "snapshot": first["snapshot"]}
    second = client.post("/v1/decide", json=given).json()
    assert decisions_of(first["answers"] + second["answers"]) == in_python()


@pytest.mark.parametrize(
    ("event", "field", "words"),
    [
        ([], "event", "is no object"),
        ({}, "event", "is missing"),
        ({"event": "fail"}, "event", "did you mean fail_node?"),
        ({"event": "finish"}, "job", "is missing from the finish"),
        ({"event": "finish", "job": "nobody"}, "job", "'nobody' does not run"),
        ({"event": "finish", "job": ["a"]}, "job", "['a'] is not text"),
        ({"event": "finish", "job": "a", "nwo": 3}, "nwo", "did you mean now?"),
        ({"event": "decide", "now": -1}, "now", "-1 is negative"),
        ({"event": "decide", "deadline": 1e9}, "deadline", "is more than 60 seconds"),
        ({"event": "decide", "deadline": True}, "deadline", "true is not a number"),
        ({"event": "submit", "job": "b"}, "gpus", "is missing"),
        ({"event": "submit", "job": "b", "gpus": 0}, "gpus[0]", "0 is not positive"),
        ({"event": "submit", "job": "b", "gpus": 999}, "job", "999"),
        ({"event": "submit", "job": "b", "gpus": 1, "usr": "x"}, "usr", "did you mean user?"),
        ({"event": "submit", "job": {"type": "__main__:X"}}, "type", "is no type that an event has"),
        ({"event": "submit_array", "job": "b", "gpus": 1, "count": 10**9}, "job", "are over 100000"),
        ({"event": "fail_node", "node": "nowhere"}, "node", "nowhere"),
        ({"event": "explain", "what": 99}, "what", "99"),
        ({"event": "decisions"}, "event", "there is none"),
        ({"event": "restore", "snapshot": {"gangplan": 1}}, "snapshot.version", "cannot be read"),
        ({"event": "resize", "fleet": "8"}, "fleet", "'8'"),
    ],
)
def test_a_bad_event_names_field_and_value(event: Any, field: str, words: str) -> None:
    """A bad event is answered by the field that is wrong and what is wrong there, and changes nothing."""
    core = Core(Scheduler(Fleet.regular(1, 2, 8)))
    core.answer(EVENTS[0])
    before = core.scheduler.snapshot()
    error = core.reply(event)["error"]
    assert error["field"] == field and words in error["problem"], error
    assert core.scheduler.snapshot() == before


def test_questions() -> None:
    """Questions are answered as by the methods of the same name, and change nothing."""
    core = Core(Scheduler(Fleet.regular(1, 2, 8)))
    for event in EVENTS[:3]:
        core.answer(event)
    before = core.scheduler.snapshot()
    state = core.answer({"event": "state"})["answer"]
    assert {x["job"] for x in state["running"]} == {"a", "b"} and state["decisions"] == 1 and state["idle"] == 4
    told = core.reply({"event": "whatif", "id": 7, "job": "z", "gpus": 8, "seconds": 60})
    assert told["id"] == 7 and told["answer"]["earliest"] == 600.0 and "z waits" in told["text"]
    assert "runs since 0 s" in core.answer({"event": "explain", "what": "a"})["text"]
    assert core.answer({"event": "explain", "what": 1})["answer"]["decision"] == 1
    assert core.answer({"event": "snapshot"})["answer"] == json.loads(json.dumps(before))
    window = core.answer({"event": "reserve", "nodes": 1})["answer"]
    assert window["name"] == "window1" and window["end"] is None
    core.answer({"event": "cancel", "window": "window1"})
    moves = core.answer({"event": "defragment", "domain": "node1", "seconds": 1.0})["answer"]
    assert moves is None or core.answer({"event": "apply", "moves": moves})["answer"]["tier"] == "moves"


def test_lines_that_are_bad_lose_nothing(tmp_path: Path) -> None:
    """What is no JSON, too long or not UTF-8 is answered in its place; lines behind it are answered too."""
    core = Core(Scheduler(Fleet.regular(1, 2, 8)))
    out = io.BytesIO()
    content = b"xx\n\n\xff\n" + b'"' + b"x" * 300 + b'"\n{"event":"decide"}\n{"event":"state"}'
    answer_lines(core, io.BytesIO(content), out.write, longest=200)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [x.get("line") for x in answers] == [1, 3, 4, None, None]
    assert [x["error"]["field"] for x in answers[:3]] == ["JSON", "content", "line"]
    assert answers[3]["answer"]["number"] == 1 and answers[4]["answer"]["decisions"] == 1


def test_what_goes_wrong_inside_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that fails half-way leaves a scheduler with a log as it was before."""
    log = tmp_path / "log.jsonl"
    core = Core(Scheduler(Fleet.regular(1, 2, 8), log=log), log)
    core.answer(EVENTS[0])
    before = core.scheduler.snapshot()

    def broken(self: Scheduler, request: Any) -> None:
        enter(self, request)
        if request.name == "b":
            raise IndexError("deep inside")

    enter = Scheduler._enter

    with monkeypatch.context() as patched:
        patched.setattr(Scheduler, "_enter", broken)
        error = core.reply({"event": "submit", "job": "b", "gpus": 1})["error"]
    assert error == {"field": "submit", "problem": "cannot be done: IndexError: deep inside"}
    assert core.scheduler.snapshot() == before
    assert "error" not in core.reply({"event": "submit", "job": "b", "gpus": 1, "now": 1})
    assert Scheduler.open(log_copy(log)).snapshot() == core.scheduler.snapshot()


def log_copy(log: Path) -> Path:
    """Return a copy of a log, which nobody writes to."""
    copy = log.with_suffix(".copy")
    copy.write_bytes(log.read_bytes())
    return copy


def test_every_method_that_changes_state_is_an_event() -> None:
    """The schema has all of them, with what each needs."""
    assert set(NAMES) >= {"submit", "finish", "fail_node", "repair_node", "cancel", "change", "drain", "decide"}
    schemas = {name: event_schema(name) for name in KNOWN}
    assert schemas["finish"]["required"] == ["event", "job"]
    assert schemas["decide"]["properties"]["deadline"] == {"type": ["number", "null"]}
    assert all(schema["description"] for schema in schemas.values())


def test_text_for_people_is_printable() -> None:
    """What a terminal would obey in a name is an escape in `text`, and as it is in the answer."""
    core, name = Core(Scheduler(Fleet.regular(1, 2, 8))), "a\x1b]0;title\x07"
    assert core.reply({"event": "submit", "job": name, "gpus": 8, "seconds": 60})["answer"] is None
    for asked in ({"event": "explain", "what": name}, {"event": "defragment", "gang": name}):
        told = core.reply(asked)
        assert r"a\x1b]0;title\x07" in told["text"] and name in text_of(told["answer"]).encode().decode(
            "unicode_escape"
        )


@pytest.mark.parametrize(
    ("event", "field", "words"),
    [
        ({"event": "explain", "job": "a"}, "job", "is no field of explain; there are what"),
        ({"event": "submit", "job": "a", "gpus": 8, "sseconds": 5}, "sseconds", "did you mean seconds?"),
        ({"event": "submit", "job": "a", "gpus": -1}, "gpus[0]", "-1"),
        ({"event": "submit", "job": {"name": "a"}}, "job.workers", "is missing"),
        ({"event": "submit", "job": "", "gpus": 1}, "job", "'' is not a name"),
        ({"event": "explain", "what": "a"}, "what", "is not known"),
        ({"event": "explain", "what": None}, "what", "null is not one of the last"),
        ({"event": "defragment", "gang": "a"}, "gang", "is not known"),
        ({"event": "defragment"}, "domain", "is null, and so is gang"),
        ({"event": "reserve", "nodes": ["x"], "begin": 1, "end": 2}, "nodes", "'x' is no node"),
        ({"event": "resize", "fleet": "x"}, "fleet", "like 20x8"),
        ({"event": "resize", "fleet": {"racks": 1, "nodes": 2, "gpus": True}}, "fleet.gpus[0]", "true is not a whole"),
        ({"event": "submit", "job": "a", "gpus": 1, "after": True}, "after", "true is no sequence of names; write [tr"),
        ({"event": "submit", "job": "a", "gpus": 1, "topology": "True"}, "topology", "'True' is not one of"),
        (
            {"event": "submit", "job": {"name": "a", "workers": [1], "worker": {"gpus": 2}}},
            "Demand.gpus",
            "is no field of",
        ),
        ({"event": "submit", "job": {"name": "a", "workers": [1], "worker": {"cpu": 80}}}, "job", " 80 cores"),
    ],
)
def test_errors_say_what_to_write(event: dict[str, Any], field: str, words: str) -> None:
    """Field and words are those of whoever wrote the event."""
    core = Core(Scheduler(Fleet.regular(1, 2, 8, cpu=16)))
    error = core.reply(event)["error"]
    assert error["field"] == field and words in error["problem"], error
