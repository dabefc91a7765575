"""Run methods so that what one does wrong costs its own share of the time and nothing else.

Searches run in this process. Solvers, and methods that others have registered, run in a fork of it each: one that
crashes, hangs or sleeps is killed. What it finds is verified again here. Should another thread hold a lock that it
needs just as it is forked, it hangs and is killed too.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import socket
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from math import inf
from multiprocessing.connection import Connection, wait
from typing import Any

from gangplan.instances.errors import InstanceError
from gangplan.solvers.processes import POLL, Child, connected, one_thread
from gangplan.solvers.run import Run, Turn, in_time

from .table import Entry
from .timetable import BESIDE, TimetableSlot

_GRACE, _LEAST_GRACE = 0.25, 0.2
"""A method may overrun what it was given by this share of it, and so many seconds, before it is killed."""
_INTERRUPTED = 0.5
"""Seconds that a method may take to stop on Ctrl-C."""
_CHUNK = 2**20
"""Bytes taken from a connection between two looks at the clock."""
_WORD, _WORD_SHARE = 0.05, 0.02
"""Seconds, and share of the time left, that a process stops early at most: a solver's last bound is to be in time."""
_FILES = 2**16
"""File descriptors that the caller may have open."""
_GIVES_WAY = 10
"""By how much nicer (nice(2)) a process is that only proves bounds: it takes what the search leaves of busy cores."""

_MESSAGES: dict[str, tuple[Any, ...]] = {
    "plan": (object, str),
    "bound": (float, str),
    "failed": (str, object),
    "infeasible": (str,),
    "end": (tuple, dict, dict, bool),
}
"""What a process says: kinds, and types of what follows.

That is of ``end`` its notes, who was left out, its phases, and whether time was short.
"""


class MethodFailed(RuntimeWarning):
    """A method was left out because it failed; the answer is that of the others."""


def execute(run: Run, entry: Entry, prepared: Any) -> None:
    """Run a method within its share of the time."""
    with (
        run.phase(entry.name),
        run.share(entry.share),
        in_time(run),
        one_thread() if entry.learned else nullcontext(),
    ):
        entry.does.run(run, prepared)


def guarded(run: Run, entry: Entry, prepared: Any) -> None:
    """Run a method in this process; if it fails, say so and go on."""
    try:
        execute(run, entry, prepared)
    except (Exception, SystemExit, GeneratorExit) as error:  # Ctrl-C is for the caller
        if run.failure is not None:  # a callback's, which is for the caller
            raise
        failed(run, entry.name, reason(error))


def failed(run: Run, name: str, why: str, *, late: bool = False) -> None:
    """Note that a method failed, `late` if by its clock, and warn: once for each reason, if filters are as usual."""
    run.leave_out(name, why, late=late)
    words = f"{name} left out: {why}; the answer is that of the other methods"
    warnings.warn(words, MethodFailed, stacklevel=2)


def reason(error: BaseException) -> str:
    """Return what a note says of a failure."""
    return f"it failed with {type(error).__name__}: {' '.join(str(error).split())[:300]}"


def book(run: Run, slot: TimetableSlot, since: float) -> None:
    """Book the time of a slot from `since` on."""
    before = run.turns.get(slot)
    ran = time.perf_counter() - since + (before.ran if before else 0.0)
    run.turns[slot] = Turn(slot.entry.name, slot.where, slot.why, slot.begin, slot.end, ran)


def run_here(run: Run, slot: TimetableSlot, prepared: Any, *, named: bool = False) -> None:
    """Run a method in this process and book its time; what it raises is the caller's who has asked for it by name."""
    since = time.perf_counter()
    try:
        (execute if named else guarded)(run, slot.given, prepared)
    finally:
        book(run, slot, since)


def listen(processes: Sequence[Process], seconds: float = POLL) -> None:
    """Wait so long at most for what any of the processes says, and take it."""
    heard = [process for process in processes if not process.done]
    if heard:
        wait([process.inbox.end for process in heard], max(0.0, min(seconds, heard[0].run.remaining())))
    for process in heard:
        process.listen()


class Inbox:
    """Where messages of a `Connection` come in. One of which only a part has come is not waited for."""

    def __init__(self, end: socket.socket) -> None:
        self.end, self._bytes = end, bytearray()
        end.setblocking(False)

    def next(self) -> bytes | None:
        """Return the next message, `None` if it has not all come; `EOFError` if no more will."""
        if (found := self._cut()) is None:
            with suppress(BlockingIOError):
                if not (came := self.end.recv(_CHUNK)):
                    raise EOFError
                self._bytes += came
                found = self._cut()
        return found

    def _cut(self) -> bytes | None:
        """Return and forget the first message, which follows its length in four bytes, if it is all there."""
        end = 4 + int.from_bytes(self._bytes[:4], "big")
        if len(self._bytes) < end:
            return None
        found = bytes(self._bytes[4:end])
        del self._bytes[:end]
        return found


class Process:
    """A method at work in a fork of this process.

    Args:
        run: the solve.
        slot: the method's.
        prepared: what the suite has made of the problem.
        named: whether the caller has asked for the method by name: what it raises is the caller's.

    Raises:
        OSError: if the system has no process to give.
    """

    def __init__(self, run: Run, slot: TimetableSlot, prepared: Any, *, named: bool = False) -> None:
        self.run, self.slot, self.named, self.done = run, slot, named, False
        self._since = time.perf_counter()
        self._until = self._since + run.remaining() * slot.share * (1 + _GRACE) + _LEAST_GRACE
        ours, theirs = connected()
        self.inbox, outbox = Inbox(ours), Connection(theirs.detach())
        try:
            self._child = Child(lambda: _work(run, slot, prepared, Tell(run, outbox), named))
        except OSError:
            self.inbox.end.close()
            raise
        finally:
            outbox.close()

    def listen(self) -> None:
        """Take what the process has said; give it up where it has failed or had its time."""
        name, until = self.slot.entry.name, min(self._until, time.perf_counter() + POLL)
        while not self.done and not self.run.stopped and (message := self._heard()) != ():
            if message is None:
                self._child.join(min(_LEAST_GRACE, self.run.remaining()))
                code = self._child.exitcode
                ended = "it hung up, or talked nonsense" if code is None else f"its process ended with code {code}"
                failed(self.run, name, ended)
                self.end()
            else:
                self.take(*message)
            if time.perf_counter() > until:
                break
        if not self.done and time.perf_counter() > self._until:
            failed(self.run, name, "it did not stop when its time was up, and was killed", late=True)
            self.end()
        elif self.done:
            self.end()

    def take(self, kind: str, *what: Any) -> None:
        """Do what a message says; plans, bounds and proofs of strangers are believed no more than anybody's."""
        run, entry = self.run, self.slot.entry
        name = entry.name
        if kind == "plan":
            try:
                run.offer(*what)
            except Exception as error:
                if run.failure is not None:
                    raise
                failed(run, name, reason(error))
        elif kind == "failed":
            words, raised = what
            if self.named and isinstance(raised, MemoryError):
                raise InstanceError("method", f"{name} needs more memory than there is: {raised}") from raised
            if self.named and isinstance(raised, Exception):  # no other one: it is not the program that is to end
                raise raised
            failed(run, name, words)
        elif kind == "end":
            notes, left_out, phases, hurried = what
            for note in notes:
                run.note(note)
            run.left_out.update(left_out)
            run.hurried |= hurried
            self._book(phases)
        elif entry.added and not entry.trusted:
            claim = f"the bound {what[0]:.9g}" if kind == "bound" else "that there is no plan"
            if not any(note.startswith(f"{name} claimed") for note in run.notes):
                run.note(f"{name} claimed {claim}: not counted, since it is not registered as trusted")
        elif kind == "bound":
            run.raise_bound(*what)
        else:
            run.prove_infeasible(*what)

    def last_words(self, *, interrupted: bool = False) -> None:
        """Wait a moment for what the method says in the end, told to stop or not: its bound, how it spent its time."""
        if interrupted:
            with suppress(OSError):
                os.kill(self._child.pid, signal.SIGINT)
        until = time.perf_counter() + (_INTERRUPTED if interrupted else POLL)
        while not self.done and (left := until - time.perf_counter()) > -POLL and (message := self._heard(left)):
            self.take(*message)

    def end(self) -> None:
        """End the process, and book its time, as a phase if it has not told how it spent it."""
        if self.inbox.end.fileno() >= 0:
            self._child.kill()
            self.inbox.end.close()
        if not self.done:
            self._book({self.slot.entry.name: time.perf_counter() - self._since})

    def _book(self, phases: Mapping[str, float]) -> None:
        book(self.run, self.slot, self._since)
        for phase, seconds in phases.items():
            self.run.phases[phase] = self.run.phases.get(phase, 0.0) + seconds
        self.done = True

    def _heard(self, seconds: float = 0.0) -> Any:
        """Return what the process says within so many seconds, `()` if nothing, `None` if it says nothing any more.

        One that talks nonsense has left.
        """
        until, alive = time.perf_counter() + seconds, self._child.alive()
        try:
            while (said := self.inbox.next()) is None:
                left = max(0.0, until - time.perf_counter())
                if (alive and not left) or not wait([self.inbox.end], left):
                    return () if alive else None
            message = pickle.loads(said)
        except Exception:  # its end, or what unpickling raises where somebody has written into the connection
            return None
        return message if isinstance(message, tuple) and _makes_sense(*message) else None


def _work(run: Run, slot: TimetableSlot, prepared: Any, tell: Tell, named: bool) -> None:
    """Run a method in a process of its own, and tell what it finds."""

    def interrupt(*_: object) -> None:
        run.stop_reason = run.stop_reason or "interrupted"

    signal.signal(signal.SIGINT, interrupt)
    gc.freeze()  # a collection would copy all memory that is shared with the caller
    if slot.where == BESIDE:
        os.nice(_GIVES_WAY)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # the threads of its pool are not in a fork
    if slot.entry.added:  # what is the caller's, it cannot write to
        os.closerange(3, tell.outbox.fileno())
        os.closerange(tell.outbox.fileno() + 1, _FILES)
    process, run.callbacks, run.beside, run.hurried = os.getpid(), (tell,), None, False
    run.deadline -= min(_WORD, _WORD_SHARE * run.remaining())
    run.notes, run.left_out, run.phases = [], {}, {}
    try:
        execute(run, slot.given, prepared)
        if run.failure is not None:  # what could not be told
            raise run.failure
    except BaseException as error:  # whatever it is, it is the method's: nobody presses Ctrl-C here
        tell.failed(error, named)
    if os.getpid() != process:  # the method has forked, and both of it have come back
        os._exit(0)
    if run.infeasible:
        tell.send("infeasible", run.bound_by or slot.entry.name)
    # a solver's own clock may run out a moment before ours
    hurried = run.hurried or run.stop_reason == "time limit"
    tell.send("end", tuple(run.notes), dict(run.left_out), dict(run.phases), hurried)


class Tell:
    """Send every new plan and bound to who has begun this process."""

    def __init__(self, run: Run, outbox: Connection) -> None:
        self.outbox, self.plan, self.bound = outbox, run.plan, run.bound

    def send(self, *message: Any) -> None:
        """Send a message; with nobody to read it there is nothing left to do."""
        try:
            self.outbox.send(message)
        except OSError:
            os._exit(1)

    def failed(self, error: BaseException, whole: bool) -> None:
        """Tell that the method has failed, with the error itself if the caller is to have it, and it can be sent."""
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            whole = False
        self.send("failed", reason(error), error if whole else None)

    def __call__(self, run: Run) -> None:
        """Tell what is new."""
        if run.plan is not self.plan:
            self.plan = run.plan
            self.send("plan", run.plan, run.trace[-1].by)
        if run.bound is not None and run.bound != self.bound:
            self.bound = run.bound
            self.send("bound", float(run.bound), run.bound_by)


def _makes_sense(kind: Any = None, *what: Any) -> bool:
    """Return whether a message is one of those that a process sends."""
    kinds = _MESSAGES.get(kind) if isinstance(kind, str) else None
    if kinds is None or len(what) != len(kinds) or not all(map(isinstance, what, kinds)):
        return False
    if kind != "end":
        return True
    notes, left_out, phases, _ = what
    seconds = all(isinstance(x, float) and 0 <= x < inf for x in phases.values())
    return seconds and all(isinstance(text, str) for text in (*notes, *left_out, *left_out.values(), *phases))
