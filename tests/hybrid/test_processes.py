"""A solve wherever it is called: in a pool's worker, in a thread, where no process or no thread can be had."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import gangplan
from gangplan.hybrid import Entry, register, unregister, workers
from gangplan.hybrid.processes import Process, guarded, listen
from gangplan.hybrid.timetable import TimetableSlot
from gangplan.instances.generators import generate
from gangplan.solvers import Run, processes
from gangplan.solvers.method import Method

HARD = {"ops": 20, "layers": 6, "degree": 3.0, "training": False, "devices": 3, "variant": "free", "seed": 4}
"""A problem whose best plan none of the quick methods finds."""

linux = pytest.mark.skipif(not processes.can_fork(), reason="no forks")


@pytest.fixture(scope="module")
def best() -> float:
    """Return the least objective of the problem, proved."""
    result = gangplan.solve(generate("layered", **HARD), time_limit=60, workers=1)
    assert result.status == "OPTIMAL" and result.trace[0].objective > result.objective
    return float(result.objective)


@linux
def test_in_a_worker_of_a_pool(best: float) -> None:
    """A worker of a pool, which is a daemon, solves as well as anybody."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        result = pool.apply(gangplan.solve, (generate("layered", **HARD),), {"time_limit": 60, "workers": 1})
    assert (result.status, result.objective) == ("OPTIMAL", pytest.approx(best))
    assert not [note for note in result.notes if "process" in note]


def test_in_threads(best: float) -> None:
    """Two threads solve at a time."""
    problem = generate("layered", **HARD)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(gangplan.solve, problem, time_limit=60, workers=1) for _ in range(2)]
    assert [call.result().objective for call in calls] == [pytest.approx(best)] * 2


@linux
def test_no_process_to_be_had(best: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no process to give, our methods run here, and a note says so; those of others do not."""

    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def never(run: Run, prepared: Any) -> None:
        raise AssertionError

    workers.close_workers()
    monkeypatch.setattr(workers.subprocess, "Popen", refuse)
    register(Entry("throughput", "stranger", Method(never), share=0.1))
    try:
        result = gangplan.solve(generate("layered", **HARD), time_limit=60, workers=1)
    finally:
        unregister("throughput", "stranger")
    assert result.objective == pytest.approx(best)
    assert f"no process could be begun ({os.strerror(errno.EAGAIN).lower()}): methods run in this one" in result.notes
    assert "stranger left out: no process of its own, and this one is not to be risked" in result.notes


@linux
def test_no_thread_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are neither processes nor threads no solver is begun that would end the program for want of one."""

    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    workers.close_workers()
    monkeypatch.setattr(workers.subprocess, "Popen", refuse)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    result = gangplan.solve(generate("layered", **HARD), time_limit=10, workers=1)
    assert result.plan is not None
    assert any("no threads for ortools" in note for note in result.notes), result.notes


@linux
def test_children_end_with_their_parent() -> None:
    """What a killed program was solving with does not go on without it."""
    program = (
        "import os, time\nfrom gangplan.solvers.processes import Child\n"
        "child = Child(lambda: time.sleep(600))\nprint(child.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL  # and its output has come to an end, which the child held too


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()])
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_what_ends_programs_ends_no_solve(error: BaseException) -> None:
    """A method in this process that would end the program has failed like any other."""

    def leave(run: Run, prepared: Any) -> None:
        raise error

    run = Run(generate("layered", **HARD), time_limit=60)
    guarded(run, Entry("throughput", "leave", Method(leave)), None)
    assert run.notes[0].startswith(f"leave left out: it failed with {type(error).__name__}")


def test_ctrl_c_is_for_the_caller() -> None:
    """Ctrl-C amid a method in this process is no failure of the method."""

    def press(run: Run, prepared: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            guarded(Run(generate("layered", **HARD), time_limit=60), Entry("throughput", "press", Method(press)), None)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_policy_has_one_thread_of_pytorch() -> None:
    """A small network is not slowed down by cores that are busy, and the caller's setting stays."""
    torch = pytest.importorskip("torch")
    before, seen = torch.get_num_threads(), []

    def look(_: Run, __: Any) -> None:
        seen.append(torch.get_num_threads())

    try:
        torch.set_num_threads(3)
        run = Run(generate("layered", **HARD), time_limit=60)
        guarded(run, Entry("throughput", "look", Method(look), learned=True), None)
        guarded(run, Entry("throughput", "look", Method(look)), None)
        assert (seen, torch.get_num_threads()) == ([1, 3], 3)
    finally:
        torch.set_num_threads(before)


def _tell_how_nice(run: Run, prepared: object) -> None:
    run.note(f"nice {os.nice(0)}")


@linux
@pytest.mark.parametrize("beside", [True, False])
def test_what_only_proves_bounds_gives_way(beside: bool) -> None:
    """A process beside the search is nicer than it, and any other is as nice as its parent."""
    run = Run(generate("layered", **HARD), time_limit=60.0)
    process = Process(run, [TimetableSlot(Entry("throughput", "told", Method(_tell_how_nice), beside=beside))])
    while not process.done:
        listen([process])
    assert run.notes == [f"nice {min(19, os.nice(0) + 10 * beside)}"]
