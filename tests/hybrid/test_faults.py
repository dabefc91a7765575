"""Whatever a method does, a verified plan comes back in time, and the result says what went wrong."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gangplan import PartitionPlan, solve, verify
from gangplan.hybrid import Entry, MethodFailed, guard, portfolio, register, unregister, worker
from gangplan.hybrid.guard import TimetableSlot
from gangplan.hybrid.worker import execute
from gangplan.instances.generators import generate
from gangplan.solvers import Run
from gangplan.solvers.method import Method

LIMIT = 8.0
"""Seconds a solve gets here."""


def sleeps(run: Run, prepared: Any) -> None:
    """Look at no clock."""
    time.sleep(3600)


def raises(run: Run, prepared: Any) -> None:
    """Fail."""
    raise ZeroDivisionError("it's me")


def is_killed(run: Run, prepared: Any) -> None:
    """Go as the kernel makes processes go that take too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def aborts(run: Run, prepared: Any) -> None:
    """Go as native code goes, without a dump of this process's stack amid the tests' own output."""
    faulthandler.disable()
    os.abort()


def leaves(run: Run, prepared: Any) -> None:
    """End the program."""
    raise SystemExit(0)


def infeasible(run: Run, prepared: Any) -> None:
    """Offer a plan with an op on a device that is not there."""
    n = run.problem.graph.n_ops
    run.offer(PartitionPlan(run.problem.graph.names, [99] * n, [0] * n), "infeasible")


def nonsense(run: Run, prepared: Any) -> None:
    """Offer what is no plan at all."""
    run.offer("a plan", "nonsense")  # type: ignore[arg-type]


def lies(run: Run, prepared: Any) -> None:
    """Claim a bound that a plan disproves."""
    run.raise_bound(1e9, "lies")


def crashes(run: Run, prepared: Any) -> None:
    """Read from where nothing is."""
    faulthandler.disable()
    ctypes.string_at(0)


def holds_the_lock(run: Run, prepared: Any) -> None:
    """Sleep in native code that lets no other thread run."""
    ctypes.PyDLL(None).sleep(3600)


def stands_still(run: Run, prepared: Any) -> None:
    """Stop its process, which then hears nothing."""
    os.kill(os.getpid(), signal.SIGSTOP)


def grows(run: Run, prepared: Any) -> None:
    """Take memory without end, up to what the system gives."""
    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
    kept = [b""]
    while True:
        kept.append(bytes(10**7))


def is_speechless(run: Run, prepared: Any) -> None:
    """Fail with an error that has no words."""

    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    raise SpeechlessError


FAULTS: list[tuple[Callable[[Run, Any], None], str]] = [
    (sleeps, "sleeps left out: it did not stop when its time was up, and was killed"),
    (raises, "raises left out: it failed with ZeroDivisionError: it's me"),
    (is_killed, "is_killed left out: its process ended with code -9"),
    (aborts, "aborts left out: its process ended with code -6"),
    (leaves, "leaves left out: it failed with SystemExit: 0"),
    (infeasible, "infeasible left out: it failed with"),
    (nonsense, "nonsense left out: it failed with"),
    (lies, "lies claimed the bound 1e+09"),
    (crashes, "crashes left out: its process ended with code -11"),
    (holds_the_lock, "holds_the_lock left out: it did not stop when its time was up, and was killed"),
    (stands_still, "stands_still left out: it did not stop when its time was up, and was killed"),
    (grows, "grows left out: it failed with MemoryError"),
    (is_speechless, "is_speechless left out: it failed with SpeechlessError: "),
]


@pytest.fixture
def added() -> Iterator[Callable[[Callable[[Run, Any], None]], None]]:
    """Return what adds a method to the portfolio of throughput under its own name until the test is over."""
    names = []

    def add(method: Callable[[Run, Any], None]) -> None:
        register(Entry("throughput", method.__name__, Method(method), share=0.3))
        names.append(method.__name__)

    yield add
    for name in names:
        unregister("throughput", name)


@pytest.mark.parametrize(("fault", "note"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_the_others_answer(added: Any, fault: Callable[[Run, Any], None], note: str) -> None:
    """A method that fails is noted, and the answer is that of the others."""
    problem = generate("layered", ops=12, layers=6, training=False, devices=3, seed=3)
    honest = solve(problem, time_limit=60, workers=1)
    added(fault)
    result = solve(problem, time_limit=LIMIT, workers=1)
    assert result.plan is not None and verify(problem, result.plan).objective == result.objective
    assert result.objective == pytest.approx(honest.objective)
    assert any(found.startswith(note) for found in result.notes), result.notes


@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_all_that_is_left_sleeps(added: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing but heuristics and a method that hangs, the plan of the heuristics comes at the deadline."""
    problem = generate("layered", ops=100, layers=10, degree=3.0, devices=4, variant="free", seed=5)
    added(sleeps)
    kept = ("pipedream", "sleeps")
    known = portfolio.suited
    monkeypatch.setattr(portfolio, "suited", lambda *of: [entry for entry in known(*of) if entry.name in kept])
    result = solve(problem, time_limit=1.5, workers=1)
    assert result.trace[-1].by == "pipedream" and result.stop_reason == "time limit"


def test_who_overruns_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method may take a quarter and a fifth of a second more than it was given, and not a moment more."""
    now = [100.0]
    monkeypatch.setattr(guard.time, "perf_counter", lambda: now[0])
    run = Run(generate("layered", ops=12, layers=6, devices=3), time_limit=60)
    performer = guard.Performer(run, guard.Heard())
    performer.start(TimetableSlot(Entry("throughput", "sleeps", Method(sleeps)), share=2.0 / 60.0))
    now[0] = 102.69
    performer.watch()
    assert performer.slot is not None and not performer.gone
    now[0] = 102.71
    with pytest.warns(MethodFailed):
        performer.watch()
    assert performer.gone and run.phases["sleeps"] == pytest.approx(2.71)
    assert [turn.ran for turn in run.turns.values()] == pytest.approx([2.71])
    assert run.left_out == {"sleeps": "it did not stop when its time was up, and was left behind"} and run.hurried


def test_a_question_that_fails_is_a_failure() -> None:
    """A method that cannot say whether it suits a problem is left out."""
    register(Entry("throughput", "asks", Method(raises, suits=lambda prepared: 1 // 0 > 0)))
    try:
        result = solve(generate("layered", ops=12, layers=6, devices=3), time_limit=LIMIT, workers=1)
    finally:
        unregister("throughput", "asks")
    assert result.plan is not None and result.left_out["asks"].startswith("it failed with ZeroDivisionError")


def own_clock(run: Run, prepared: Any) -> None:
    """End as a solver does whose own clock runs out a moment before ours."""
    run.stop_reason = "time limit"


def test_a_solvers_own_clock_is_time(added: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last method, in its own process, ran out of time, the solve did, though some of ours is left."""
    added(own_clock)
    known = portfolio.suited
    kept = ("pipedream", "own_clock")
    monkeypatch.setattr(portfolio, "suited", lambda *of: [e for e in known(*of) if e.name in kept])
    problem = generate("layered", ops=300, layers=10, degree=3.0, devices=7, variant="free", seed=5)
    result = solve(problem, time_limit=3600, workers=1)
    assert result.stop_reason == "time limit"


def test_a_failure_warns(added: Any) -> None:
    """Who does not read notes is warned."""
    added(raises)
    problem = generate("layered", ops=30, layers=6, training=False, devices=3, seed=1)
    with pytest.warns(MethodFailed, match="raises left out"):
        solve(problem, time_limit=LIMIT, workers=1)


@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_no_processes_no_strangers(added: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no forks, methods of others are left out, and say so; our own run here, guarded."""
    added(sleeps)
    monkeypatch.setattr(portfolio, "can_serve", lambda: False)
    problem = generate("layered", ops=30, layers=6, training=False, devices=3, seed=1)
    ran = []
    for module in (guard, worker):
        monkeypatch.setattr(
            module, "execute", lambda run, entry, p: (ran.append(entry.name), execute(run, entry, p))[1]
        )
    result = solve(problem, time_limit=60, workers=1)
    assert any(note.startswith("sleeps left out: no process of its own") for note in result.notes)
    assert result.plan is not None and "pipedream" in ran and "sleeps" not in ran


def test_an_error_of_a_callback_is_no_failure_of_a_method() -> None:
    """What the caller's own function raises reaches the caller."""
    problem = generate("layered", ops=60, layers=10, degree=3.0, training=False, devices=5, variant="free", seed=5)

    def complain(run: Run) -> None:
        if run.trace and run.trace[-1].by != "pipedream":
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solve(problem, time_limit=20, workers=1, callbacks=[complain])
