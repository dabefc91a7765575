"""Each write, fsync, fork, pipe and commit of a small scenario fails once: an error is answered, or it goes on."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gangplan.doors.app import build
from gangplan.doors.core import Core
from gangplan.doors.store import Store
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.scheduler import Scheduler

from .conftest import EVENTS, LIMITS
from .test_app import EASY
from .test_core import log_copy

MOST = 40
"""More calls than any of these scenarios has of a kind."""


class Fault:
    """Have the n-th call of a function fail, or, of a write, leave half of its bytes."""

    def __init__(self, real: Callable[..., Any], number: int, error: Exception, half: bool = False) -> None:
        self.real, self.number, self.error, self.half, self.count = real, number, error, half, 0

    def __call__(self, *args: Any, **how: Any) -> Any:
        """Call it."""
        self.count += 1
        if self.count == self.number:
            if self.half and len(args) > 1:
                self.real(args[0], args[1][: len(args[1]) // 2])
            raise self.error
        return self.real(*args, **how)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def failing(where: Any, name: str, number: int, error: Exception = FULL, half: bool = False) -> Iterator[Fault]:
    """Have a call fail inside."""
    with pytest.MonkeyPatch.context() as patch:
        fault = Fault(getattr(where, name), number, error, half)
        patch.setattr(where, name, fault)
        yield fault


def each(scenario: Callable[[int], Fault]) -> int:
    """Play a scenario with its first call failing, its second, ..., until none fails; return how many did."""
    for number in range(1, MOST):
        if scenario(number).count < number:
            assert number > 1
            return number - 1
    raise AssertionError("the scenario never ends")


@pytest.mark.filterwarnings("ignore:gangplan.Scheduler. the log:RuntimeWarning")
@pytest.mark.parametrize(("call", "half"), [("write", False), ("write", True), ("fsync", False)])
def test_a_log_that_cannot_be_written(tmp_path: Path, call: str, half: bool) -> None:
    """Decisions go on, and the log opens to the state that there was once it can be written again."""

    def scenario(number: int) -> Fault:
        log = tmp_path / f"{number}.jsonl"
        with failing(os, call, number, half=half) as fault:
            try:
                core = Core(Scheduler(Fleet.regular(1, 2, 8), log=log, sync=call == "fsync"), log)
            except InstanceError as error:
                assert number == 1 and error.field == "log" and not log.exists()
                return fault
            answers = [core.reply(event) for event in EVENTS[:8]]
        assert [x for x in answers if "error" in x] == []
        core.reply({"event": "decide", "now": 50})
        assert Scheduler.open(log_copy(log)).snapshot() == core.scheduler.snapshot()
        return fault

    assert each(scenario) == 9


@pytest.mark.filterwarnings("ignore:gangplan.Scheduler. the log:RuntimeWarning")
@pytest.mark.parametrize("call", ["write", "open", "fsync"])
def test_sessions_whose_log_fails(tmp_path: Path, call: str) -> None:
    """Each request is answered by JSON; asked again, the session is there as if nothing had happened."""

    def scenario(number: int) -> Fault:
        store = Store(tmp_path / f"{call}{number}", sync=True)
        app, _ = build(store, LIMITS, sync=True)
        with TestClient(app, base_url="http://localhost") as client:
            with failing(os, call, number) as fault:
                found = [client.put("/v1/sessions/a", json={"cluster": "2x8"})]
                found += [client.post("/v1/sessions/a/events", json=event) for event in EVENTS[:3]]
            assert all(x.json() for x in found)
            assert [x.json()["error"] for x in found if x.status_code >= 500] == []
            assert client.put("/v1/sessions/a", json={"cluster": "2x8"}).status_code in (200, 201)
            told = client.post(
                "/v1/sessions/a/events", json=[{"event": "state"}, {"event": "decide", "now": 60}]
            ).json()
            assert "error" not in told[0] and "error" not in told[1], told
            snapshot = client.post("/v1/sessions/a/events", json={"event": "snapshot"}).json()["answer"]
        assert json.loads(json.dumps(Scheduler.open(log_copy(store.log("a"))).snapshot())) == snapshot
        return fault

    assert each(scenario) >= (1 if call == "open" else 4)


def test_rows_that_cannot_be_kept(tmp_path: Path) -> None:
    """Where SQLite fails, a request is answered by an error; nothing half-written stays, the next one is answered."""

    def scenario(number: int) -> Fault:
        store, error = Store(tmp_path / str(number)), sqlite3.OperationalError("database or disk is full")
        app, _ = build(store, LIMITS)
        with TestClient(app, base_url="http://localhost") as client:
            with failing(store, "_do", number, error) as fault:
                found = [client.put("/v1/sessions/a", json={"cluster": "2x8"}),
                         client.post("/v1/sessions/a/events", json=EVENTS[0]), client.get("/v1/sessions"),
                         client.delete("/v1/sessions/a")]  # fmt: skip
            for one in found:
                assert one.json().keys() == {"error"} if one.status_code >= 400 else one.json()
            assert client.put("/v1/sessions/a", json={"cluster": "2x8"}).status_code in (200, 201)
            told = client.post("/v1/sessions/a/events", json={"event": "state"})
            assert told.status_code == 200 and client.delete("/v1/sessions/a").status_code == 200
            assert client.get("/v1/sessions").json() == {"sessions": []}
        return fault

    assert each(scenario) >= 8


def test_processes_that_cannot_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a process (no fork, no pipe) a solve has failed and says why; the next one has its answer."""

    async def fails(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    app, _ = build(Store(tmp_path / "state"), LIMITS)
    with TestClient(app, base_url="http://localhost") as client:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "create_subprocess_exec", fails)
            found = client.post("/v1/solve", json={"problem": EASY, "time_limit": 20}).json()
            assert found["state"] == "failed" and "cannot begin a process" in found["error"]["problem"], found
            verdict = client.post("/v1/verify", json={"problem": EASY, "plan": {}})
            assert verdict.status_code == 503 and "cannot begin a process" in verdict.text
        assert client.post("/v1/solve", json={"problem": EASY, "time_limit": 20}).json()["state"] == "done"
