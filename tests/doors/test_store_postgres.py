"""State in PostgreSQL: a real server on loopback; sessions and answers survive, one process serves a database."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")
import psycopg
from starlette.testclient import TestClient

from gangplan.doors.app import build
from gangplan.doors.store import Store
from gangplan.instances import InstanceError

from .conftest import EVENTS, LIMITS
from .test_app import EASY

_PLACES = [Path(found).parent for found in [shutil.which("initdb")] if found]
BIN = next(
    (x for x in [*_PLACES, *sorted(Path("/usr/lib/postgresql").glob("*/bin"))] if (x / "postgres").exists()), None
)


def account() -> dict[str, Any]:
    """Return under whom the server runs, which refuses root."""
    if os.getuid():
        return {}
    try:
        row = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL refuses root, and there is no user postgres")
    return {"user": row.pw_uid, "group": row.pw_gid, "extra_groups": []}


class Server:
    """A PostgreSQL of its own."""

    def __init__(self, folder: Path, who: dict[str, Any]) -> None:
        self.folder, self.who = folder, who
        make = [BIN / "initdb", "-D", folder / "data", "-A", "trust", "-U", "gangplan", "--no-sync"]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **who)
        self.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"postgresql://gangplan@/postgres?host={self.folder}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [BIN / "postgres", "-D", self.folder / "data", "-k", self.folder, "-c", "listen_addresses=", "-F"]
        self.process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.who
        )
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < until
                time.sleep(0.1)

    def stop(self) -> None:
        """Stop it as it would be for an update: connections are cut."""
        self.process.send_signal(2)
        self.process.wait(60)


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a running server, or skip the test where none can be."""
    if BIN is None:
        pytest.skip("there is no PostgreSQL server here")
    who = account()
    folder = Path(tempfile.mkdtemp(prefix="gangplan-pg-"))
    try:
        if who:
            os.chown(folder, who["user"], who["group"])
        found = Server(folder, who)
        yield found
        found.stop()
    finally:
        shutil.rmtree(folder)


def test_state_in_postgres(server: Server, tmp_path: Path) -> None:
    """Sessions and answers are as with SQLite, go on after a restart of either side, and one process has a database."""
    app, _ = build(Store(tmp_path / "a", server.url), LIMITS)
    with TestClient(app, base_url="http://localhost") as client:
        assert client.put("/v1/sessions/s", json={"cluster": "2x8"}).status_code == 201
        assert client.post("/v1/sessions/s/events", json=EVENTS[0]).status_code == 200
        solved = client.post("/v1/solve", json={"problem": EASY, "time_limit": 20})
        assert solved.json()["state"] == "done", solved.text
        with pytest.raises(InstanceError, match="in use by another"):
            Store(tmp_path / "b", server.url)
        server.stop()
        assert client.get("/health").status_code == client.get("/v1/sessions").status_code == 503
        server.start()
        assert client.get("/health").status_code == 200
        assert client.get("/v1/sessions").json() == {"sessions": ["s"]}
        with pytest.raises(InstanceError, match="in use by another"):
            Store(tmp_path / "b", server.url)
    app, _ = build(Store(tmp_path / "a", server.url), LIMITS)
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get(solved.headers["location"]).json()["answer"] == solved.json()["answer"]
        assert client.get("/v1/sessions").json() == {"sessions": ["s"]}
        assert client.delete("/v1/sessions/s").status_code == 200
    assert not (tmp_path / "a" / "state.sqlite").exists()


def test_no_database(tmp_path: Path) -> None:
    """A database that cannot be had is an error that names the state."""
    with pytest.raises(InstanceError, match="PostgreSQL cannot be had"):
        Store(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
