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
    where = solved(client, problem=HARD, time_limit=3, wait=0).headers["location"]
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
        ("/v1/solve", {"problem": {}, "time_limit": 1}, 422, "problem.schema_version", "null is not 1"),
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
    assert client.get("/v1/sessions").json() == {"sessions": ["a"]}
    answers = client.post("/v1/sessions/a/events", json=[*EVENTS[:3], {"event": "finish", "job": "zz"}]).json()
    assert ["error" in x for x in answers] == [False, False, False, True]
    assert client.post("/v1/sessions/a/events", json={"event": "decisions"}).json()["answer"][0]["number"] == 1
    assert client.delete("/v1/sessions/a").status_code == 200
    assert client.get("/v1/sessions/a/log").status_code == 404
    assert len(list((folder / "logs").glob("a.*.closed"))) == 1


def test_a_session_changes_its_settings(client: TestClient) -> None:
    """By an event, with a dry run, and by `PUT` with other settings; not with another cluster, nor without a queue."""
    halves, more = ({"queues": {"a": share, "b": 1 - share}} for share in (0.5, 0.25))
    made = {"cluster": "2x8", "price": 0, "sharing": halves}
    assert client.put("/v1/sessions/s", json=made).status_code == 201
    job = {"event": "submit", "gpus": 4, "seconds": 1e6, "now": 1}
    jobs = [{**job, "job": f"{q}{i}", "queue": q} for q in "ab" for i in "01"]

    def tell(*events: dict[str, Any]) -> Any:
        return client.post("/v1/sessions/s/events", json=[*events]).json()

    tell(*jobs, {"event": "decide", "now": 1}, {**jobs[2], "job": "more"})
    told = tell({"event": "configure", "sharing": more, "now": 5, "dry_run": True})[0]["answer"]
    assert (told["starts"], len(told["stops"])) == (["more"], 1)
    bad = {"event": "configure", "now": 5, "sharing": {"queues": {"a": 1}}}
    assert tell(bad)[0]["error"]["field"] == "sharing.queues"
    assert client.put("/v1/sessions/s", json=made | {"sharing": more, "grace": 30}).status_code == 200
    assert client.put("/v1/sessions/s", json=made | {"sharing": more, "grace": 30}).status_code == 200
    assert client.put("/v1/sessions/s", json=made | {"order": 1}).status_code == 409
    decided = tell({"event": "decide", "now": 5})[0]["answer"]
    assert [x["other"] for x in decided["stopping"]] == ["more"] and not decided["stops"]
    name = decided["stopping"][0]["job"]
    answers = tell({"event": "stopped", "now": 9, "job": name}, {"event": "decide", "now": 9}, {"event": "snapshot"})
    assert [x["job"] for x in answers[1]["answer"]["starts"]] == ["more"]
    asked = made | {"snapshot": answers[2]["answer"], "events": []}
    assert "settings.grace" in client.post("/v1/decide", json=asked).text
    assert client.post("/v1/decide", json=asked | {"settings": "keep"}).json()["snapshot"] == asked["snapshot"]


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


def test_who_may_only_read_changes_nothing(folder: Path) -> None:
    """With the second token all is seen and asked, and nothing is made, told, solved or closed."""
    app, _ = build(Store(folder), LIMITS, "secret-secret-secret", "reader-reader-reader")
    with TestClient(app) as client:
        mine, theirs = ({"authorization": f"Bearer {x}-{x}-{x}"} for x in ("secret", "reader"))
        assert client.put("/v1/sessions/events", json={"cluster": "2x8"}, headers=mine).status_code == 201
        assert client.post("/v1/sessions/events/events", json=EVENTS[:3], headers=mine).status_code == 200
        log = client.get("/v1/sessions/events/log", headers=theirs).content
        seen = ("/v1/sessions", "/v1/sessions/events/cluster", "/v1/openapi.json", "/metrics")
        assert [client.get(path, headers=theirs).status_code for path in seen] == [200] * 4
        assert client.get("/v1/sessions", headers=theirs).json() == {"sessions": ["events"], "reads": True}
        asked = [{"event": "explain", "what": "a"}, {"event": "whatif", "job": "z", "gpus": 8, "seconds": 9}]
        for body in (*asked, asked):
            assert client.post("/v1/sessions/events/events", json=body, headers=theirs).status_code == 200
        for body in (EVENTS[0], [*asked, {"event": "decide"}], {"event": "restore", "snapshot": {}}, {"event": []}, 1):
            found = client.post("/v1/sessions/events/events", json=body, headers=theirs)
            assert (found.status_code, found.json()["error"]["field"]) == (403, "authorization")
        told = [
            client.put("/v1/sessions/x", json={"cluster": "2x8"}, headers=theirs),
            client.put("/v1/sessions/events", json={"cluster": "2x8"}, headers=theirs),
            client.delete("/v1/sessions/events", headers=theirs),
            client.post("/v1/solve", json={}, headers=theirs),
            client.delete("/v1/solves/x", headers=theirs),
        ]
        assert [x.status_code for x in told] == [403] * 5
        assert client.get("/v1/sessions/events/log", headers=mine).content == log


def test_time_is_the_clocks_where_nobody_gives_any(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `now` it is seconds since 1970, forward only; a caller's own stays as it is; days ahead is refused."""
    clock = [1.8e9]
    monkeypatch.setattr("gangplan.doors.sessions.time.time", lambda: clock[0])

    def told(name: str, **event: Any) -> Any:
        return client.post(f"/v1/sessions/{name}/events", json=event).json()

    for name in ("own", "theirs"):
        client.put(f"/v1/sessions/{name}", json={"cluster": "1x8"})
    assert told("own", event="submit", job="a", gpus=8, seconds=60)["now"] == 1.8e9
    clock[0] += 30
    assert told("own", event="decide")["now"] == 1.8e9 + 30
    clock[0] -= 1000  # set back
    assert told("own", event="decide")["now"] == 1.8e9 + 30
    assert client.get("/v1/sessions/own/cluster").json()["now"] == 1.8e9 + 30
    wrong = told("own", event="decide", now=1.8e12)["error"]
    assert wrong["field"] == "now" and wrong["problem"].endswith("since 1970; are these milliseconds?")
    assert told("own", event="decide", now=1.8e9 + 40)["now"] == 1.8e9 + 40
    assert told("theirs", event="submit", job="a", gpus=8, seconds=60, now=0)["now"] == 0
    assert told("theirs", event="decide")["now"] == 0 and told("theirs", event="decide", now=7)["now"] == 7


def test_a_refused_event_leaves_whose_clock_it_is(client: TestClient) -> None:
    """A refused time of a caller's stops no session's clock, neither one that runs nor one that has not begun."""
    client.put("/v1/sessions/s", json={"cluster": "1x8"})

    def told(**event: Any) -> Any:
        return client.post("/v1/sessions/s/events", json=event).json()

    job = {"event": "submit", "job": "b", "seconds": 600}
    assert told(**job, gpus=99, now=5)["error"]["field"] == "job"
    assert (first := told(event="decide")["now"]) > 1e9
    assert "5 is before" in told(**job, gpus=8, now=5)["error"]["problem"]
    assert told(event="decide")["now"] > first


def test_questions_are_answered_as_of_now(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the machine's clock times count from when it is asked, on a caller's from the `now` given; the log stays."""
    clock = [1.8e9]
    monkeypatch.setattr("gangplan.doors.sessions.time.time", lambda: clock[0])

    def told(name: str, **event: Any) -> Any:
        return client.post(f"/v1/sessions/{name}/events", json=event).json()

    for name, times in (("own", ({}, {})), ("theirs", ({"now": 0}, {"now": 400}))):
        client.put(f"/v1/sessions/{name}", json={"cluster": "1x8"})
        clock[0] = began = 1.8e9
        for job in "ab":
            told(name, event="submit", job=job, gpus=8, seconds=600, **times[0])
        told(name, event="decide")
        log, clock[0] = client.get(f"/v1/sessions/{name}/log").content, began + 400
        before = told(name, event="snapshot")["answer"]
        runs, waits = (told(name, event="explain", what=x, **times[1]) for x in "ab")
        assert runs["answer"]["left"] == 200 and "in 200 s" in waits["text"]
        assert waits["now"] == waits["answer"]["now"] == before["now"] + 400
        asked = told(name, event="whatif", job="z", gpus=8, seconds=60, **times[1])
        assert asked["answer"]["earliest"] - asked["answer"]["now"] == 200
        assert told(name, event="state", **times[1])["answer"]["running"][0]["left"] == 200
        assert told(name, event="snapshot")["answer"] == before
        assert client.get(f"/v1/sessions/{name}/log").content == log
    assert client.get("/v1/sessions/own/cluster").json()["running"][0]["left"] == 200


def test_put_changes_only_what_it_names(client: TestClient) -> None:
    """Queues and price that a second request leaves out stay; `null` takes queues away."""

    def settings(**request: Any) -> tuple[list[str], float | None]:
        assert client.put("/v1/sessions/s", json=request).status_code in (200, 201)
        snapshot = client.post("/v1/sessions/s/events", json={"event": "snapshot"}).json()["answer"]
        return list((snapshot.get("sharing") or {}).get("queues", ())), snapshot["settings"]["price"]

    assert settings(cluster="2x8", price=60, sharing={"queues": {"a": 1}}) == (["a"], 60)
    assert settings(cluster="2x8", patience=9) == (["a"], 60)
    assert settings(price=30) == (["a"], 30)
    assert settings(sharing=None) == ([], 30)
    assert settings(cluster="2x8") == ([], 30)


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
    """Prometheus finds counts by route and event, a refused one by its name if it is one; OpenAPI has each path."""
    client.put("/v1/sessions/m", json={"cluster": "1x8"})
    refused = [{"event": "finish", "job": "a"}, {"event": "nonsense"}, {"event": ["a"]}, 7]
    client.post("/v1/sessions/m/events", json=[{"event": "decide"}, *refused])
    text = client.get("/metrics").text
    assert 'gangplan_requests_total{method="POST",route="/v1/sessions/{name}/events",status="200"} 1' in text
    assert 'gangplan_events_total{event="decide",error="false"} 1' in text
    assert 'gangplan_events_total{event="finish",error="true"} 1' in text
    assert 'gangplan_events_total{event="",error="true"} 3' in text and "nonsense" not in text
    assert "gangplan_decision_seconds_count 1" in text and "gangplan_sessions 1" in text
    schema = client.get("/v1/openapi.json").json()
    assert "None" not in client.get("/v1/openapi.json").text
    assert {"/v1/solve", "/v1/verify", "/v1/decide", "/v1/sessions/{name}/events"} <= set(schema["paths"])


def test_metrics_of_clusters(client: TestClient) -> None:
    """Prometheus finds GPUs by type, jobs and shares by queue, stops by cause and who decided, of any name."""
    queue, kinds = 'q"\\\n', {"H100": 1, "A100": 1}
    given = {"racks": 1, "nodes": 2, "gpus": 8, "gpu_type": kinds}
    assert client.put("/v1/sessions/m", json={"cluster": given, "price": 1}).status_code == 201
    job = {"job": {"name": "a", "workers": [6], "gpu_types": ["H100"]}, "seconds": 9000, "queue": queue}
    more = {"job": {"name": "b", "workers": [8], "gpu_types": ["H100"]}, "seconds": 9, "priority": 1}
    both = ({"event": "submit", "now": 100 * i, **x} for i, x in enumerate((job, more)))
    events = [y for x in both for y in (x, {"event": "decide"})]
    client.post("/v1/sessions/m/events", json=[*events, {"event": "fail_node", "node": "node1"}])
    lines = client.get("/metrics").text.splitlines()
    for line in (
        'gpus{session="m",type="H100",state="held"} 8', 'gpus{session="m",type="H100",state="idle"} 0',
        'gpus{session="m",type="A100",state="down"} 8', 'stops_total{session="m",cause="gain"} 1',
        r'jobs{session="m",queue="q\"\\\n",state="waiting"} 1', 'jobs{session="m",queue="",state="running"} 1',
        'queue_share{session="m",queue="",of="held"} 0.5', 'tiers_total{session="m",tier="stops"} 1',
    ):  # fmt: skip
        assert f"gangplan_{line}" in lines, [x for x in lines if "session" in x]
    found = client.get("/v1/sessions/m/cluster", params={"search": "Q"}).json()
    assert [x["job"] for x in found["waiting"]] == ["a"] and not found["running"] and found["runs"] == 1
    assert found["tier"] == "stops"
    assert client.get("/v1/sessions/m/cluster", params={"after": found["line"]}).status_code == 204
