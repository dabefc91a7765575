"""A solve wherever it is called: in a pool's worker, in a thread, where no process or no thread can be had."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import pytest

import gangplan
from gangplan.hybrid import Entry, portfolio, register, server, unregister
from gangplan.hybrid.guard import ALONE, BESIDE, THREAD, Heard, Performer, Process, Searcher, TimetableSlot, guarded
from gangplan.hybrid.worker import Tell
from gangplan.instances.generators import generate
from gangplan.solvers import Run, processes
from gangplan.solvers.method import Method

HARD = {"ops": 20, "layers": 6, "degree": 3.0, "training": False, "devices": 3, "variant": "free", "seed": 4}
"""A problem whose best plan none of the quick methods finds."""

PIPELINE = {"ops": 20, "layers": 6, "training": False, "devices": 3, "seed": 4}

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
    """Four threads solve at a time, each to the proof."""
    problem = generate("layered", **HARD)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(gangplan.solve, problem, time_limit=60, workers=1) for _ in range(4)]
    results = [call.result() for call in calls]
    assert [(x.status, x.objective) for x in results] == [("OPTIMAL", pytest.approx(best))] * 4
    assert not [note for x in results for note in x.notes if "left out" in note or "process" in note]


def begun(run: Run, method: Callable[[Run, Any], None], where: str = ALONE, share: float = 1.0) -> Process:
    """Return a process with a method at work."""
    entry = Entry("throughput", method.__name__.strip("_"), Method(method))
    process = Process(run, Heard(), entry)
    process.start(TimetableSlot(entry, where, share=share))
    return process


def hear(performer: Performer) -> None:
    """Take what is said within a moment, and look at the clock."""
    with suppress(Empty):
        who, message = performer.heard.get(timeout=0.05)
        who.listen(message)
    performer.watch()


def finish(performer: Performer) -> None:
    """Listen until the method at work is over."""
    while performer.slot is not None and not performer.gone:
        hear(performer)
    performer.end()


def gone(pid: int) -> bool:
    """Wait until a process is not there any more, or only what is left of it."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def _writes(run: Run, prepared: Any) -> None:
    for descriptor in range(3, 256):
        try:
            os.write(descriptor, b"x")
        except OSError:
            continue


@linux
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_a_registered_method_has_no_file_of_the_callers() -> None:
    """What the caller has open, a registered method cannot write to."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    register(Entry("throughput", "writes", Method(_writes), share=0.3))
    try:
        gangplan.solve(generate("layered", **HARD), time_limit=60, workers=1)
    finally:
        unregister("throughput", "writes")
    with pytest.raises(BlockingIOError):
        os.read(read, 1)
    os.close(read)
    os.close(write)


@linux
def test_a_solver_ends_when_something_beside_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process beside a search proves ends the search, which looks at the clock."""

    def prove(run: Run, prepared: Any) -> None:
        time.sleep(0.3)
        run.raise_bound(run.objective or 0.0, "prove")

    def wait(run: Run, prepared: Any) -> None:
        while not run.stopped:
            time.sleep(0.01)

    problem = generate("layered", **HARD)
    entries = [Entry("throughput", "prove", Method(prove, library="json"), beside=True)]
    entries += [Entry("throughput", name, Method(wait)) for name in ("wait", "on")]
    monkeypatch.setattr(portfolio, "suited", lambda _: entries)
    run = Run(problem, time_limit=60, workers=2)
    run.offer(gangplan.solve(problem, time_limit=60, workers=1, method="pipedream").plan, "first")
    portfolio.run_methods(run, "auto")
    assert (run.stop_reason, run.bound_by) == ("claimed", "prove") and run.seconds() < 30
    assert {(turn.method, turn.where) for turn in run.turns.values()} == {("wait", "thread"), ("prove", "beside")}


@linux
def test_no_process_to_be_had(best: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no process to give, our methods run here, and a note says so; those of others do not."""

    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def never(run: Run, prepared: Any) -> None:
        raise AssertionError

    server.close_workers()
    monkeypatch.setattr(subprocess, "Popen", refuse)
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
    """Without processes and threads no solver is begun that would end the program for want of one; searches go on."""

    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    server.close_workers()
    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    result = gangplan.solve(generate("layered", **HARD), time_limit=10, workers=2)
    assert result.plan is not None and "local_search" not in result.left_out
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
    finish(begun(run, _tell_how_nice, BESIDE if beside else ALONE))
    assert run.notes == [f"nice {min(19, os.nice(0) + 10 * beside)}"]


def outbox(tell: Tell) -> Connection:
    """Return the connection of a method to the caller."""
    cells = tell.send.__closure__ or ()  # type: ignore[attr-defined]
    return next(cell.cell_contents for cell in cells if isinstance(cell.cell_contents, Connection))


def _trickles(tell: Tell) -> None:
    os.write(outbox(tell).fileno(), b"\0\0\1\0")
    for _ in range(150):
        os.write(outbox(tell).fileno(), b"x")
        time.sleep(0.2)


def _floods(tell: Tell) -> None:
    until = time.perf_counter() + 30.0
    while time.perf_counter() < until:
        tell.send("bound", 1.0, "floods")


def _hangs_up(tell: Tell) -> None:
    outbox(tell).close()
    time.sleep(30.0)


@linux
@pytest.mark.parametrize("says", [_trickles, _floods, _hangs_up])
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_however_it_talks_it_has_its_time_alone(says: Callable[[Tell], None]) -> None:
    """A method that says a message bit by bit, message upon message, or nothing is killed when its time is up."""

    def talks(run: Run, prepared: object) -> None:
        says(run.callbacks[0])  # type: ignore[arg-type]

    run, longest = Run(generate("layered", **HARD), time_limit=60.0), 0.0
    process = begun(run, talks, share=0.01)
    while process.slot is not None:
        since = time.perf_counter()
        hear(process)
        longest = max(longest, time.perf_counter() - since)
    assert run.seconds() < 20 and longest < 10 and "talks" in run.left_out


@pytest.mark.parametrize("message", [("bound",), ("bound", "high", "x"), ("infeasible",), ("proof",), ("ready",)])
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_claims_that_say_nothing_are_nonsense(message: Any) -> None:
    """A registered method that claims without a value, or with a word for one, is given up, and nothing is raised."""
    run = Run(generate("layered", **HARD), time_limit=60.0)
    entry = Entry("throughput", "odd", Method(_writes), added=True)
    performer = Performer(run, Heard())
    performer.start(TimetableSlot(entry, ALONE))
    performer.listen(message)
    assert performer.gone and "nonsense" in run.left_out["odd"]


@linux
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_a_process_is_ready_once() -> None:
    """A method that says in the name of its process that this is ready gets no second order, which nobody reads."""

    def sleeps(run: Run, prepared: object) -> None:
        time.sleep(30.0)

    run = Run(generate("layered", **HARD), time_limit=60.0)
    process = begun(run, sleeps)
    while not process.ready:
        hear(process)
    process.listen(("ready",))
    assert process.gone and "nonsense" in run.left_out["sleeps"]


@linux
def test_what_a_method_starts_ends_with_it(tmp_path: Path) -> None:
    """A process that a child leaves behind is killed, though the child has ended by itself."""

    def leave() -> None:
        (tmp_path / "pid").write_text(str(subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL).pid))

    child = processes.Child(leave)
    child.join(60.0)
    assert not child.alive() and gone(int((tmp_path / "pid").read_text()))


@linux
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_numbers_of_numpy_are_bounds() -> None:
    """A bound is a number, of whatever type."""

    def prove(run: Run, prepared: object) -> None:
        run.raise_bound(np.float32(0.5), "prove")  # type: ignore[arg-type]

    run = Run(generate("layered", **HARD), time_limit=60.0)
    finish(begun(run, prove))
    assert (run.bound, run.left_out) == (0.5, {})


@linux
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_what_cannot_be_told_is_a_failure() -> None:
    """A plan that cannot be sent is not lost in silence."""
    problem = generate("layered", **HARD)
    plan = gangplan.solve(problem, time_limit=60, workers=1, method="pipedream").plan

    class Mine(gangplan.PartitionPlan):
        """Of a class that nobody finds by its name."""

    def offer(run: Run, prepared: object) -> None:
        run.offer(Mine(**{field.name: getattr(plan, field.name) for field in fields(plan)}), "offer")

    run = Run(problem, time_limit=60.0)
    finish(begun(run, offer))
    assert "Mine" in run.left_out["offer"]


@linux
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_a_method_by_name_does_not_end_the_program() -> None:
    """What would end a program is no error for the caller: it is noted."""

    def leave(run: Run, prepared: object) -> None:
        raise SystemExit(0)

    register(Entry("throughput", "leave", Method(leave)))
    try:
        result = gangplan.solve(generate("layered", **HARD), time_limit=60, method="leave")
    finally:
        unregister("throughput", "leave")
    assert result.left_out == {"leave": "it failed with SystemExit: 0"}


@linux
def test_an_event_loop_hears_no_signals_of_children() -> None:
    """What wakes the caller's event loop is not written by signals that a child gets."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        before = signal.set_wakeup_fd(theirs.fileno())

        def work() -> None:
            signal.signal(signal.SIGUSR1, lambda *_: None)
            os.kill(os.getpid(), signal.SIGUSR1)

        try:
            child = processes.Child(work)
            while child.alive():
                time.sleep(0.01)
            with pytest.raises(BlockingIOError):
                print(ours.recv(1))
        finally:
            signal.set_wakeup_fd(before)


@linux
def test_no_connection_is_where_streams_were() -> None:
    """Where the caller has closed its standard streams, what a method prints is no message."""
    program = (
        "import os\nfrom gangplan.solvers.processes import connected\nos.close(0)\nos.close(1)\n"
        "assert min(end.fileno() for end in connected()) > 2\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@linux
def test_threads_that_fork_at_once_leave_filters_of_warnings() -> None:
    """What the caller wants to be warned of stays, however many threads fork at a time."""

    def fork(_: int) -> None:
        for _ in range(50):
            processes.Child(lambda: None).join(60.0)

    before, interval = list(warnings.filters), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
            warnings.simplefilter("error")
            changed = list(warnings.filters)
            list(pool.map(fork, range(4)))
            assert list(warnings.filters) == changed
    finally:
        sys.setswitchinterval(interval)
    assert list(warnings.filters) == before


def test_highs_that_has_had_threads() -> None:
    """HiGHS solves in a fork of a process where it has had threads, which are not in the fork."""
    pytest.importorskip("highspy")
    program = (
        "import highspy, gangplan\nfrom gangplan import generate, solve\n"
        "solver = highspy.Highs()\nsolver.setOptionValue('output_flag', False)\n"
        "solver.setOptionValue('threads', 4)\nsolver.setOptionValue('parallel', 'on')\n"
        "x = [solver.addBinary(obj=-1.0 - i % 3) for i in range(20)]\n"
        "solver.addConstr(sum((i % 7 + 2) * x[i] for i in range(20)) <= 30)\nsolver.run()\n"
        "problem = generate('layered', ops=8, layers=4, training=False, devices=2)\n"
        "result = solve(problem, time_limit=60, method='plain_milp', workers=2)\n"
        "assert result.status == 'OPTIMAL', result\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_crash_of_highs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends HiGHS before its time has failed."""
    highs = pytest.importorskip("gangplan.solvers.highs")
    monkeypatch.setattr(highs, "forked", lambda *_: None)
    with pytest.raises(RuntimeError, match="HiGHS has crashed"):
        gangplan.solve(generate("layered", **HARD), time_limit=0.4, method="plain_milp")


def test_a_thread_does_not_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS in a thread of the caller solves there: a fork would find the locks of other threads held."""
    pytest.importorskip("gangplan.solvers.highs")
    monkeypatch.setattr(os, "fork", None)
    problem = generate("layered", ops=5, layers=3, training=False, devices=2)
    for _ in range(3):  # what is busy elsewhere
        result = gangplan.solve(problem, time_limit=0.45, method="plain_milp", workers=1)
        if result.status == "OPTIMAL":
            break
    assert result.status == "OPTIMAL" and {turn.where for turn in result.turns} == {"thread"}


def searching(run: Run, method: Callable[[Run, Any], None], *, named: bool = False, share: float = 1.0) -> Searcher:
    """Return a thread with a search at work."""
    entry = Entry("throughput", method.__name__.strip("_"), Method(method))
    searcher = Searcher(run, Heard(), None, named=named)
    searcher.start(TimetableSlot(entry, THREAD, share=share))
    return searcher


@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_a_deaf_search_is_left_behind_unheard() -> None:
    """A search that looks at no clock, in Python, costs its share, and what it says later counts no more."""
    problem, on = generate("layered", **PIPELINE), threading.Event()
    plan = gangplan.solve(problem, time_limit=60, workers=1, method="pipedream").plan

    def deaf(run: Run, prepared: object) -> None:
        while not on.is_set():
            sum(range(100))
        run.offer(plan, "deaf")

    run = Run(problem, time_limit=20.0)
    searcher = searching(run, deaf, share=0.01)
    finish(searcher)
    assert run.left_out == {"deaf": "it did not stop when its time was up, and was left behind"} and run.hurried
    assert 0.4 <= run.seconds() < 10
    on.set()
    while searcher._own.plan is None:
        time.sleep(0.01)
    hear(searcher)
    assert run.plan is None and run.trace == []


@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
@pytest.mark.parametrize("error", [ValueError("v"), SystemExit(0), KeyboardInterrupt(), MemoryError()])
def test_what_a_search_raises_is_its_own_failure(error: BaseException) -> None:
    """What is raised in a thread is noted; an error of a method by name is the caller's, unless it ends programs."""

    def fail(run: Run, prepared: object) -> None:
        raise error

    run = Run(generate("layered", **HARD), time_limit=60.0)
    finish(searching(run, fail))
    assert run.left_out["fail"].startswith(f"it failed with {type(error).__name__}")
    searcher = searching(run, fail, named=True)
    if isinstance(error, Exception):
        with pytest.raises((type(error), gangplan.InstanceError)):
            finish(searcher)
    else:
        finish(searcher)


def test_a_search_starts_from_the_best_and_stops_when_told() -> None:
    """A search in a thread has a run of its own, from the best so far, which stops when its performer is ended."""
    problem, stopped, seen = generate("layered", **PIPELINE), threading.Event(), []
    run = Run(problem, time_limit=60.0)
    run.offer(gangplan.solve(problem, time_limit=60, workers=1, method="pipedream").plan, "first")

    def wait(own: Run, prepared: object) -> None:
        seen.append((own is not run, own.objective == run.objective))
        while not own.stopped:
            time.sleep(0.01)
        stopped.set()

    searcher = searching(run, wait)
    searcher.end()
    assert stopped.wait(30.0) and seen == [(True, True)] and run.stop_reason is None


DEAF = """
import sys, threading, time
from gangplan import generate, solve
from gangplan.hybrid import portfolio
from gangplan.hybrid.table import Entry
from gangplan.solvers.method import Method
def spin(run, prepared):
    while True:
        sum(range(1000))
def sleep(run, prepared):
    time.sleep(3600)
entry = Entry("throughput", sys.argv[1], Method(globals()[sys.argv[1]]))
portfolio.suited = lambda _: [entry]
problem = generate("layered", ops=20, layers=6, training=False, devices=3, seed=4)
before = time.perf_counter()
result = solve(problem, time_limit=.5, workers=1)
print(result.plan is not None, time.perf_counter() - before < 5)
"""


@pytest.mark.parametrize("how", ["spin", "sleep"])
def test_a_thread_left_behind_does_not_keep_the_program(how: str) -> None:
    """A program whose search hangs has its answer in time, a draft, and ends."""
    call = [sys.executable, "-W", "ignore", "-c", DEAF, how]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True True\n" and done.stderr == ""
