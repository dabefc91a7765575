"""Carry out a timetable under one deadline: searches in threads, solvers in a process; renew it with what is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from queue import Empty
from typing import Any

from gangplan.solvers.method import suite
from gangplan.solvers.processes import POLL, can_thread
from gangplan.solvers.run import Run, in_time

from .processes import Heard, Performer, Process, Searcher, run_here
from .server import can_serve
from .table import Entry, entry_for, installed, parts, suited
from .timetable import (
    BESIDE,
    CHILD,
    HERE,
    NO_PROCESS,
    PROCESS,
    QUICK,
    REGISTERED,
    THREAD,
    Situation,
    Timetable,
    TimetableSlot,
    timetable,
)
from .worker import reason

_LARGE = 100_000
"""Parts of a problem from which on a draft comes first: preparing may take all of the time, and a draft some of it.

Drawn up after the time is up, the draft of 150,000 ops makes an answer due after 1 s come at 1.6 s instead of 1.3.
"""
_EXHAUSTED = 1e-3
"""Seconds of a round of searches below which another round, with other random numbers, is not worth its start."""
_PATIENCE = 0.1
"""Share of the time left for which a process that is not ready is waited for before a search goes first."""
_AHEAD = 0.08
"""Seconds left from which on a process is begun before its first turn: with less it takes time from what runs."""
_LAST = 0.02
"""Share of the limit that methods may take to stop once it is over."""
_INTERRUPTED = 0.5
"""Seconds that a method may take to stop on Ctrl-C."""


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    crew = Crew(run, method)
    try:
        with in_time(run):
            if parts(run.problem) > _LARGE:
                crew.draft()
            crew.prepare()
            if not run.infeasible:
                crew.carry_out()
    except KeyboardInterrupt:
        crew.last_words(_INTERRUPTED)
        crew.draft()
        raise
    finally:
        crew.end()
    if run.stop_reason in (None, "time limit"):
        crew.draft()


def unfit(entry: Entry, prepared: Any) -> str:
    """Return why a method cannot run at all, nothing if it can."""
    try:
        suits = entry.does.suits(prepared)
    except Exception as error:
        return reason(error)
    if not suits:
        return "it does not model all of the problem, or its model would be too large"
    if entry.added and not can_serve():
        return "no process of its own on this system, and this one is not to be risked"
    return "" if installed(entry.does) else f"{entry.does.library} is not installed"


class Crew:
    """Who works on one problem: this thread, which listens to the others most of the time, and those.

    Attributes:
        prepared: what the suite has made of the problem; `None` if a thread that is left behind may still change it.
    """

    def __init__(self, run: Run, name: str) -> None:
        self.run, self.named = run, name != "auto"
        self.prepared: Any = None
        self.entries = [entry_for(run.problem, name, bare=run.bare)] if self.named else suited(run.problem)
        self.timetable, self.why = Timetable(()), dict[str, str]()
        self._heard, self._at_work = Heard(), list[Performer]()
        self._child: Process | None = None

    def prepare(self) -> None:
        """Have the suite make of the problem what all methods share."""
        with self.run.phase("prepare"):
            self.prepared = suite(self.run.problem.objective).prepared(self.run)

    def draft(self) -> None:
        """Draw up a plan if there is none."""
        run = self.run
        if run.plan is None and not (run.infeasible or run.bare):
            with run.phase("draft"), suppress(TimeoutError):
                suite(run.problem.objective).draft(run, self.prepared)

    def survey(self) -> Situation:
        """Return what the timetable depends on; note which methods cannot run, quick ones aside."""
        self.why = {entry.name: words for entry in self.entries if (words := unfit(entry, self.prepared))}
        for entry in self.entries:
            if entry.name in self.why and not entry.quick:
                self.run.leave_out(entry.name, self.why[entry.name])
        return Situation(self.entries, self.run.workers, self.why, can_serve(), self.named)

    def carry_out(self) -> None:
        """Run the slots in turn, and renew the timetable after quick and after registered ones, not amid the others.

        There, what had time enough when it was planned would lose its turn with the time that the others take.
        """
        run, situation, done = self.run, self.survey(), list[Entry]()
        early = ran = tuple[TimetableSlot, ...]()
        while not run.stopped:
            self.timetable = timetable(situation, run.seconds(), run.deadline - run.started, done)
            slots = self.timetable.slots
            early = tuple(takewhile(lambda x: x.why == slots[0].why in (QUICK, REGISTERED), slots))  # noqa: B023
            if not any(slot.entry.alone for slot in early):
                self._begin_process([slot.entry for slot in slots if slot.where == CHILD])
            if not early:
                self._make_ready()
            queue = deque(early or slots)
            while queue and not run.stopped:
                slot = queue.popleft()
                search = next((i for i, x in enumerate(queue) if x.where == THREAD), None)
                if slot.where == CHILD and search is not None and not self._is_ready(slot):
                    queue.insert(search + 1, slot)
                else:
                    done.append(slot.entry)
                    self._run(slot)
            ran += early or slots
            if not early:
                break
        if not self.named:
            self._draw_on([slot for slot in ran if slot.entry.does.draws])
        if not run.stopped:
            self._attend(*self._at_work)

    def _begin_process(self, solvers: Sequence[Entry]) -> None:
        """Begin a process, which prepares beside the first methods, if a solver is to have a turn."""
        if solvers and self._child is None and self.run.remaining() >= _AHEAD:
            with suppress(OSError):  # which is noted when its turn comes
                self._child = self._process(min(solvers, key=lambda x: not x.does.library))

    def _make_ready(self) -> None:
        """Draw up a plan for searches to start from."""
        for name, words in self.timetable.late.items():
            self.run.leave_out(name, words, late=True)
        if not self.named:
            self.draft()

    def _is_ready(self, slot: TimetableSlot) -> bool:
        """Return whether the process is ready within a moment, if one can be had: else a search goes first."""
        with suppress(OSError):  # which is noted when its turn comes
            who, until = self._who(slot), time.perf_counter() + _PATIENCE * self.run.remaining()
            while isinstance(who, Process) and not (who.ready or who.gone or self.run.stopped):
                if (left := until - time.perf_counter()) <= 0:
                    return False
                self._hear(min(POLL, left))
        return True

    def _run(self, slot: TimetableSlot) -> None:
        """Have a method run, and listen until it is over, or until it has begun if that is beside the others."""
        run = self.run
        if slot.where != THREAD and run.remaining() < PROCESS:
            run.leave_out(slot.entry.name, NO_PROCESS, late=True)
            return
        self._at_work = [who for who in self._at_work if who.slot is not None]
        try:
            who = self._who(slot)
            who.start(slot)
        except OSError as error:
            self._stay(slot, (error.strerror or str(error)).lower())
            return
        self._at_work.append(who)
        if slot.where != BESIDE:
            self._attend(who)
        if who.gone and who.slot is not None and not run.stopped:
            self._at_work.remove(who)
            self._stay(slot, "it ends at once")

    def _who(self, slot: TimetableSlot) -> Performer:
        if slot.where == THREAD:
            if self.prepared is None:
                self.prepare()
            return Searcher(self.run, self._heard, self.prepared, named=self.named)
        if slot.where != CHILD:
            return self._process(slot.entry)
        if self._child is None or self._child.gone:
            self._child = self._process(slot.entry)
        return self._child

    def _process(self, entry: Entry) -> Process:
        return Process(self.run, self._heard, self.prepared, entry, named=self.named)

    def _stay(self, slot: TimetableSlot, why: str) -> None:
        """Run a method here when no process or no thread can be had, if it can be stopped without one."""
        run, name, library = self.run, slot.entry.name, slot.entry.does.library
        if slot.where == THREAD:
            run_here(run, replace(slot, where=HERE, why="no thread to be had"), self.prepared, named=self.named)
            return
        run.note(f"no process could be begun ({why}): methods run in this one")
        if slot.entry.added or slot.where == BESIDE:
            run.leave_out(name, "no process of its own, and this one is not to be risked", late=True)
        elif library and not can_thread(run.workers + 1):
            run.leave_out(name, f"no threads for {library} to start", late=True)
        else:
            self._run(replace(slot, where=THREAD, why="no process to be had"))

    def _draw_on(self, slots: Sequence[TimetableSlot]) -> None:
        """Run searches that draw again and again, with other random numbers, until the run has stopped."""
        run, seed, spent = self.run, self.run.seed, 1.0
        try:
            while not run.stopped:
                slots = [slot for slot in slots if slot.entry.name not in run.left_out]
                if spent < _EXHAUSTED * len(slots) or not slots:
                    break
                since = time.perf_counter()
                run.seed = (run.seed + 1) % 2**31
                for slot in slots:
                    if not run.stopped:
                        self._run(slot)
                spent = time.perf_counter() - since
        finally:
            run.seed = seed

    def _attend(self, *awaited: Performer) -> None:
        """Listen to all who are at work until some are done, as long as the run has not stopped."""
        while not self.run.stopped and any(who.slot is not None and not who.gone for who in awaited):
            self._hear(min(POLL, self.run.remaining()))
        if self.run.stopped and self.run.stop_reason != "callback":
            limit = self.run.deadline - self.run.started
            self.last_words(min(POLL, max(self.run.remaining(), _LAST * limit)))
        if any(isinstance(who, Searcher) and (who.gone or who.slot is not None) for who in awaited):
            self.prepared = None

    def _hear(self, seconds: float) -> None:
        """Take what is said within so many seconds, and give up who has had its time."""
        with suppress(Empty):
            who, message = self._heard.get(timeout=seconds)
            who.listen(message)
        for who in self._at_work:
            who.watch()

    def last_words(self, seconds: float) -> None:
        """Have all who are at work stop, and wait a moment for what they say in the end."""
        until = time.perf_counter() + seconds
        for who in self._at_work:
            who.stop()
        while any(who.slot is not None and not who.gone for who in self._at_work):
            if (left := until - time.perf_counter()) <= 0:
                break
            with suppress(Empty):
                who, message = self._heard.get(timeout=left)
                who.listen(message)

    def end(self) -> None:
        """End all who are at work, and say why who has not begun did not."""
        for who in (*self._at_work, *([self._child] if self._child else ())):
            who.end()
        ran = {turn.method for turn in self.run.turns.values()}
        waiting = dict.fromkeys((slot.entry.name for slot in self.timetable.slots), "the solve ended before its turn")
        for name, why in {**self.why, **self.timetable.late, **waiting}.items():
            if name not in ran:
                self.run.left_out.setdefault(name, why)
