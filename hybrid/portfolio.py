"""Carry out a timetable under one deadline: searches here, solvers in processes; renew it with what is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import takewhile
from typing import Any

from gangplan.solvers.method import suite
from gangplan.solvers.processes import POLL, can_fork, can_thread
from gangplan.solvers.run import Run, in_time

from .processes import Process, listen, run_here
from .table import Entry, installed, method_for, parts, suited
from .timetable import (
    ALONE,
    BESIDE,
    HERE,
    NO_PROCESS,
    PROCESS,
    QUICK,
    REGISTERED,
    SHORT,
    Situation,
    Timetable,
    TimetableSlot,
    timetable,
)

_LARGE = 100_000
"""Parts of a problem from which on a draft comes first: preparing may take all of the time, and a draft some of it.

Drawn up after the time is up, the draft of 150,000 ops makes an answer due after 1 s come at 1.6 s instead of 1.3.
"""
_SOON = 2.0
"""Seconds left below which solvers' libraries are imported before the searches, which would leave no time for it."""
_EXHAUSTED = 1e-3
"""Seconds of a round of searches below which another round, with other random numbers, is not worth its start."""


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    tools, prepared = suite(run.problem.objective), None
    crew = Crew(run, method)
    try:
        with in_time(run):
            if parts(run.problem) > _LARGE and not run.bare:
                with run.phase("draft"):
                    tools.draft(run, None)
            with run.phase("prepare"):
                prepared = tools.prepared(run)
            if not run.infeasible:
                crew.carry_out(prepared)
    except KeyboardInterrupt:
        crew.last_words(interrupted=True)
        if run.plan is None and not run.infeasible:
            with suppress(TimeoutError):
                tools.draft(run, prepared)
        raise
    finally:
        crew.end()
    if run.plan is None and not (run.infeasible or run.bare) and run.stop_reason in (None, "time limit"):
        with run.phase("draft"), suppress(TimeoutError):
            tools.draft(run, prepared)


def unfit(entry: Entry, prepared: Any) -> str:
    """Return why a method cannot run at all, nothing if it can."""
    if not entry.does.suits(prepared):
        return "it does not model all of the problem, or its model would be too large"
    if entry.added and not can_fork():
        return "no process of its own on this system, and this one is not to be risked"
    return "" if installed(entry.does) else f"{entry.does.library} is not installed"


class Crew:
    """Who works on one problem: this process, and others beside it or in its stead."""

    def __init__(self, run: Run, name: str) -> None:
        self.run, self.named = run, name != "auto"
        self.entries, method = suited(run.problem), method_for(run.problem, name)
        if method is not None:
            added = [entry for entry in self.entries if entry.added and entry.name == name]
            self.entries = added or [Entry(run.problem.objective, name, method)]
        self.timetable, self.why = Timetable(()), dict[str, str]()
        self._processes, self._next = list[Process](), 0.0

    def survey(self, prepared: Any) -> Situation:
        """Return what the timetable depends on; note which methods cannot run, quick ones aside."""
        self.why = {entry.name: words for entry in self.entries if (words := unfit(entry, prepared))}
        for entry in self.entries:
            if entry.name in self.why and not entry.quick:
                self.run.leave_out(entry.name, self.why[entry.name])
        return Situation(self.entries, self.run.workers, self.why, can_fork(), self.named)

    def carry_out(self, prepared: Any) -> None:
        """Run the slots in turn, and renew the timetable after quick and after registered ones, not amid the others.

        There, what had time enough when it was planned would lose its turn with the time that the others take.
        """
        run, situation, done = self.run, self.survey(prepared), list[Entry]()
        early = drawn = tuple[TimetableSlot, ...]()
        while not run.stopped:
            self.timetable = timetable(situation, run.seconds(), run.deadline - run.started, done)
            slots = self.timetable.slots
            early = tuple(takewhile(lambda x: x.why == slots[0].why in (QUICK, REGISTERED), slots))  # noqa: B023
            if not early:
                for name, words in self.timetable.late.items():
                    run.leave_out(name, words, late=True)
                if run.remaining() < _SOON:
                    for slot in slots:
                        self._import(slot)
            for slot in early or slots:
                if not run.stopped:
                    done.append(slot.entry)
                    self._run(slot, prepared)
            drawn += early or slots
            if not early:
                break
        if not self.named:
            self._draw_on([slot for slot in drawn if slot.entry.does.draws], prepared)
        self._attend(self._processes)

    def _run(self, slot: TimetableSlot, prepared: Any) -> None:
        """Run a method, here or in a process; here too where no process can be had, if it can be stopped."""
        run, named, entry, library = self.run, self.named, slot.entry, slot.entry.does.library
        if slot.where != HERE:
            self._import(slot)
            if run.remaining() < PROCESS:
                run.leave_out(entry.name, NO_PROCESS, late=True)
                return
            try:
                self._processes.append(Process(run, slot, prepared, named=self.named))
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                run.note(f"no process could be begun ({why}): methods run in this one")
            else:
                if slot.where == ALONE:
                    self._attend(self._processes[-1:])
                return
            if entry.added or slot.where == BESIDE:
                run.leave_out(entry.name, "no process of its own, and this one is not to be risked", late=True)
                return
            if library and not can_thread(run.workers + 1):
                run.leave_out(entry.name, f"no threads for {library} to start", late=True)
                return
            slot, named = replace(slot, where=HERE, why="no process to be had"), False
        run.beside = self._look
        run_here(run, slot, prepared, named=named)
        run.beside = None

    def _import(self, slot: TimetableSlot) -> None:
        """Import the library of one of our methods here, where the next solve finds it too, if there is time."""
        library = slot.entry.does.library
        wanted = slot.where == ALONE and not slot.entry.added and library not in ("", *sys.modules)
        if wanted and self.run.remaining() > SHORT:
            with self.run.phase("import"), suppress(Exception):  # the method will say the same
                import_module(library)

    def _draw_on(self, slots: list[TimetableSlot], prepared: Any) -> None:
        """Run searches that draw again and again, with other random numbers, until the run has stopped."""
        run, seed, spent = self.run, self.run.seed, 1.0
        while slots and not run.stopped and spent >= _EXHAUSTED * len(slots):
            since = time.perf_counter()
            run.seed = (run.seed + 1) % 2**31
            for slot in slots:
                if not run.stopped:
                    self._run(slot, prepared)
            spent = time.perf_counter() - since
        run.seed = seed

    def _look(self) -> None:
        """Hear what processes say while a method is at work here, now and then."""
        if (now := time.perf_counter()) >= self._next:
            self._next, self.run.beside = now + POLL, None  # who listens looks at the clock too
            listen(self._processes, 0.0)
            self.run.beside = self._look

    def _attend(self, awaited: Sequence[Process]) -> None:
        """Listen to all who are at work until some are done, as long as the run has not stopped."""
        while not self.run.stopped and not all(x.done for x in awaited):
            listen(self._processes)
        if self.run.stopped and self.run.stop_reason != "callback":
            self.last_words()

    def last_words(self, *, interrupted: bool = False) -> None:
        """Let those who are at work say what they have in the end."""
        for process in self._processes:
            process.last_words(interrupted=interrupted)

    def end(self) -> None:
        """End all processes, and say why who has not begun did not."""
        self.run.beside = None
        for process in self._processes:
            process.end()
        ran = {turn.method for turn in self.run.turns.values()}
        waiting = dict.fromkeys((slot.entry.name for slot in self.timetable.slots), "the solve ended before its turn")
        for name, why in {**self.why, **self.timetable.late, **waiting}.items():
            if name not in ran:
                self.run.left_out.setdefault(name, why)
