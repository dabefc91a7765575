"""Real processes: `gangplan serve` and `gangplan decide` survive kill -9, and end in good order."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .conftest import EVENTS
from .test_app import HARD
from .test_core import decisions_of, in_python

GANGPLAN = [sys.executable, "-P", "-m", "gangplan"]


def run(command: list[str], **how: Any) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end."""
    return subprocess.run(command, check=False, capture_output=True, timeout=60, **how)


class Service:
    """A `gangplan serve` of its own at a free port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.process = folder, None
        self.start()

    def start(self, *options: str) -> None:
        """Start it, and wait until it listens."""
        command = [*GANGPLAN, "serve", "--port", "0", "--state", str(self.folder), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        where = re.fullmatch(r"gangplan serves (http://127\.0\.0\.1:\d+)\n", self.process.stdout.readline())
        assert where is not None, self.process.stderr.read()
        self.http = httpx.Client(base_url=where[1], timeout=60.0)

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal; return exit code and what is on stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        self.http.close()
        return self.process.returncode, errors

    def solve(self, seconds: float, wait: float) -> httpx.Response:
        """Ask for a solve that takes all of its time."""
        return self.http.post("/v1/solve", json={"problem": HARD, "time_limit": seconds, "wait": wait})


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a running service."""
    found = Service(tmp_path / "state")
    yield found
    if found.process.poll() is None:
        found.end(signal.SIGKILL)


def test_kill_and_restart_lose_nothing(service: Service) -> None:
    """Killed at any event, sessions go on as if nothing had happened; a solve that was lost is reported failed."""
    assert service.http.put("/v1/sessions/s", json={"cluster": "2x8"}).status_code == 201
    where, answers = "", list[dict[str, Any]]()
    for i, event in enumerate(EVENTS):
        answers.append(service.http.post("/v1/sessions/s/events", json=event).json())
        if i in (2, 9):
            where = service.solve(60, 0).headers["location"]
            service.end(signal.SIGKILL)
            service.start()
            lost = service.http.get(where).json()
            assert lost["state"] == "failed" and lost["error"]["field"] == "service"
    assert decisions_of(answers) == in_python()
    told = service.http.post("/v1/sessions/s/events", json={"event": "decisions", "after": 4}).json()["answer"]
    assert [row["number"] for row in told] == [5, 6]


def test_sigterm_answers_what_has_begun(service: Service) -> None:
    """After SIGTERM a running solve is answered with its plan, a waiting one is cancelled, and the exit code is 0."""
    service.end(signal.SIGKILL)
    service.start("--grace", "1")
    later = service.solve(60, 0).headers["location"]
    waiting = service.solve(60, 0).headers["location"]
    with service.http.stream("GET", f"{later}/progress") as stream:
        lines = stream.iter_lines()
        while '"objective":' not in (line := next(lines)) or '"objective":null' in line:
            pass
        service.process.send_signal(signal.SIGTERM)
        *_, last = (line for line in lines if line.startswith("data: "))
    answer = json.loads(last[6:])
    assert answer["state"] == "cancelled" and answer["answer"]["stop_reason"] == "interrupted"
    code, errors = service.end(0)
    assert (code, errors) == (0, "")
    service.start()
    assert service.http.get(later).json()["answer"]["plan"]
    assert service.http.get(waiting).json()["state"] == "cancelled"
    assert service.end(signal.SIGTERM) == (0, "")


def test_no_process_is_left(service: Service) -> None:
    """Killed, it leaves no process of a solve behind."""
    service.solve(60, 1.0)
    ids = run(["pgrep", "-P", str(service.process.pid)], text=True).stdout.split()
    assert ids
    service.end(signal.SIGKILL)
    until = time.monotonic() + 120
    while any(Path(f"/proc/{x}").exists() and "Z" not in state_of(x) for x in ids):
        assert time.monotonic() < until
        time.sleep(0.2)


def state_of(number: str) -> str:
    """Return the letter that Linux has for what a process does."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--host", "0.0.0.0"), "is not loopback: give a token"),
        (("--host", "nowhere.invalid", "--token-file", "token"), "port: nowhere.invalid"),
        (("--port", "70000"), "is not from 0 to 65535"),
        (("--grace", "nan"), "grace"),
        (("--state", "mysql://x"), "state: 'mysql://x'"),
        (("--state", "postgresql+psycopg://a@h/x"), "state: 'postgresql+psycopg://a@h/x'"),
        (("--state", "postgresql:///x", "--logs", "s3://x"), "logs: 's3://x' is not a folder"),
        (("--state", ""), "--state: is empty"),
    ],
)
def test_what_is_refused(options: tuple[str, ...], words: str, tmp_path: Path) -> None:
    """Off loopback a token is needed; other options are checked before anything listens."""
    (tmp_path / "token").write_text("0123456789abcdef0123\n")
    done = run([*GANGPLAN, "serve", *options], cwd=tmp_path, text=True)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert [x.name for x in tmp_path.iterdir()] == ["token"]


def test_decide_survives_kill(tmp_path: Path) -> None:
    """`gangplan decide --log` killed after any line goes on where it was."""
    command = [*GANGPLAN, "decide", "--set", "patience=50", "--log", str(tmp_path / "log.jsonl"), "--cluster", "2x8"]
    answers = list[dict[str, Any]]()
    for part in (EVENTS[:3], EVENTS[3:10], EVENTS[10:]):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for event in part:
                process.stdin.write(f"{json.dumps(event)}\n".encode())
                process.stdin.flush()
                answers.append(json.loads(process.stdout.readline()))
            process.kill()
    assert decisions_of(answers) == in_python()
    (tmp_path / "cut.jsonl").write_bytes((tmp_path / "log.jsonl").read_bytes()[:40])
    command[-3] = str(tmp_path / "cut.jsonl")
    done = run(command, input=b'{"event":"decide"}\n')
    assert json.loads(done.stdout)["answer"]["number"] == 1 and done.returncode == 0
    cut = (tmp_path / "cut.jsonl").read_text()
    (tmp_path / "cut.jsonl").write_text(cut.replace(',"max_wait":86400.0', "", 1))  # as it was before there was one
    done = run(command, input=b'{"event":"decide"}\n')
    assert json.loads(done.stdout)["answer"]["number"] == 2 and done.returncode == 0 and "max_wait" in cut
    done = run([*GANGPLAN, "decide", "--set", "order=1", *command[-4:]], input=b"")
    assert done.returncode == 2 and b"set: order is not as in the log" in done.stderr
    done = run([*command[:-1], "9x8"], input=b"")
    assert done.returncode == 2 and b"'9x8' is not that of the log" in done.stderr
    for log, cluster, words in (
        ("x", "", b"--cluster: is empty"),
        ("", "1x8", b"--log: is empty"),
        (".", "1x8", b"log: is a"),
    ):
        done = run([*GANGPLAN, "decide", "--log", log, "--cluster", cluster], input=b"", cwd=tmp_path)
        assert done.returncode == 2 and words in done.stderr and b"Traceback" not in done.stderr
