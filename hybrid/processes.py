"""Run methods so that what one does wrong costs its own share of the time and nothing else.

Most run in a worker: one that crashes, hangs or sleeps is killed, and the rest go on in another. What it finds is
verified again here. What cannot be sent to a worker runs in a fork of this process: should another thread hold a lock
just then, it hangs and is killed. So does everything after `fork_only`: GapBench counts and limits forks with it.
"""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from multiprocessing.connection import Connection, wait
from typing import Any

from gangplan.instances.errors import InstanceError
from gangplan.solvers.processes import POLL, Child, can_fork
from gangplan.solvers.run import Run, Turn

from .table import Entry
from .timetable import HERE, TimetableSlot
from .worker import Tell, WorkerOrders, execute, reason, serve
from .workers import Worker, begin, connected, forks

_GRACE, _LEAST_GRACE = 0.25, 0.2
"""A method may overrun what it was given by this share of it, and so many seconds, before it is killed."""
_INTERRUPTED = 0.5
"""Seconds that a method may take to stop on Ctrl-C."""
_MESSAGES: dict[str, tuple[Any, ...]] = {
    "ready": (),
    "begin": (int, int | float),
    "plan": (object, str),
    "bound": (int | float, str),
    "failed": (str, object),
    "infeasible": (str,),
    "end": (int, tuple, dict, dict, bool),
    "done": (),
}
"""What a worker says: kinds, and types of what follows.

That is of ``end`` the method if it is over, its notes, who was left out, its phases, and whether time was short.
"""


class MethodFailed(RuntimeWarning):
    """A method was left out because it failed; the answer is that of the others."""


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


def book(run: Run, slot: TimetableSlot, since: float) -> float:
    """Book the time of a slot from `since` on, and return it."""
    spent = time.perf_counter() - since
    before = run.turns.get(slot)
    ran = spent + (before.ran if before else 0.0)
    run.turns[slot] = Turn(slot.entry.name, slot.where, slot.why, slot.begin, slot.end, ran)
    return spent


def run_here(run: Run, slot: TimetableSlot, entry: Entry, prepared: Any, *, named: bool = False) -> None:
    """Run a method in this process and book its time; what it raises is the caller's who has asked for it by name."""
    since = time.perf_counter()
    try:
        (execute if named else guarded)(run, entry, prepared)
    finally:
        book(run, slot, since)


def listen(processes: Sequence[Process]) -> None:
    """Wait a moment for what any of the processes says, and take it."""
    heard = [process for process in processes if not process.done]
    if heard:
        wait([process.inbox for process in heard], max(0.0, min(POLL, heard[0].run.remaining())))
    for process in heard:
        process.listen()


class Process:
    """Methods at work in a process of their own; what one fails at costs it its process and the rest nothing.

    Args:
        run: the solve.
        slots: what to run, in this order; `None` if that is not decided yet: the process prepares.
        prepared: what the suite has made of the problem, for a method that runs in this process after all.
        named: the one method, where the caller has asked for it by name: what it raises is the caller's, and the
            process finds its library imported.
    """

    def __init__(
        self,
        run: Run,
        slots: Sequence[TimetableSlot] | None = None,
        prepared: Any = None,
        *,
        named: Entry | None = None,
    ) -> None:
        self.run, self.named = run, named
        self.ready = False
        self.done = slots is None
        self._silent, self._at = 0, -1
        self._since: float | None = None
        self._until = inf
        self._child: Worker | Child | None = None
        self._slots: Sequence[TimetableSlot] | None = None
        if slots is None:
            self._begin()
        else:
            self.order(slots, prepared)

    def order(self, slots: Sequence[TimetableSlot], prepared: Any) -> None:
        """Decide what the process runs."""
        self._slots, self._prepared = slots, prepared
        self._left = {i: slot.given for i, slot in enumerate(slots)}
        self.done = not slots
        if self.ready:
            self._send()
        elif self._child is None and not self.done:
            self._begin()

    def listen(self) -> None:
        """Take what the process has said; begin another one where it has failed."""
        child = self._child
        if child is None:
            return
        waits = self._slots is None
        try:
            while not self.run.stopped and (waits or not self.done) and self.inbox.poll():
                self.take(*self._message())
            if not self.done and not child.alive() and not self.inbox.poll():
                raise EOFError
            gone = self.overrun()
        except (EOFError, OSError):
            gone = not self.run.stopped
            if gone and self._entry is not None:
                child.join(1.0)
                self._give_up(f"its process ended with code {child.exitcode}")
            elif gone:  # it has begun nothing
                self._silent += 1
        if gone or (self.done and not waits):
            self.end()
            self._child = None
            if (waits or not self.done) and not self.run.stopped:
                self._begin()

    def take(self, kind: str, *what: Any) -> None:
        """Do what a message says; plans and bounds are believed no more than anybody's."""
        if kind == "ready":
            self.ready = True
            if self._slots is not None:
                self._send()
        elif kind == "done":
            self.done = True
        elif kind == "begin":
            self._at, seconds = what
            if self._entry is not None and self._entry.added:  # it might take its time
                seconds = min(seconds, self.run.remaining() * self._entry.share) if self._since is None else 0.0
            self._since = time.perf_counter()
            self._until = self._since + seconds * (1 + _GRACE) + _LEAST_GRACE
        elif kind == "end":
            over, *books = what
            self._left.pop(over, None)
            self._take_books(*books)
            self.done = not self._left and all(slot.entry.added for slot in self._slots or ())
        elif self._entry is not None:
            self._believe(self._entry, kind, *what)

    def overrun(self) -> bool:
        """Return whether the method at work has had its time; it is given up then."""
        if time.perf_counter() <= self._until:
            return False
        self._give_up("it did not stop when its time was up, and was killed", late=True)
        return True

    def last_words(self, seconds: float = POLL) -> None:
        """Wait a moment for what the method at work says in the end: its bound, how it spent its time."""
        until = time.perf_counter() + seconds
        with suppress(EOFError, OSError):
            while self._since is not None and self.inbox.poll(max(0.0, until - time.perf_counter())):
                self.take(*self._message())

    def interrupt(self) -> None:
        """Ask the method at work to stop, and wait a moment for what it has found."""
        if isinstance(self._child, Worker):
            self._child.interrupt()
            self.last_words(_INTERRUPTED)

    def end(self) -> None:
        """End the process, and book the time of the method that was at work."""
        if self._child is not None and not self.inbox.closed:
            self._child.kill()
            self.inbox.close()
            self._book()

    def _message(self) -> Any:
        """Return what the process says; one that talks nonsense has left.

        Raises:
            EOFError, OSError: if it says nothing any more.
        """
        try:
            message = self.inbox.recv()
        except OSError:
            raise
        except Exception:  # what unpickling raises where somebody has written into the connection
            message = None
        if not isinstance(message, tuple) or not message or not _makes_sense(*message):
            raise EOFError
        return message

    @property
    def _entry(self) -> Entry | None:
        """The method at work."""
        return self._slots[self._at].given if self._slots and 0 <= self._at < len(self._slots) else None

    def _begin(self) -> None:
        self._at, self._until = -1, inf
        self._since, self.ready = None, False
        try:
            if self._silent > 1:
                raise OSError("it ends at once")
            alone = forks()
            if self._slots is not None and (alone or self._packed() is None):
                self._fork()
            elif not alone:
                library = self.named.does.library if self.named else ""
                self._child = begin(self.run, library=library)
                self.inbox = self._child.inbox
        except OSError as error:
            self._child = None
            if self._slots is not None:
                self._stay(self._slots, error)

    def _packed(self) -> bytes | None:
        """Return the orders as they are sent, `None` if they cannot be."""
        try:
            orders = WorkerOrders.of(self.run, self._left, once=self.named is not None)
            return pickle.dumps(orders, pickle.HIGHEST_PROTOCOL)
        except (Exception, SystemExit):  # whatever others' objects raise where they cannot be pickled
            if not can_fork():
                raise OSError("what it consists of cannot be sent to one") from None
            return None

    def _send(self) -> None:
        orders = self._packed()
        if orders is None:
            self.end()
            self._fork()
        else:
            with suppress(OSError):  # its end is seen when it is listened to
                self.inbox.send_bytes(orders)

    def _fork(self) -> None:
        ours, theirs = connected()
        inbox, outbox = Connection(ours.detach()), Connection(theirs.detach())
        self.inbox = inbox

        def work() -> None:
            inbox.close()
            tell = Tell(outbox)
            tell.plan, tell.bound = self.run.plan, self.run.bound
            serve(self.run, self._left, self._prepared, tell, once=self.named is not None)

        try:
            self._child = Child(work)
        except OSError:
            self.inbox.close()
            raise
        finally:
            outbox.close()

    def _stay(self, slots: Sequence[TimetableSlot], error: OSError) -> None:
        """Run methods in this process when no other one can be had, if they can be stopped without one."""
        run = self.run
        self.done = True
        run.note(f"no process could be begun ({(error.strerror or str(error)).lower()}): methods run in this one")
        threads = _can_thread(run.workers + 1)
        for i, entry in self._left.items():
            if run.stopped:
                break
            if entry.added:
                run.leave_out(entry.name, "no process of its own, and this one is not to be risked", late=True)
            elif not threads and entry.does.library:
                run.leave_out(entry.name, f"no threads for {entry.does.library} to start", late=True)
            else:
                run_here(run, replace(slots[i], where=HERE, why="no process to be had"), entry, self._prepared)

    def _believe(self, entry: Entry, kind: str, *what: Any) -> None:
        """Take a plan, a bound, a proof or an error of a method; claims of strangers are noted, and no more."""
        run, name = self.run, entry.name
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
            if self.named and raised is not None:
                raise raised
            failed(run, name, words)
        elif entry.added and not entry.trusted:
            claim = f"the bound {what[0]:.9g}" if kind == "bound" else "that there is no plan"
            if not any(note.startswith(f"{name} claimed") for note in run.notes):
                run.note(f"{name} claimed {claim}: not counted, since it is not registered as trusted")
        elif kind == "bound":
            run.raise_bound(*what)
        elif kind == "infeasible":
            run.prove_infeasible(*what)

    def _give_up(self, why: str, *, late: bool = False) -> None:
        if self._entry is not None:
            failed(self.run, self._entry.name, why, late=late)
        self._left.pop(self._at, None)
        self.done = not self._left
        self._book()

    def _take_books(
        self, notes: Sequence[str], left_out: Mapping[str, str], phases: Mapping[str, float], hurried: bool
    ) -> None:
        run = self.run
        run.hurried |= hurried
        run.left_out.update(left_out)
        for note in notes:
            run.note(note)
        for phase, seconds in phases.items():
            run.phases[phase] = run.phases.get(phase, 0.0) + seconds
        self._book(told=True)
        self._until = inf

    def _book(self, *, told: bool = False) -> None:
        """Book the time of the method at work, also as a phase if it has not told how it spent it."""
        if self._since is not None and self._slots and self._entry is not None:
            name, spent = self._entry.name, book(self.run, self._slots[self._at], self._since)
            if not told:
                self.run.phases[name] = self.run.phases.get(name, 0.0) + spent
        self._since = None


def _makes_sense(kind: Any = None, *what: Any) -> bool:
    """Return whether a message is one of those that a worker sends."""
    kinds = _MESSAGES.get(kind) if isinstance(kind, str) else None
    if kinds is None or len(what) != len(kinds) or not all(map(isinstance, what, kinds)):
        return False
    if kind != "end":
        return True
    _, notes, left_out, phases, _ = what
    seconds = all(isinstance(x, float) and 0 <= x < inf for x in phases.values())
    return seconds and all(isinstance(text, str) for text in (*notes, *left_out, *left_out.values(), *phases))


def _can_thread(count: int) -> bool:
    """Return whether this process can start so many threads."""
    release = threading.Event()
    try:
        for _ in range(count):
            threading.Thread(target=release.wait, daemon=True).start()
    except (RuntimeError, MemoryError):
        return False
    finally:
        release.set()
    return True
