"""Run methods so that what one does wrong costs its own share of the time and nothing else.

Searches run in threads of this process: one that is deaf to the clock is left behind. Solvers, and methods that others
have registered, run in processes: one that crashes, hangs or sleeps is killed. What these find is verified again here.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from gangplan.instances.errors import InstanceError
from gangplan.solvers.processes import begin_thread, can_serve, connected
from gangplan.solvers.result import Turn
from gangplan.solvers.run import Run

from .server import begin
from .table import Entry, own, proofs
from .worker import execute, perform, reason

PROCESS = 0.04
"""Seconds left from which on a method is worth a process of its own."""
THREAD, CHILD, BESIDE, ALONE = "thread", "child", "beside", "alone"
_GRACE, _LEAST_GRACE = 0.25, 0.2
"""A method may overrun what it was given by this share of it, and so many seconds, before it is given up."""
_WORD, _WORD_SHARE = 0.05, 0.02
"""Seconds, and share of the limit, that a process stops early at most: a solver's last bound is to arrive in time."""
_OURS = Exception, SystemExit, GeneratorExit
"""What a method in the caller's thread may raise as its own fault: Ctrl-C is for the caller."""

Heard = SimpleQueue["tuple[Performer, Any]"]
"""Who has said something, and what; `None` if it says nothing any more."""


@dataclass(frozen=True, slots=True, eq=False)
class TimetableSlot:
    """A method's place in a timetable.

    Attributes:
        entry: the method.
        where, why, begin, end: as `Turn` has them.
        share: of the time left that it may take.
    """

    entry: Entry
    where: str = THREAD
    why: str = ""
    begin: float = 0.0
    end: float = 0.0
    share: float = 1.0

    @property
    def given(self) -> Entry:
        """The entry with its share in this timetable."""
        return replace(self.entry, share=self.share)


class MethodFailed(RuntimeWarning):
    """A method was left out because it failed; the answer is that of the others."""


def guarded(run: Run, entry: Entry, prepared: Any) -> None:
    """Run a method in this thread; if it fails, say so and go on."""
    try:
        execute(run, entry, prepared)
    except _OURS as error:
        if run.failure is not None:  # a callback's, which is for the caller
            raise
        failed(run, entry.name, reason(error))


def failed(run: Run, name: str, why: str, *, late: bool = False) -> None:
    """Note that a method failed, `late` if by its clock, and warn: once for each reason, if filters are as usual."""
    run.leave_out(name, why, late=late)
    words = f"{name} left out: {why}; the answer is that of the other methods"
    warnings.warn(words, MethodFailed, stacklevel=2)


class Performer:
    """Who runs methods, one after another, beside the thread of the caller.

    Attributes:
        slot: what it is to do, or does; `None` once that is over.
        gone: whether it can do no more.
        ready: whether it has begun to do what it is told.
        lost: what becomes of a method that does not stop.
    """

    slot: TimetableSlot | None = None
    gone, ready, lost = False, True, "left behind"

    def __init__(self, run: Run, heard: Heard, *, named: bool = False) -> None:
        self.run, self.heard, self.named = run, heard, named
        self._since, self._until = 0.0, inf

    def start(self, slot: TimetableSlot) -> None:
        """Begin to run a method."""
        self.slot = slot
        self._since = time.perf_counter()
        self._until = self._since + self.run.remaining() * slot.share * (1 + _GRACE) + _LEAST_GRACE

    def listen(self, message: Any) -> None:
        """Take what it has said; plans, bounds and proofs of strangers are believed no more than anybody's."""
        if self.slot is None:
            return
        run, entry = self.run, self.slot.entry
        match message:
            case "plan", plan, str(by), float(objective):
                self.accept(plan, by, objective)
            case "failed", str(words), raised:
                self._fail(words, raised)
            case "end", tuple(notes), dict(left_out), dict(phases), bool(hurried) if _is_sound(notes, left_out, phases):
                for note in notes:
                    run.note(note)
                run.left_out.update(left_out)
                run.hurried |= hurried
                self._book(phases)
            case ("bound", float(), str()) | ("infeasible", str()) | ("proof", _) if entry.added and not entry.trusted:
                claim = f"the bound {message[1]:.9g}" if message[0] == "bound" else "that there is no plan"
                if f"{entry.name} claimed" not in str(run.notes):
                    run.note(f"{entry.name} claimed {claim}: not counted, since it is not registered as trusted")
            case "bound", float(value), str(by):
                run.raise_bound(value, by)
            case "infeasible", str(by):
                run.prove_infeasible(by)
            case "proof", proof:
                run.prove(proof)
            case _:
                self.give_up("it hung up, or talked nonsense")

    def _fail(self, words: str, error: object) -> None:
        """Leave out a method, or raise the error where it was asked for by name."""
        assert self.slot is not None
        name = self.slot.entry.name
        if self.named and isinstance(error, MemoryError):
            raise InstanceError("method", f"{name} needs more memory than there is: {error}") from error
        if self.named and isinstance(error, Exception):  # no other one: it is not the program that is to end
            raise error
        failed(self.run, name, words)

    def accept(self, plan: Any, by: str, objective: float) -> None:
        """Verify a plan, whatever its objective is said to be, and keep it if it is the best."""
        assert self.slot is not None
        try:
            self.run.offer(plan, by)
        except Exception as error:
            failed(self.run, self.slot.entry.name, reason(error))

    def watch(self) -> None:
        """Give up the method at work if it has had its time."""
        if self.slot is not None and time.perf_counter() > self._until and self.ready:
            self.give_up(f"it did not stop when its time was up, and was {self.lost}", late=True)
        elif self.slot is not None and time.perf_counter() > self._until:
            why = "its process was not ready when its time was up, and was killed"
            self.run.leave_out(self.slot.entry.name, why, late=True)
            self.end()

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
        slot, run, self.slot = self.slot, self.run, None
        assert slot is not None
        before = run.turns.get(slot)
        ran = time.perf_counter() - self._since + (before.ran if before else 0.0)
        run.turns[slot] = Turn(slot.entry.name, slot.where, slot.why, slot.begin, slot.end, ran)
        for phase, seconds in phases.items():
            run.phases[phase] = run.phases.get(phase, 0.0) + seconds


class Searcher(Performer):
    """A thread of this process that runs one search; one that is given up goes on unheard.

    Args:
        prepared: what the suite has made of the problem.
    """

    def __init__(self, run: Run, heard: Heard, prepared: Any, *, named: bool = False) -> None:
        super().__init__(run, heard, named=named)
        self._prepared, self._own = prepared, run.apart()

    def start(self, slot: TimetableSlot) -> None:
        """Begin to search, or search in the caller's thread if there is no other to be had."""
        super().start(slot)
        search = partial(perform, self._own, slot.given, self._prepared, lambda *said: self.heard.put((self, said)))
        try:
            begin_thread(search)
        except OSError:
            search(faults=_OURS)

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


class Process(Performer):
    """A process that runs methods in turn.

    Args:
        entry: the first method; on a second core, or for a method by name, the process finds its library imported.

    Raises:
        OSError: if there is no process to be had.
    """

    ready, lost = False, "killed"

    def __init__(self, run: Run, heard: Heard, entry: Entry, *, named: bool = False) -> None:
        super().__init__(run, heard, named=named)
        library = entry.does.library if not entry.added and (named or run.workers > 1) else ""
        limit = run.deadline - run.started
        job = {
            "problem": run.problem, "time_limit": limit - min(_WORD, _WORD_SHARE * limit), "started": run.started,
            "seed": run.seed, "workers": run.workers, "gap": run.target_gap, "bare": run.bare,
        }  # fmt: skip
        told = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        if not can_serve():
            raise OSError("there is none on this system")
        ours, theirs = connected()
        self._line = Connection(ours.detach())
        inbox = Connection(os.dup(self._line.fileno()))
        with theirs:
            self._tell = begin(theirs, run.problem.objective, library=library)
        try:
            begin_thread(partial(self._hear, inbox, told))
        except OSError:
            inbox.close()
            self._leave()
            raise

    def start(self, slot: TimetableSlot) -> None:
        """Begin to run a method as soon as the process is ready."""
        super().start(slot)
        if not self.ready:
            return
        try:
            place = os.getcwd() if slot.entry.added else ".", dict(os.environ), [*map(str, sys.path)]
            order = place, packed(slot.given), self.run.seed, self.run.best, slot.where == BESIDE
            sent = pickle.dumps(order, pickle.HIGHEST_PROTOCOL)
        except (Exception, SystemExit) as error:  # whatever others' objects raise where they cannot be pickled
            self.give_up(f"it cannot be sent to a process: {type(error).__name__}: {error}")
        else:
            with suppress(OSError):  # its end is heard
                self._line.send_bytes(sent)

    def listen(self, message: Any) -> None:
        """Take what the process has said; note how it has failed if it has begun anything."""
        if self.gone:
            return
        begun = self.ready and self.slot is not None
        match message:
            case ("ready",) if not self.ready:  # said again, it would have the order sent to who does not read
                self.ready = True
                if self.slot is not None:
                    self.start(self.slot)
            case "code", int(code) if begun:
                self.give_up(f"its process ended with code {code}")
            case None if begun:
                self.give_up("it hung up, or talked nonsense")
            case None | ("code", _):
                self._leave()
            case _:
                super().listen(message)

    def stop(self) -> None:
        """Send the process the signal of Ctrl-C."""
        self._tell("interrupt")

    def end(self) -> None:
        """End the process too."""
        super().end()
        self._leave()

    def _leave(self) -> None:
        self.gone = True
        self._tell("end")
        # so that who reads hears no more, whoever else has the other end
        with suppress(OSError), socket.socket(fileno=os.dup(self._line.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)
        self._line.close()

    def _hear(self, inbox: Connection, job: bytes) -> None:
        """Give the process its job, and hear it until it says nothing any more, or nonsense."""
        with inbox, suppress(BaseException):  # its end, or what unpickling raises where somebody has written to us
            inbox.send_bytes(job)
            while isinstance(message := pickle.loads(inbox.recv_bytes()), tuple) and type(message[0]) is str:
                self.heard.put((self, message))
        self.heard.put((self, None))


def packed(entry: Entry) -> bytes:
    """Return an entry as a process can read it: gangplan's own methods by name, others by value.

    By value, with the code of its module, a method is there as it is here, whatever the caller has set; nothing has to
    be imported again, neither the caller's program nor a module that only it can find.

    Raises:
        Exception: if it holds what cannot be sent, a lock say.
    """
    function = getattr(entry.does.function, "func", entry.does.function)  # of one with arguments
    home = str(getattr(function, "__module__", "gangplan."))
    known = {**own(entry.objective), **proofs()}.get(entry.name)
    if known is entry.method and home.startswith("gangplan."):
        return pickle.dumps(replace(entry, method=None))
    import cloudpickle  # rarely needed

    module = None if home == "__main__" or home.startswith("gangplan.") else sys.modules.get(home)
    if module is not None:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(entry))
    finally:
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)


def _is_sound(notes: Sequence[Any], left_out: Mapping[Any, Any], phases: Mapping[Any, Any]) -> bool:
    """Return whether the books of a method are words and seconds."""
    seconds = all(isinstance(x, float) and 0 <= x < inf for x in phases.values())
    return seconds and all(isinstance(text, str) for text in (*notes, *left_out, *left_out.values(), *phases))
