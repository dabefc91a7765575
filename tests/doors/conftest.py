"""What the tests of doors share: a scheduler's events, and an HTTP client that needs no socket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
from starlette.testclient import TestClient

from gangplan.doors.app import build
from gangplan.doors.limits import Limits
from gangplan.doors.store import Store

LIMITS = replace(Limits(), seconds=30.0, queue=2, workers=1, events=20, deadline=2.0, grace=5.0)

EVENTS: list[dict[str, Any]] = [
    {"event": "submit", "now": 0, "job": "a", "gpus": 8, "seconds": 3600, "user": "ann"},
    {"event": "submit", "job": {"name": "b", "workers": [2, 4]}, "seconds": 600, "priority": 2},
    {"event": "decide", "deadline": 2.0},
    {"event": "submit_array", "now": 10, "job": "c", "gpus": 4, "count": 3, "seconds": 60},
    {"event": "decide", "deadline": 2.0},
    {"event": "drain", "node": "node1", "until": 500},
    {"event": "change", "job": "c[0]", "priority": 5},
    {"event": "fail_node", "now": 20, "node": 0},
    {"event": "decide", "deadline": 2.0},
    {"event": "repair_node", "now": 30, "node": 0},
    {"event": "decide", "deadline": 2.0},
    {"event": "withdraw", "job": "c[2]"},
    {"event": "undrain", "node": "node1"},
    {"event": "decide", "now": 40, "deadline": 2.0},
    {"event": "finish", "now": 90, "job": "b"},
    {"event": "decide", "now": 100, "deadline": 2.0},
]
"""What happens on a cluster of two nodes of eight GPUs."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where state is kept."""
    return tmp_path / "state"


@pytest.fixture
def client(folder: Path, request: pytest.FixtureRequest) -> Iterator[TestClient]:
    """Return a client of a service with the limits of the tests; the parameter, if any, is the longest solve."""
    app, _ = build(Store(folder), replace(LIMITS, seconds=getattr(request, "param", LIMITS.seconds)))
    with TestClient(app, base_url="http://localhost") as found:
        yield found
