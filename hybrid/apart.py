"""Methods in a process of their own: one that crashes, hangs or sleeps is killed, and the rest go on in another.

The process is a fork: it begins in milliseconds with everything that is loaded and prepared. What it finds comes
through a pipe, and is verified again on this side. A fork of a process with threads may find a lock held for ever
(POSIX); then it hangs and is killed like any other that does.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from gangplan.solvers import Run
from gangplan.solvers.fork import Child
from gangplan.solvers.watch import never

from .guard import Step, execute, failed, guarded, reason_of
from .registry import comes_with_gangplan

_POLL = 0.05
"""Seconds between looks at the clock."""
_GRACE, _LEAST_GRACE = 0.25, 0.2
"""A method may overrun what it was given by this share of it, and so many seconds, before it is killed."""


_WITHOUT_THREADS = ("", "numba")
"""Libraries that start no threads; others end the process where they cannot."""


def can_thread(count: int) -> bool:
    """Return whether this process can start so many threads."""
    release = threading.Event()
    begun = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=release.wait, daemon=True)
            thread.start()
            begun.append(thread)
    except (RuntimeError, MemoryError):
        return False
    finally:
        release.set()
        for thread in begun:
            thread.join()
    return True


def run_apart(run: Run, steps: Sequence[Step], others: Sequence[Apart] = (), until: Callable[[], bool] = never) -> int:
    """Run the steps one after the other in a process of their own, and in another from where one failed.

    Args:
        run: the solve.
        steps: what to run.
        others: processes that are at work beside this one; what they find is taken as well.
        until: asked often; once it is true the step at work is ended, and the rest is not begun.

    Returns:
        How many steps are over.
    """
    apart = Apart(run, steps)
    try:
        while not run.stopped and not apart.done and not until():
            look([apart, *others])
        if run.stop_reason in ("proved", "gap"):
            apart.last_words()
    finally:
        apart.end()
    return apart.over


def look(processes: Sequence[Apart]) -> None:
    """Wait a moment for what any of the processes says, and take it."""
    heard = [apart for apart in processes if not apart.done]
    if heard:
        wait([apart.inbox for apart in heard], max(0.0, min(_POLL, heard[0].run.remaining())))
    for apart in heard:
        apart.take()


class Apart:
    """Steps at work in a process of their own; what one fails at costs it its process and the rest nothing."""

    def __init__(self, run: Run, steps: Sequence[Step]) -> None:
        self.run, self.steps = run, steps
        self.over = 0
        self._process: Child | None = None
        self._begin()

    @property
    def done(self) -> bool:
        """Whether all steps are over."""
        return self.over >= len(self.steps)

    def take(self) -> None:
        """Take what the process has said; begin another one where it has failed."""
        process = self._process
        assert process is not None  # else it is done
        try:
            while not self.run.stopped and not self._watch.done and self.inbox.poll():
                self._watch.take(*self.inbox.recv())
            if not self._watch.done and not process.alive() and not self.inbox.poll():
                raise EOFError
            gone = self._watch.overrun()
        except (EOFError, OSError):
            gone = not self.run.stopped
            if gone:
                process.join(1.0)
                self._watch.lost(f"its process ended with code {process.exitcode}")
        if gone or self._watch.done:
            self.end()
            if not self.done and not self.run.stopped:
                self._begin()

    def last_words(self) -> None:
        """Wait a moment for a process that has made the proof itself to say what it did."""
        with suppress(EOFError, OSError):
            if not self.done and self.inbox.poll(_POLL):
                self._watch.take(*self.inbox.recv())

    def end(self) -> None:
        """End the process, and book the time of the step that was at work."""
        if self._process is not None and not self.inbox.closed:
            self._process.kill()
            self.inbox.close()
            self._watch.book()
            self.over += self._watch.over

    def _begin(self) -> None:
        steps = self.steps[self.over :]
        self._watch = _Watch(self.run, steps)
        try:
            self.inbox, outbox = Pipe(duplex=False)
        except OSError as error:  # no files left
            self._stay(steps, error)
            return
        try:
            self._process = Child(partial(_child, self.run, steps, self.inbox, outbox))
        except OSError as error:
            self.inbox.close()
            self._stay(steps, error)
        finally:
            outbox.close()

    def _stay(self, steps: Sequence[Step], error: OSError) -> None:
        """Do in this process what a process of its own cannot be had for, and can be stopped without one."""
        run = self.run
        self.over = len(self.steps)
        run.note(f"no process could be begun ({(error.strerror or str(error)).lower()}): methods run in this one")
        threads = can_thread(run.workers + 1)
        for step in steps:
            if run.stopped:
                break
            if not comes_with_gangplan(run.problem.objective, step.name):
                run.no_time(f"{step.name} left out: no process of its own, and this one is not to be risked")
            elif not threads and step.method.library not in _WITHOUT_THREADS:
                run.no_time(f"{step.name} left out: no threads for {step.method.library} to start")
            else:
                guarded(run, replace(step, interpreted=False))


class _Watch:
    """What this side knows of the other."""

    def __init__(self, run: Run, steps: Sequence[Step]) -> None:
        self.run, self.steps = run, steps
        self.over = 0
        self.done = False
        self._since: float | None = None
        self._until = float("inf")

    @property
    def name(self) -> str:
        """The step that is at work."""
        return self.steps[min(self.over, len(self.steps) - 1)].name

    def take(self, kind: str, *what: Any) -> None:
        """Do what a message says; plans and bounds are believed no more than anybody's."""
        run = self.run
        if kind == "begin":
            self._since = time.perf_counter()
            self._until = self._since + what[0] * (1 + _GRACE) + _LEAST_GRACE
        elif kind == "plan":
            try:
                run.offer(*what)
            except Exception as error:
                if run.failure is not None:
                    raise
                failed(run, self.name, reason_of(error))
        elif kind == "bound":
            run.raise_bound(*what)
        elif kind == "failed":
            failed(run, self.name, *what)
        elif kind == "infeasible":
            run.prove_infeasible()
        elif kind == "done":
            self.over, self.done = len(self.steps), True
        else:
            notes, phases, proposals, hurried = what
            run.proposals = proposals or run.proposals
            run.hurried |= hurried
            for note in notes:
                run.note(note)
            for name, seconds in phases.items():
                run.phases[name] = run.phases.get(name, 0.0) + seconds
            self.over += 1
            self._since, self._until = None, float("inf")

    def overrun(self) -> bool:
        """Return whether the step at work has had its time; it is given up then."""
        if time.perf_counter() <= self._until:
            return False
        self.lost("it did not stop when its time was up, and was killed")
        return True

    def lost(self, reason: str) -> None:
        """Give up the step at work."""
        failed(self.run, self.name, reason)
        self.book()
        self.over += 1

    def book(self) -> None:
        """Book the time of a step that has not told how it spent it."""
        if self._since is not None:
            spent = time.perf_counter() - self._since
            self.run.phases[self.name] = self.run.phases.get(self.name, 0.0) + spent
            self._since = None


def _child(run: Run, steps: Sequence[Step], inbox: Connection, outbox: Connection) -> None:
    """Run the steps and tell what they find."""
    inbox.close()
    tell = _Tell(outbox)
    run.callbacks = (tell,)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # the threads of its pool are not in a fork
    for step in steps:
        if run.stopped:
            break
        _step(run, step, tell)
    tell.send("done")


def _step(run: Run, step: Step, tell: _Tell) -> None:
    run.notes.clear()
    run.phases.clear()
    tell.by = step.name
    tell.send("begin", run.remaining() * step.share)
    try:
        execute(run, step)
    except BaseException as error:  # whatever it is, it is the method's: nobody presses Ctrl-C here
        tell.send("failed", reason_of(error))
    if run.infeasible:
        tell.send("infeasible")
    # a solver's own clock may run out a moment before ours
    hurried = run.hurried or run.stop_reason == "time limit"
    tell.send("end", tuple(run.notes), dict(run.phases), run.proposals, hurried)


class _Tell:
    """Sends every new plan and bound."""

    def __init__(self, outbox: Connection) -> None:
        self.outbox, self.by = outbox, ""
        self.plan: Any = None
        self.bound: float | None = None

    def send(self, *message: Any) -> None:
        """Send a message; with nobody to read it there is nothing left to do."""
        try:
            self.outbox.send(message)
        except OSError:
            os._exit(1)

    def __call__(self, run: Run) -> None:
        """Tell what is new."""
        if run.plan is not self.plan:
            self.plan = run.plan
            self.send("plan", run.plan, run.trace[-1].by)
        if run.bound is not None and run.bound != self.bound:
            self.bound = run.bound
            self.send("bound", run.bound, self.by)
