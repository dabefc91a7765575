"""Run methods so that what one does wrong costs its own share of the time and nothing else.

Most run in a process of their own: one that crashes, hangs or sleeps is killed, and the rest go on in another. The
process is a fork: it begins in milliseconds with everything that is loaded and prepared. What it finds comes through
a pipe, and is verified again on this side. A fork of a process with threads may find a lock held for ever (POSIX);
then it hangs and is killed like any other that does.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from gangplan.solvers.kernels import interpret
from gangplan.solvers.processes import POLL, Child, one_thread
from gangplan.solvers.run import Run, never

from .table import Entry

_GRACE, _LEAST_GRACE = 0.25, 0.2
"""A method may overrun what it was given by this share of it, and so many seconds, before it is killed."""
_GIVES_WAY = 10
"""By how much nicer (nice(2)) a process is that only proves bounds: it takes what the search leaves of busy cores."""
_WITHOUT_THREADS = ("", "numba")
"""Libraries that start no threads; others end the process where they cannot."""


class MethodFailed(RuntimeWarning):
    """A method was left out because it failed; the answer is that of the others."""


def execute(run: Run, entry: Entry, prepared: Any, *, interpreted: bool = False) -> None:
    """Run a method within its share of the time, if what it needs compiled is there.

    Args:
        run: the solve.
        entry: its method is given.
        prepared: what the suite has made of the problem.
        interpreted: run as Python what is not compiled, in a process where nothing else is to follow.
    """
    assert entry.method is not None
    if interpreted:
        interpret()
    if interpreted or run.compiled(entry.method.kernels, entry.name):
        with (
            run.phase(entry.name),
            run.share(entry.share),
            in_time(run),
            one_thread() if entry.learned else nullcontext(),
        ):
            entry.method.run(run, prepared)


@contextmanager
def in_time(run: Run) -> Iterator[None]:
    """Let a block end with `TimeoutError` once the run has stopped."""
    try:
        yield
    except TimeoutError:
        if not run.stopped:
            raise


def guarded(run: Run, entry: Entry, prepared: Any) -> None:
    """Run a method in this process; if it fails, say so and go on."""
    try:
        execute(run, entry, prepared)
    except (Exception, SystemExit, GeneratorExit) as error:  # Ctrl-C is for the caller
        if run.failure is not None:  # a callback's, which is for the caller
            raise
        failed(run, entry.name, _reason(error))


def failed(run: Run, name: str, reason: str) -> None:
    """Note that a method failed, and warn: once for each reason, if the caller's filters are as usual."""
    text = f"{name} left out: {reason}"
    run.note(text)
    warnings.warn(f"{text}; the answer is that of the other methods", MethodFailed, stacklevel=2)


def _reason(error: BaseException) -> str:
    return f"it failed with {type(error).__name__}: {' '.join(str(error).split())[:300]}"


def run_in_processes(
    run: Run,
    entries: Sequence[Entry],
    prepared: Any,
    others: Sequence[Process] = (),
    *,
    until: Callable[[], bool] = never,
    interpreted: bool = False,
) -> None:
    """Run methods one after the other in a process of their own, and in another from where one failed.

    Args:
        run: the solve.
        entries: what to run.
        prepared: what the suite has made of the problem.
        others: processes that are at work beside this one; what they find is taken as well.
        until: asked often; once it is true the method at work is ended, and the rest is not begun.
        interpreted: see `execute`.
    """
    process = Process(run, entries, prepared, interpreted=interpreted)
    try:
        while not run.stopped and not process.done and not until():
            listen([process, *others])
        if run.stop_reason in ("proved", "gap"):
            process.last_words()
    finally:
        process.end()


def listen(processes: Sequence[Process]) -> None:
    """Wait a moment for what any of the processes says, and take it."""
    heard = [process for process in processes if not process.done]
    if heard:
        wait([process.inbox for process in heard], max(0.0, min(POLL, heard[0].run.remaining())))
    for process in heard:
        process.listen()


class Process:
    """Methods at work in a process of their own; what one fails at costs it its process and the rest nothing."""

    def __init__(self, run: Run, entries: Sequence[Entry], prepared: Any, *, interpreted: bool = False) -> None:
        self.run, self.entries, self.prepared, self.interpreted = run, entries, prepared, interpreted
        self.over = 0
        self._child: Child | None = None
        self._since: float | None = None
        self._begin()

    @property
    def done(self) -> bool:
        """Whether all methods are over."""
        return self.over >= len(self.entries)

    def listen(self) -> None:
        """Take what the process has said; begin another one where it has failed."""
        child = self._child
        assert child is not None  # else it is done
        try:
            while not self.run.stopped and not self.done and self.inbox.poll():
                self.take(*self.inbox.recv())
            if not self.done and not child.alive() and not self.inbox.poll():
                raise EOFError
            gone = self.overrun()
        except (EOFError, OSError):
            gone = not self.run.stopped
            if gone:
                child.join(1.0)
                self._give_up(f"its process ended with code {child.exitcode}")
        if gone or self.done:
            self.end()
            if not self.done and not self.run.stopped:
                self._begin()

    def take(self, kind: str, *what: Any) -> None:
        """Do what a message says; plans and bounds are believed no more than anybody's."""
        run, name = self.run, self.entries[min(self.over, len(self.entries) - 1)].name
        if kind == "begin":
            now = self._since = time.perf_counter()
            self._until = now + what[0] * (1 + _GRACE) + _LEAST_GRACE
        elif kind == "plan":
            try:
                run.offer(*what)
            except Exception as error:
                if run.failure is not None:
                    raise
                failed(run, name, _reason(error))
        elif kind == "bound":
            run.raise_bound(*what)
        elif kind == "failed":
            failed(run, name, *what)
        elif kind == "infeasible":
            run.prove_infeasible()
        elif kind == "done":
            self.over = len(self.entries)
        else:
            notes, phases, hurried = what
            run.hurried |= hurried
            for note in notes:
                run.note(note)
            for phase, seconds in phases.items():
                run.phases[phase] = run.phases.get(phase, 0.0) + seconds
            self.over += 1
            self._since, self._until = None, float("inf")

    def overrun(self) -> bool:
        """Return whether the method at work has had its time; it is given up then."""
        if time.perf_counter() <= self._until:
            return False
        self._give_up("it did not stop when its time was up, and was killed")
        return True

    def last_words(self) -> None:
        """Wait a moment for a process that has made the proof itself to say what it did."""
        with suppress(EOFError, OSError):
            if not self.done and self.inbox.poll(POLL):
                self.take(*self.inbox.recv())

    def end(self) -> None:
        """End the process, and book the time of the method that was at work."""
        if self._child is not None and not self.inbox.closed:
            self._child.kill()
            self.inbox.close()
            self._book()

    def _begin(self) -> None:
        self._since, self._until = None, float("inf")
        try:
            self.inbox, outbox = Pipe(duplex=False)
        except OSError as error:  # no files left
            self._stay(error)
            return
        work = partial(_child, self.run, self.entries[self.over :], self.prepared, self.interpreted, self.inbox, outbox)
        try:
            self._child = Child(work)
        except OSError as error:
            self.inbox.close()
            self._stay(error)
        finally:
            outbox.close()

    def _stay(self, error: OSError) -> None:
        """Do in this process what a process of its own cannot be had for, and can be stopped without one."""
        run, left = self.run, self.entries[self.over :]
        self.over = len(self.entries)
        run.note(f"no process could be begun ({(error.strerror or str(error)).lower()}): methods run in this one")
        threads = _can_thread(run.workers + 1)
        for entry in left:
            assert entry.method is not None
            if run.stopped:
                break
            if entry.added:
                run.no_time(f"{entry.name} left out: no process of its own, and this one is not to be risked")
            elif not threads and entry.method.library not in _WITHOUT_THREADS:
                run.no_time(f"{entry.name} left out: no threads for {entry.method.library} to start")
            else:
                guarded(run, entry, self.prepared)

    def _give_up(self, reason: str) -> None:
        failed(self.run, self.entries[self.over].name, reason)
        self._book()
        self.over += 1

    def _book(self) -> None:
        """Book the time of a method that has not told how it spent it."""
        if self._since is not None:
            name, spent = self.entries[self.over].name, time.perf_counter() - self._since
            self.run.phases[name] = self.run.phases.get(name, 0.0) + spent
            self._since = None


def _can_thread(count: int) -> bool:
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


def _child(
    run: Run, entries: Sequence[Entry], prepared: Any, interpreted: bool, inbox: Connection, outbox: Connection
) -> None:
    """Run the methods and tell what they find."""
    inbox.close()
    tell = _Tell(outbox)
    run.callbacks = (tell,)
    if all(entry.beside for entry in entries):
        os.nice(_GIVES_WAY)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # the threads of its pool are not in a fork
    for entry in entries:
        if run.stopped:
            break
        run.notes.clear()
        run.phases.clear()
        tell.by = entry.name
        tell.send("begin", run.remaining() * entry.share)
        try:
            execute(run, entry, prepared, interpreted=interpreted)
        except BaseException as error:  # whatever it is, it is the method's: nobody presses Ctrl-C here
            tell.send("failed", _reason(error))
        if run.infeasible:
            tell.send("infeasible")
        # a solver's own clock may run out a moment before ours
        hurried = run.hurried or run.stop_reason == "time limit"
        tell.send("end", tuple(run.notes), dict(run.phases), hurried)
    tell.send("done")


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
