"""The server: one a process, warm, replaced when killed, gone with the caller, whatever the caller is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gangplan
from gangplan.hybrid import Entry, MethodFailed, register, server, unregister
from gangplan.hybrid.table import named
from gangplan.instances.generators import generate
from gangplan.solvers import Run, processes
from gangplan.solvers.method import OBJECTIVES, Method

HARD = {"ops": 20, "layers": 6, "degree": 3.0, "training": False, "devices": 3, "variant": "free", "seed": 4}
"""A problem whose best plan none of the quick methods finds."""

pytestmark = pytest.mark.skipif(not processes.can_serve(), reason="no workers on this system")

PROGRAM = """
import os
print("run", flush=True)
from gangplan import generate, solve
from gangplan.hybrid import server
def tell(run):
    if server._server.process:
        print(server._server.process.pid, flush=True)
        return {limit} < 100
problem = generate("layered", ops=90, layers=10, degree=3.0, training=False, devices=6, variant="free", seed=5)
solve(problem, time_limit={limit}, workers=2, method="cpsat", callbacks=[tell])
"""


def alive(pid: int) -> bool:
    """Return whether there is a process of that number which has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def children(pid: int) -> list[int]:
    """Return the processes that a process has begun."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def gone(pids: list[int]) -> bool:
    """Wait until none of the processes is alive."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


def solved() -> Any:
    """Solve the hard problem to the proof."""
    return gangplan.solve(generate("layered", **HARD), time_limit=60, workers=1)


def pid_of_server() -> int:
    """Return the process of the server."""
    assert server._server.process is not None
    return int(server._server.process.pid)


def test_the_server_stays_and_can_be_closed() -> None:
    """Solves share a server, it ends when it is told to, and the next solve has one again."""
    assert solved().status == "OPTIMAL"
    first = pid_of_server()
    assert solved().status == "OPTIMAL" and pid_of_server() == first
    server.close_workers()
    assert gone([first])
    assert solved().status == "OPTIMAL" and pid_of_server() != first


def test_a_killed_server_is_replaced() -> None:
    """A server and its workers that are killed amid a solve cost the solve what they had at work, no more."""

    def kill(run: Run) -> None:
        if len(run.trace) == 1 and not killed:
            killed.append(pid_of_server())
            os.kill(killed[0], signal.SIGKILL)

    killed: list[int] = []
    result = gangplan.solve(generate("layered", **HARD), time_limit=60, workers=1, callbacks=[kill])
    assert killed and result.status == "OPTIMAL" and pid_of_server() != killed[0]


def test_a_server_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what should start the server ends at once, methods run in the caller, and a note says so."""
    server.close_workers()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    result = solved()
    assert result.status == "OPTIMAL" and any(note.startswith("no process could be begun") for note in result.notes)


def test_a_fork_has_its_own() -> None:
    """A fork of a process that has a server leaves that to its parent, and solves."""
    solved()
    mine = pid_of_server()
    child = os.fork()
    if not child:
        ok = solved().status == "OPTIMAL" and pid_of_server() != mine
        server.close_workers()
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert alive(mine) and solved().status == "OPTIMAL" and pid_of_server() == mine


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a file of Linux")
def test_a_killed_caller_leaves_nobody() -> None:
    """Server and workers of a program that is killed end by themselves."""
    call = [sys.executable, "-c", PROGRAM.format(limit=600)]
    caller = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
    try:
        assert caller.stdout is not None and caller.stdout.readline() == "run\n"
        server_pid = int(caller.stdout.readline())
        until = time.monotonic() + 60.0
        while not (at_work := children(server_pid)) and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        caller.kill()
        caller.wait()
    assert at_work and gone([server_pid, *at_work])


def test_files_of_the_users_folder_are_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh process takes no file of the folder that the user is in for a module of Python's own."""
    (tmp_path / "json.py").write_text("import pathlib; pathlib.Path('taken').touch()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(server, "_MAIN", server._MAIN.partition("from gangplan")[0])
    assert subprocess.run(server.command("server"), check=False).returncode == 0 and not Path("taken").exists()


@pytest.mark.parametrize("way", ["script", "-c", "stdin"])
def test_the_callers_program_runs_once(way: str, tmp_path: Path) -> None:
    """A program without a guard runs once, wherever it comes from, and leaves no process behind."""
    program = PROGRAM.format(limit=60)
    (tmp_path / "program.py").write_text(program)
    call = {"script": [str(tmp_path / "program.py")], "-c": ["-c", program], "stdin": ["-"]}[way]
    done = subprocess.run(
        [sys.executable, *call], input=program, capture_output=True, text=True, check=True, timeout=300
    )
    lines = done.stdout.split()
    assert lines.count("run") == 1 and len(lines) > 1
    assert gone([int(lines[1])])


@pytest.fixture
def locked() -> Iterator[None]:
    """Register a method that holds a lock, which nothing can send to another process."""
    lock = threading.Lock()

    def hold(run: Run, prepared: Any) -> None:
        with lock:
            raise AssertionError

    register(Entry("throughput", "hold", Method(hold), share=0.3))
    yield
    unregister("throughput", "hold")


@pytest.mark.usefixtures("locked")
def test_what_cannot_be_sent_is_left_out() -> None:
    """A method that no worker can be sent has a reason, and no fork of a caller who may have threads."""
    with pytest.warns(MethodFailed, match="hold left out: it cannot be sent to a process"):
        result = solved()
    assert result.status == "OPTIMAL" and "TypeError: cannot pickle '_thread.lock' object" in result.left_out["hold"]


def test_four_threads() -> None:
    """Four threads that solve at a time all have their proof, and one server between them."""
    with ThreadPoolExecutor(4) as pool:
        results = [call.result() for call in [pool.submit(solved) for _ in range(4)]]
    assert [result.status for result in results] == ["OPTIMAL"] * 4
    assert not [note for result in results for note in result.notes if "left out" in note or "process" in note]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="a folder of Linux")
def test_what_a_server_loads_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every library of a solver imported the server has one thread, so that its forks are sound."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # which has one thread in all of the tests
    libraries = {method.library for objective in OBJECTIVES for method in named(objective).values() if method.library}
    program = f"import os, {', '.join(sorted(libraries))}\nprint(len(os.listdir('/proc/self/task')))"
    call = [sys.executable, "-c", program]
    done = subprocess.run(call, env={**os.environ, **server._ONE_THREAD}, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_an_idle_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that nobody asks for anything ends after a while."""
    monkeypatch.setattr(server, "IDLE", 0.05)
    monkeypatch.setattr(server, "_LOOK", 0.01)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server.serve(theirs, os.getppid())


def test_a_server_whose_caller_has_gone_ends() -> None:
    """A server ends when another process than its caller is its parent, or its caller has closed the connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server.serve(theirs, os.getppid() + 1)
        ours.close()
        server.serve(theirs, os.getppid())
