"""HTTP: solves, verdicts, sessions, and what is refused."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gangplan.doors.app import build
from gangplan.doors.store import Store
from gangplan.instances import InstanceError, dump
from gangplan.instances.generators import generate

from .conftest import EVENTS, LIMITS

EASY = json.loads(dump(generate("layered", ops=20, layers=4, devices=2, seed=1)))
HARD = json.loads(dump(generate("gangs", jobs=60, racks=4, nodes=8, load=0.9, seed=1)))


def solved(client: TestClient, **given: Any) -> Any:
    """Return what a solve is answered by."""
    return client.post("/v1/solve", json={"problem": EASY, "time_limit": 20, **given})


def test_solve_and_verify(client: TestClient) -> None:
    """A short solve is answered at once; its plan is feasible by `/v1/verify`, another is not."""
    found = solved(client)
    assert found.status_code == 200 and found.json()["state"] == "done", found.text
    answer = found.json()["answer"]
    assert answer["status"] == "OPTIMAL" and found.json()["progress"]["objective"] >= answer["bound"] > 0
    verdict = client.post("/v1/verify", json={"problem": EASY, "plan": answer["plan"]})
    assert verdict.json()["feasible"] and verdict.json()["objective"] == answer["objective"]
    wrong = {**answer["plan"], "device": [9] * 20}
    wrong.pop("content_hash")
    verdict = client.post("/v1/verify", json={"problem": EASY, "plan": wrong})
    assert (verdict.status_code, "device" in verdict.text) == (422, True) or not verdict.json()["feasible"]
    again = client.get(found.headers["location"]).json()
    assert again["answer"] == answer


@pytest.mark.parametrize("client", [120.0], indirect=True)
def test_a_long_solve_is_followed_and_cancelled(client: TestClient) -> None:
    """A solve that is not waited for tells its progress as server-sent events, and ends early when it is cancelled."""
    began = time.monotonic()
    found = solved(client, problem=HARD, time_limit=120, wait=0)
    assert found.status_code == 202 and found.json()["state"] == "queued"
    where, events = found.headers["location"], list[str]()
    while not client.get(where).json().get("progress", {}).get("objective"):
        assert time.monotonic() < began + 100
        time.sleep(0.1)
    assert client.get(where).json()["state"] == "running"
    ended = client.delete(where).json()
    assert ended["state"] == "cancelled" and "answer" in ended, ended
    assert ended["answer"]["stop_reason"] == "interrupted" and ended["answer"]["plan"]
    assert ended["answer"]["wall_seconds"] < 110
    with client.stream("GET", f"{where}/progress") as stream:
        events = [line for line in stream.iter_lines() if line.startswith("event")]
    assert events == ["event: end"]  # it is over: the store has its answer
    assert client.get("/v1/solves/nope").status_code == 404


def test_progress_comes_while_it_runs(client: TestClient) -> None:
    """Each event has a number, from which a reader that was cut off goes on."""
    where = solved(client, problem=HARD, time_limit=6, wait=0).headers["location"]
    with client.stream("GET", f"{where}/progress") as stream:
        lines = list(stream.iter_lines())
    numbers = [int(line[4:]) for line in lines if line.startswith("id: ")]
    assert numbers == list(range(1, len(numbers) + 1)) and numbers
    rows = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert rows[-1]["state"] == "done" and rows[-1]["answer"]["plan"]
    plans = [row["objective"] for row in rows[:-1] if row["objective"] is not None]
    assert plans == sorted(plans, reverse=True) and plans[-1] == rows[-1]["answer"]["objective"]


def test_too_many_solves_are_refused(client: TestClient) -> None:
    """One runs, two wait, the fourth is told to come again; the waiting can be cancelled."""
    found = [solved(client, problem=HARD, time_limit=25, wait=0) for _ in range(4)]
    assert [x.status_code for x in found] == [202, 202, 202, 429]
    assert 1 <= int(found[3].headers["retry-after"]) <= 25
    assert found[3].json()["error"]["field"] == "solves"
    for one in (found[2], found[1], found[0]):
        assert client.delete(one.headers["location"]).json()["state"] == "cancelled"
    assert client.get(found[1].headers["location"]).json()["error"]["field"] == "solve"
    assert solved(client).json()["state"] == "done"


@pytest.mark.parametrize(
    ("path", "body", "status", "field", "words"),
    [
        ("/v1/solve", "{", 400, "JSON", "line 1"),
        ("/v1/solve", '{"problem": 1, "time_limit": NaN}', 400, "JSON", "NaN"),
        ("/v1/solve", [], 422, "body", "is no object"),
        ("/v1/solve", {"problem": EASY}, 422, "time_limit", "is missing"),
        ("/v1/solve", {"problem": EASY, "time_limit": 1e6}, 422, "time_limit", "is more than 30"),
        ("/v1/solve", {"problem": EASY, "time_limit": 1, "workers": 99}, 422, "workers", "99 is more than 1"),
        ("/v1/solve", {"problem": EASY, "time_limit": 1, "wait": "x"}, 422, "wait", "'x'"),
        ("/v1/solve", {"problem": EASY, "time_limit": 1, "method": "magic"}, 200, "method", "magic"),
        ("/v1/solve", {"problem": EASY, "time_limit": 1, "metod": "auto"}, 422, "metod", "did you mean method?"),
        ("/v1/solve", {"problem": {}, "time_limit": 1}, 422, "problem.schema_version", "None is not 1"),
        ("/v1/verify", {"problem": EASY}, 422, "plan", "is missing"),
        ("/v1/decide", {"cluster": "2x8"}, 422, "events", "are missing"),
        ("/v1/decide", {"cluster": "2x8", "events": [1] * 21}, 422, "events", "21 are more than 20"),
        (
            "/v1/decide",
            {"cluster": "2x8", "events": [], "policy": "x.safetensors"},
            422,
            "policy",
            "is not one of",
        ),
        ("/v1/decide", {"cluster": {"racks": 10**5, "nodes": 10**5}, "events": []}, 422, "cluster.nodes", "more than"),
        ("/v1/decide", {"cluster": "2x8", "events": [], "snapshot": {"a": 1}}, 422, "snapshot", "is not what"),
        ("/v1/sessions/none/events", {"event": "decide"}, 404, "session", "'none' is not known"),
        ("/v1/nowhere", {}, 404, "path", "/v1/nowhere"),
    ],
)
def test_errors_are_json(client: TestClient, path: str, body: Any, status: int, field: str, words: str) -> None:
    """Whatever is wrong is answered by JSON that names field and value."""
    content = body if isinstance(body, str) else json.dumps(body)
    found = client.post(path, content=content, headers={"content-type": "application/json"})
    error = found.json()["error"]
    assert (found.status_code, error["field"]) == (status, field) and words in error["problem"], found.text


def test_sessions(client: TestClient, folder: Path) -> None:
    """A session is made once, asked many times, and closed; its log stays."""
    assert client.put("/v1/sessions/a", json={"cluster": "2x8", "price": 60}).status_code == 201
    assert client.put("/v1/sessions/a", json={"cluster": "2x8", "price": 60}).status_code == 200
    assert client.put("/v1/sessions/a", json={"cluster": "3x8"}).status_code == 409
    assert client.put("/v1/sessions/a%20b", json={"cluster": "3x8"}).status_code == 422
    assert (
        client.put("/v1/sessions/b", json={"cluster": "3x8", "prise": 1}).json()["error"]["problem"].endswith("price?")
    )
    assert client.get("/v1/sessions").json() == {"sessions": ["a"], "reads": False}
    answers = client.post("/v1/sessions/a/events", json=[*EVENTS[:3], {"event": "finish", "job": "zz"}]).json()
    assert ["error" in x for x in answers] == [False, False, False, True]
    assert client.post("/v1/sessions/a/events", json={"event": "decisions"}).json()["answer"][0]["number"] == 1
    assert client.delete("/v1/sessions/a").status_code == 200
    assert client.get("/v1/sessions/a/log").status_code == 404
    assert len(list((folder / "logs").glob("a.*.closed"))) == 1


def test_only_who_may_is_answered(folder: Path) -> None:
    """A token is asked for but by `/health`; without one, only names of this machine are heard; only JSON is taken."""
    app, _ = build(Store(folder), replace(LIMITS, bytes=2000), "secret-secret-secret")
    with TestClient(app) as client:
        assert client.get("/health").status_code == 200
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic secret-secret-secret"}):
            found = client.get("/v1/sessions", headers=headers)
            assert found.status_code == 401 and found.json()["error"]["field"] == "authorization"
        bearer = {"authorization": "Bearer secret-secret-secret"}
        assert client.get("/v1/sessions", headers=bearer).status_code == 200
        big = client.post("/v1/decide", json={"x": "y" * 3000}, headers=bearer)
        assert big.status_code == 413 and "3" in big.json()["error"]["problem"]
        parts = (b"y" * 500 for _ in range(9))
        sent = client.post("/v1/decide", content=parts, headers=bearer | {"content-type": "application/json"})
        assert sent.status_code == 413
    app, _ = build(Store(folder), replace(LIMITS, requests=0))
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/v1/sessions", headers={"host": "evil.example:8750"}).status_code == 421
        assert client.get("/v1/sessions").status_code == 429
        assert client.get("/health").status_code == 200


def test_a_full_disk_loses_no_answer(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solve whose answer cannot be kept is answered all the same, and found as long as the process lives."""

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Store, "finish", full)
    found = solved(client)
    assert found.json()["state"] == "done"
    assert client.get(found.headers["location"]).json()["answer"]["status"] == "OPTIMAL"


def test_health_is_that_of_the_store(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store does not answer, or not in time, no requests are taken; once it does, they are."""

    def lost(*_: Any) -> None:
        raise sqlite3.OperationalError("connection refused")

    hung = threading.Event()
    monkeypatch.setattr("gangplan.doors.app._PULSE", 0.1)
    for broken in (lost, lambda *_: hung.wait(60)):
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_do", broken)
            found = [client.get("/health") for _ in range(3)]
        assert [(x.status_code, x.json()) for x in found] == [(503, {"status": "no state"})] * 3
    hung.set()
    while (found := client.get("/health")).status_code == 503:  # the one that hung comes to an end
        pass
    assert found.json() == {"status": "ok"}


def test_one_process_a_folder(folder: Path) -> None:
    """Two services cannot share a folder."""
    first = Store(folder)
    for url, field in (("", "state"), ("postgresql:///x", "logs")):
        with pytest.raises(InstanceError, match=f"{field}: is in use by another"):
            Store(folder, url)
    first.close()
    Store(folder).close()


def test_metrics_and_schema(client: TestClient) -> None:
    """Prometheus finds counts by route, and OpenAPI describes each path."""
    client.put("/v1/sessions/m", json={"cluster": "1x8"})
    client.post("/v1/sessions/m/events", json=[{"event": "decide"}, {"event": "nonsense"}])
    text = client.get("/metrics").text
    assert 'gangplan_requests_total{method="POST",route="/v1/sessions/{name}/events",status="200"} 1' in text
    assert 'gangplan_events_total{event="decide",error="false"} 1' in text
    assert 'gangplan_events_total{event="",error="true"} 1' in text
    assert "gangplan_decision_seconds_count 1" in text and "gangplan_sessions 1" in text
    schema = client.get("/v1/openapi.json").json()
    assert {"/v1/solve", "/v1/verify", "/v1/decide", "/v1/sessions/{name}/events"} <= set(schema["paths"])
