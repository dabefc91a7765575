"""The client: each path of the service, typed answers, waiting while it is busy, clear errors."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
import uvicorn

from gangplan import PartitionPlan, Scheduler
from gangplan.doors.app import build
from gangplan.doors.client import Client, ServiceError, Session
from gangplan.doors.core import as_json, text_of
from gangplan.doors.store import Store
from gangplan.instances import InstanceError
from gangplan.instances.generators import generate
from gangplan.instances.intake import parse_json
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.decision import Decision, Start

from .conftest import LIMITS

TOKEN = "0123456789abcdef0123"
EASY = generate("layered", ops=20, layers=4, devices=2, seed=1)
HARD = generate("gangs", jobs=60, racks=4, nodes=8, load=0.9, seed=1)
PAGE = {
    "/v1/examples", "/v1/examples/{name}", "/v1/picture", "/v1/replay", "/v1/solves/{name}/plan",
    "/v1/sessions/{name}/cluster",
}  # fmt: skip
"""Paths of which only the page makes anything."""


class Service:
    """The application behind a real socket, which notes what it is asked."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        app, self.solves = build(Store(folder), replace(LIMITS, **limits), TOKEN)
        self.asked: set[tuple[str, str]] = set()
        self.refuse = 0

        async def noted(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.asked.add((scope["method"].lower(), scope["path"]))
                if self.refuse and scope["method"] == "POST":
                    self.refuse -= 1
                    await send({"type": "http.response.start", "status": 429, "headers": [(b"retry-after", b"0.01")]})
                    await send({"type": "http.response.body", "body": b'{"error":{"field":"solves","problem":"busy"}}'})
                    return
            await app(scope, receive, send)

        listens = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listens.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(noted, log_level="warning", lifespan="off"))
        self.server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        run = self.server.serve([listens])
        self.thread = threading.Thread(target=lambda: asyncio.run(run), daemon=True)
        self.thread.start()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a running service."""
    found = Service(tmp_path / "state")
    yield found
    found.server.should_exit = True
    found.thread.join(30)


def test_each_path_is_reached(service: Service) -> None:
    """Every path and method of the OpenAPI document, but for the page's, is asked by a method of the client."""
    client = Client(service.url, TOKEN)
    assert client.health() == {"status": "ok"} and "gangplan_requests" in client.metrics()
    session = client.session("a", "2x8", price=60)
    assert client.sessions() == ["a"]
    session.submit("x", gpus=8, seconds=600, now=0)
    decision = session.decide(deadline=2.0)
    own = Scheduler(Fleet.regular(racks=1, nodes=2, gpus=8), price=60)
    own.submit(GangJob("x", "any", (8,)), 600, now=0)
    assert replace(decision, seconds=0.0) == replace(own.decide(2.0), seconds=0.0)
    assert [row["job"] for row in session.state()["running"]] == ["x"]
    session.finish("x", now=10)
    assert "error" in session.events([{"event": "decide"}, {"event": "finish", "job": "x"}])[1]
    assert session.log().count("\n") >= 4
    session.close()
    assert client.sessions() == []
    answers = client.decide("1x8", [{"event": "decide"}])
    assert client.decide("1x8", [{"event": "decide"}], answers["snapshot"])["answers"][0]["answer"]["number"] == 2
    seen: list[dict[str, Any]] = []
    solved = client.solve(EASY, 20, progress=seen.append)
    assert isinstance(solved.plan, PartitionPlan) and solved.bound == pytest.approx(solved.objective)
    assert seen[-1]["objective"] == solved.objective
    assert client.verify(EASY, solved.plan)["objective"] == solved.objective
    solve = client.begin(HARD, 25)
    next(iter(solve.progress()))
    assert solve.look()["state"] == "running"
    solve.cancel()
    assert solve.result().state == "cancelled"
    for path, methods in client.openapi()["paths"].items():
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        for method in () if path in PAGE else methods:
            assert any(m == method and pattern.fullmatch(p) for m, p in service.asked), f"{method} {path}"


def test_a_cut_decision_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision that its deadline cut is asked for again until all that can start has."""
    asked: list[Any] = []

    def cut(self: Session, event: str, **fields: Any) -> Any:
        asked.append((event, fields))
        start = Start(f"x{len(asked)}", 1, {"node0": (len(asked),)}, "heuristic", 60.0)
        row = Decision(len(asked), 5.0, (start,), "heuristic", more=len(asked) < 3).as_dict()
        return parse_json(text_of(as_json(row)))

    monkeypatch.setattr(Session, "ask", cut)
    decision = Session(Client(), "a").decide(now=5.0)
    assert [x.job for x in decision.starts] == ["x1", "x2", "x3"] and not decision.more
    assert asked == [("decide", {"now": 5.0})] * 3


def test_busy_and_wrong(service: Service) -> None:
    """While the service is busy the client waits; what is wrong is an error with its field."""
    client = Client(service.url, TOKEN)
    session = client.session("a", "2x8")
    service.refuse = 3
    session.submit("x", gpus=8, seconds=600, now=0)
    assert service.refuse == 0
    service.refuse = 1
    with pytest.raises(ServiceError, match="solves: busy") as found:
        Client(service.url, TOKEN, patience=0.0).session("a").submit("y", gpus=8, seconds=600)
    assert (found.value.status, found.value.field) == (429, "solves")
    for act, status, field in (
        (lambda: session.submit("x", gpus=8, seconds=1), 422, "job.name"),
        (lambda: client.solve({}, 1.0), 422, "problem.schema_version"),
        (lambda: client.solve(EASY, 1.0, method="magic"), 200, "method"),
        (lambda: client.session("none").decide(), 404, "session"),
        (Client(service.url, "wrong").sessions, 401, "authorization"),
        (Client("http://127.0.0.1:1").sessions, 0, "service"),
    ):
        with pytest.raises(ServiceError) as found:
            act()
        assert (found.value.status, found.value.field) == (status, field)
    with pytest.raises(InstanceError, match="url"):
        Client("localhost")
