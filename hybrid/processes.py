"""Run methods so that what one does wrong costs its own share of the time and nothing else.

Searches run in threads of this process: one that is deaf to the clock is left behind. Solvers, and methods that others
have registered, run in processes: one that crashes, hangs or sleeps is killed. What these find is verified again here.
"""

from __future__ import annotations

import gc
import os
import pickle
import socket
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from gangplan.instances.errors import InstanceError
from gangplan.solvers.processes import Child, connected
from gangplan.solvers.run import Run, Turn

from .server import Worker, begin, can_serve, forks
from .table import Entry
from .timetable import BESIDE, TimetableSlot
from .worker import WorkerOrder, execute, job, perform, reason, serve, word

_GRACE, _LEAST_GRACE = 0.25, 0.2
"""A method may overrun what it was given by this share of it, and so many seconds, before it is given up."""
_CODE = 1.0
"""Seconds to wait for the code with which a process ended that has closed its connection."""
_TRIES = 2
"""Processes to begin until one is ready."""
_FILES = 2**16
"""File descriptors that the caller may have open."""
_MESSAGES: dict[str, tuple[Any, ...]] = {
    "ready": (),
    "plan": (object, str, float),
    "bound": (float, str),
    "proof": (object,),
    "failed": (str, object),
    "infeasible": (str,),
    "end": (tuple, dict, dict, bool),
}
"""What a process says: kinds, and types of what follows.

That is of ``end`` its notes, who was left out, its phases, and whether time was short.
"""

Heard = SimpleQueue["tuple[Performer, Any]"]
"""Who has said something, and what; `None` if it says nothing any more."""


class MethodFailed(RuntimeWarning):
    """A method was left out because it failed; the answer is that of the others."""


def guarded(run: Run, entry: Entry, prepared: Any) -> None:
    """Run a method in this thread; if it fails, say so and go on."""
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


def book(run: Run, slot: TimetableSlot, since: float) -> None:
    """Book the time of a slot from `since` on."""
    before = run.turns.get(slot)
    ran = time.perf_counter() - since + (before.ran if before else 0.0)
    run.turns[slot] = Turn(slot.entry.name, slot.where, slot.why, slot.begin, slot.end, ran)


def run_here(run: Run, slot: TimetableSlot, prepared: Any, *, named: bool = False) -> None:
    """Run a method in this thread and book its time; what it raises is the caller's who has asked for it by name."""
    since = time.perf_counter()
    try:
        (execute if named else guarded)(run, slot.given, prepared)
    finally:
        book(run, slot, since)


class Performer:
    """Who runs methods, one after another, beside the thread of the caller.

    Attributes:
        slot: what it is to do, or does; `None` once that is over.
        gone: whether it can do no more.
    """

    slot: TimetableSlot | None = None
    gone = False

    def __init__(self, run: Run, heard: Heard, *, named: bool = False) -> None:
        self.run, self.heard, self.named = run, heard, named
        self._since, self._until = 0.0, inf

    def start(self, slot: TimetableSlot) -> None:
        """Begin to run a method."""
        self.slot = slot
        self._since = time.perf_counter()
        self._until = self._since + self.run.remaining() * slot.share * (1 + _GRACE) + _LEAST_GRACE

    def listen(self, message: Any) -> None:
        """Take what it has said."""
        if self.slot is not None:
            self._take(self.slot.entry, *message)

    def _take(self, entry: Entry, kind: str, *what: Any) -> None:
        """Do what a message says; plans, bounds and proofs of strangers are believed no more than anybody's."""
        run, name = self.run, entry.name
        if kind == "plan":
            try:
                self.accept(*what)
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
        else:
            tell: dict[str, Callable[..., Any]] = {
                "bound": run.raise_bound, "infeasible": run.prove_infeasible, "proof": run.prove,
            }  # fmt: skip
            tell[kind](*what)

    def accept(self, plan: Any, by: str, objective: float) -> None:
        """Verify a plan, whatever its objective is said to be, and keep it if it is the best."""
        self.run.offer(plan, by)

    @property
    def lost(self) -> str:
        """Return what is said of a method that has had its time."""
        return "it did not stop when its time was up, and was left behind"

    def watch(self) -> None:
        """Give up the method at work if it has had its time."""
        if self.slot is not None and time.perf_counter() > self._until:
            self.give_up(self.lost, late=True)

    def give_up(self, why: str, *, late: bool = False) -> None:
        """Leave out the method at work, and whoever runs it."""
        if self.slot is not None:
            failed(self.run, self.slot.entry.name, why, late=late)
        self.end()

    def stop(self) -> None:
        """Ask the method at work to stop."""

    def end(self) -> None:
        """Hear no more; book the time of the method at work, also as a phase, as it has not told how it spent it."""
        self.gone = True
        if self.slot is not None:
            self._book({self.slot.entry.name: time.perf_counter() - self._since})

    def _book(self, phases: Mapping[str, float]) -> None:
        assert self.slot is not None
        book(self.run, self.slot, self._since)
        for phase, seconds in phases.items():
            self.run.phases[phase] = self.run.phases.get(phase, 0.0) + seconds
        self.slot = None


class Searcher(Performer):
    """A thread of this process that runs one search; one that is given up goes on unheard.

    Args:
        prepared: what the suite has made of the problem.
    """

    def __init__(self, run: Run, heard: Heard, prepared: Any, *, named: bool = False) -> None:
        super().__init__(run, heard, named=named)
        self._prepared, self._own = prepared, run.apart()

    def start(self, slot: TimetableSlot) -> None:
        """Begin to search; `OSError` if there is no thread to be had."""
        super().start(slot)
        _begin_thread(lambda: perform(self._own, slot.given, self._prepared, self._send))

    def accept(self, plan: Any, by: str, objective: float) -> None:
        """Keep a plan, which its own run has verified, if it is the best."""
        self.run.keep(plan, objective, by)

    def stop(self) -> None:
        """Have the search stop when it looks at the clock."""
        self._own.stop_reason = self._own.stop_reason or "interrupted"

    def end(self) -> None:
        """Stop it too."""
        self.stop()
        super().end()

    def _send(self, *message: Any) -> None:
        self.heard.put((self, message))


class Process(Performer):
    """A process that runs methods in turn.

    Args:
        prepared: what the suite has made of the problem, for a fork of this process.
        entry: the first method; on a second core, or for a method by name, the process finds its library imported.

    Attributes:
        ready: whether it takes orders.

    Raises:
        OSError: if there is no process to be had.
    """

    def __init__(self, run: Run, heard: Heard, prepared: Any, entry: Entry, *, named: bool = False) -> None:
        super().__init__(run, heard, named=named)
        self._prepared, self._entry = prepared, entry
        self._child: Worker | Child | None = None
        self._tries, self.ready = 0, False
        if not can_serve():
            raise OSError("there is none on this system")
        self._begin()

    @property
    def lost(self) -> str:
        """Return what is said of a method that has had its time."""
        state = "it did not stop" if self.ready else "its process was not ready"
        return f"{state} when its time was up, and was killed"

    def start(self, slot: TimetableSlot) -> None:
        """Begin to run a method as soon as the process is ready."""
        super().start(slot)
        if self.ready:
            self._order(slot)

    def listen(self, message: Any) -> None:
        """Take what the process has said; note how it has failed, or begin another one that has not begun anything."""
        inbox, said = message
        if self.gone or inbox is not self._inbox:
            return
        if said is not None and said[0] != "ready":
            super().listen(said)
        elif said is not None:
            begins, self.ready = not self.ready, True
            if begins and self.slot is not None:
                self.start(self.slot)
        elif self.slot is not None and self.ready:
            assert self._child is not None
            self._child.join(min(_CODE, self.run.remaining()))
            code = self._child.exitcode
            self.give_up("it hung up, or talked nonsense" if code is None else f"its process ended with code {code}")
        elif self._tries < _TRIES and not self.ready:
            self._begin_again()
        else:
            self._leave()

    def stop(self) -> None:
        """Send the process the signal of Ctrl-C."""
        if self._child is not None:
            self._child.interrupt()

    def end(self) -> None:
        """End the process too."""
        super().end()
        self._leave()

    def _leave(self) -> None:
        self.gone = True
        if self._child is not None:
            self._child.kill()
        with suppress(OSError):  # so that who reads hears no more, whoever else has the other end
            self._ours.shutdown(socket.SHUT_RDWR)
        self._outbox.close()
        self._ours.close()

    def _begin_again(self, alone: Entry | None = None) -> None:
        self._leave()
        with suppress(OSError):
            self._begin(alone)
            self.gone = False

    def _begin(self, alone: Entry | None = None) -> None:
        """Ask for a process, or fork this one if that is how it is, or if a method cannot be sent."""
        self._tries, self.ready, self._child = self._tries + 1, alone is not None, None
        self._ours, theirs = connected()
        inbox, self._outbox = (Connection(os.dup(self._ours.fileno())) for _ in range(2))
        self._inbox = inbox
        with theirs:
            try:
                if forks() or alone:
                    self._child, told = Child(lambda: self._work(theirs, alone)), b""
                else:
                    entry, run = self._entry, self.run
                    library = entry.does.library if not entry.added and (self.named or run.workers > 1) else ""
                    told = pickle.dumps(job(run), pickle.HIGHEST_PROTOCOL)
                    self._child = begin(theirs, run.problem.objective, library=library)
                _begin_thread(lambda: _talk(self, inbox, told))
            except OSError:
                inbox.close()
                self._leave()
                raise

    def _work(self, theirs: socket.socket, alone: Entry | None) -> None:
        """Work in a fork of this process."""
        base, connection = self.run.apart(), Connection(theirs.detach())
        base.deadline -= word(base)
        gc.freeze()  # a collection would copy all memory that is shared with the caller
        self._outbox.close()
        self._ours.close()
        if self._entry.added:  # what is the caller's, it cannot write to
            os.closerange(3, connection.fileno())
            os.closerange(connection.fileno() + 1, _FILES)
        serve(base, self._prepared, connection, alone)

    def _order(self, slot: TimetableSlot) -> None:
        try:
            order = WorkerOrder.of(self.run, slot.given, beside=slot.where == BESIDE)
            sent = pickle.dumps(order, pickle.HIGHEST_PROTOCOL)
        except (Exception, SystemExit):  # whatever others' objects raise where they cannot be pickled
            self._begin_again(slot.given)
        else:
            with suppress(OSError):  # its end is heard
                self._outbox.send_bytes(sent)


def _begin_thread(work: Callable[[], None]) -> None:
    try:
        Thread(target=work, daemon=True).start()
    except (RuntimeError, MemoryError):
        raise OSError("no thread to be had") from None


def _talk(process: Process, inbox: Connection, job: bytes) -> None:
    """Give a process its job, and hear it until it says nothing any more; one that talks nonsense has left."""
    message: Any = ()
    with suppress(OSError):  # its end is heard
        if job:
            inbox.send_bytes(job)
    while message is not None:
        try:
            message = pickle.loads(inbox.recv_bytes())
        except BaseException:  # its end, or what unpickling raises where somebody has written into the connection
            message = None
        if not (isinstance(message, tuple) and _makes_sense(*message)):
            message = None
        process.heard.put((process, (inbox, message)))
    inbox.close()


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
