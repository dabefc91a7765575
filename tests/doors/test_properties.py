"""Whatever comes in, a door answers each line and request in JSON: never a traceback, never a hang."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from gangplan.doors.core import Core, answer_lines
from gangplan.doors.schema import KNOWN, parts_of
from gangplan.instances.placement import Fleet
from gangplan.scheduler import Scheduler

from ..seeds import examples
from .test_core import log_copy

EXAMPLES = int(os.environ.get("GANGPLAN_FUZZ") or examples(60))
"""Examples of each test, with up to 12 events; more by the variable."""
LONGEST = 60.0
"""Seconds that an answer may take."""

names = st.sampled_from(["a", "b", "c", "a[0]", "node0", "node1", "window1", "", "x" * 300, "\x00", "\ud800", "é"])
numbers = st.one_of(
    st.integers(-2, 20), st.sampled_from([0.5, 1e308, -1e308, 2**63, 10**30, 1e-300, 60.0]), st.floats(0, 1e4)
)
plain = st.one_of(st.none(), st.booleans(), numbers, names)
values: st.SearchStrategy[Any] = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(names, st.just("type")), inner, max_size=3)
    ),
    max_leaves=6,
)
demands = st.fixed_dictionaries({}, optional=dict.fromkeys(("gpu", "cpu", "memory", "nic"), numbers))
gangs = st.fixed_dictionaries(
    {"name": names, "workers": st.lists(st.integers(0, 9), max_size=3)},
    optional={
        "worker": demands, "server": demands, "servers": numbers, "collective": st.sampled_from(["ps", "ring", "x"]),
        "requires": st.lists(names, max_size=2), "type": st.sampled_from(["GangJob", "Demand", "Fleet", "pairs", "x"]),
        "apart": st.lists(names, max_size=2), "whole_nodes": values, "model": values, "gpu_types": st.just(["A100"]),
    },
)  # fmt: skip


RIGHT: dict[str, list[Any]] = {
    "job": ["a", "b", "c", "d"], "node": ["node0", "node1", 0, 1], "seconds": [0.0, 5.0, 100, [60.0]],
    "now": [0, 5, 50, 500], "deadline": [0.1], "speed": [1.0, 3.5], "count": [1, 3], "what": ["a", "b", "c", 1],
    "window": ["window1", "drain-node0"], "nodes": [1, ["node0"], ["node1"]], "fleet": ["2x8", "1x8", "3x8"],
    "domain": ["node1", "rack", "rack 0"], "at": [0, 60], "until": [600], "price": [5.0, None], "priority": [1, -1],
    "begin": [0, 100], "after": [["a"], ["b"]], "within": ["rack", "node"], "group": [2], "limit": [50.0],
    "user": ["ann"], "queue": ["q"], "together": [True, False], "replace": [True], "gang": ["b"], "worth": [1e9],
}  # fmt: skip
"""Values that may be right."""


@st.composite
def events(draw: st.DrawFn) -> Any:
    """Draw an event, most with fields that its kind has, most of them right."""
    name, wrong = draw(st.sampled_from(KNOWN)), draw(st.integers(0, 2)) == 0
    event: dict[str, Any] = {"event": name}
    submits = name in ("submit", "whatif", "submit_array")
    for key, part in parts_of(name).items():
        if not part.optional or draw(st.integers(0, 4)) == 0:
            junk = st.one_of(gangs, names, values) if key == "job" and submits else st.one_of(names, numbers, values)
            event[key] = draw(junk if wrong or key not in RIGHT else st.sampled_from(RIGHT[key]))
    if isinstance(event.get("job"), str) and submits:
        event["gpus"] = draw(values if wrong else st.integers(1, 16))
    if wrong and draw(st.integers(0, 3)) == 0:
        event[draw(names)] = draw(values)
    return draw(values) if wrong and draw(st.integers(0, 5)) == 0 else event


def check(core: Core, content: bytes, count: int) -> Iterator[dict[str, Any]]:
    """Yield the answers to lines, once each is answered by JSON in time."""
    out, began = io.BytesIO(), time.monotonic()
    answer_lines(core, io.BytesIO(content), out.write)
    assert time.monotonic() - began < LONGEST * count
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(answers) == count
    for answer in answers:
        assert ("error" in answer) != ("answer" in answer)
        if "error" in answer:
            assert answer["error"]["problem"] and "Traceback" not in answer["error"]["problem"]
        yield answer


def core_of(settings_of: dict[str, Any], log: Any = None) -> Core:
    """Return a core of two nodes on which something runs and something waits."""
    core = Core(Scheduler(Fleet.regular(1, 2, 8), log=log, **settings_of), log)
    for event in (
        {"event": "submit", "now": 0, "job": "a", "gpus": 8, "seconds": 100},
        {"event": "submit", "job": "b", "gpus": 16, "seconds": 10},
        {"event": "decide", "deadline": 1.0},
    ):
        core.answer(event)
    return core


@settings(max_examples=EXAMPLES)
@given(st.lists(events(), min_size=1, max_size=12), st.sampled_from([{}, {"price": 5.0}, {"durations": "history"}]))
def test_events(told: list[Any], how: dict[str, Any]) -> None:
    """Any events are answered each, and what is wrong changes nothing."""
    core = core_of(how)
    for event in told:
        before = core.scheduler.snapshot()
        (answer,) = check(core, json.dumps(event).encode() + b"\n", 1)
        if "error" in answer:
            after = core.scheduler.snapshot()
            assert after == before, (event, answer)
            assert "cannot be done" not in answer["error"]["problem"], (event, answer)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.binary(max_size=60).filter(lambda x: x.strip(b" \t\r\n\v\f") and b"\n" not in x), max_size=8))
def test_bytes(lines: list[bytes]) -> None:
    """Any bytes are answered line by line."""
    content = b"".join(line + b"\n" for line in lines) + b'{"event":"decide"}\n'
    *_, last = check(Core(Scheduler(Fleet.regular(1, 1, 8))), content, len(lines) + 1)
    assert last["answer"]["number"] == 1


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a call that gives a new file for a log."""
    folder, number = tmp_path_factory.mktemp("logs"), iter(range(10**9))
    yield lambda: folder / f"{next(number)}.jsonl"


@settings(max_examples=EXAMPLES)
@given(told=st.lists(events(), min_size=1, max_size=12))
def test_logs_open_again(logs: Any, told: list[Any]) -> None:
    """Whatever events came, the log opens to the state that there was."""
    core = core_of({}, log := logs())
    for event in told:
        core.reply(json.loads(json.dumps(event)))
    assert Scheduler.open(log_copy(log)).snapshot() == core.scheduler.snapshot()


paths = st.sampled_from(
    ["/v1/decide", "/v1/sessions/a", "/v1/sessions/a/events", "/v1/sessions/b/events", "/v1/solves/x", "/v1/sessions",
     "/v1/solves/x/progress?after=y", "/health", "/metrics", "/v1/nowhere", "/v1/sessions/%00", "/v1/sessions/..%2f"]
)  # fmt: skip
bodies = st.one_of(
    st.lists(events(), max_size=5),
    events(),
    values,
    st.fixed_dictionaries(
        {"cluster": st.one_of(st.sampled_from(["2x8", "1x2x8", "0x8", "99999999x8", "x"]), values)},
        optional={
            "events": st.lists(events(), max_size=4), "snapshot": values, "policy": values, "price": values,
            "sharing": values, "speeds": values, "together": values, "order": values, "durations": values,
        },
    ),
)  # fmt: skip


@settings(max_examples=4 * EXAMPLES)
@given(method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "PATCH"]), path=paths, body=bodies)
def test_requests(http: TestClient, method: str, path: str, body: Any) -> None:
    """Any request is answered in JSON, and no fault is the service's."""
    began = time.monotonic()
    content = json.dumps(body).encode()
    found = http.request(method, path, content=content, headers={"content-type": "application/json"})
    assert time.monotonic() - began < LONGEST
    assert found.status_code < 500, found.text
    if path != "/metrics" and method != "HEAD":
        data = found.json()
        assert found.status_code < 400 or set(data) == {"error"} or "event" in data, data


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Return a client of a service with a session."""
    from gangplan.doors.app import build
    from gangplan.doors.store import Store

    from .conftest import LIMITS

    app, _ = build(Store(tmp_path_factory.mktemp("state")), LIMITS)
    with TestClient(app, base_url="http://localhost") as client:
        client.put("/v1/sessions/b", json={"cluster": "2x8"})
        yield client
