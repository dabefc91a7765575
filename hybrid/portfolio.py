"""Carry out a timetable under one deadline: what is quick here, the others in workers; renew it with what is left."""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby
from typing import Any

from gangplan.solvers.method import Method, suite
from gangplan.solvers.run import Run, in_time

from .processes import Process, listen, run_here
from .table import Entry, installed, method_for, parts, suited
from .timetable import ALONE, HERE, SHORT, WORKER, Situation, Timetable, TimetableSlot, timetable
from .worker import draw_on
from .workers import can_serve

_LARGE = 100_000
"""Parts of a problem from which on a draft comes first: preparing may take all of the time, and a draft some of it.

Drawn up after the time is up, the draft of 150,000 ops makes an answer due after 1 s come at 1.6 s instead of 1.3.
"""


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    tools, prepared = suite(run.problem.objective), None
    crew = Crew(run, method)
    try:
        with in_time(run):
            if parts(run.problem) > _LARGE and not run.bare:
                with run.phase("draft"):
                    tools.draft(run, None)
            if not crew.first:
                crew.ask()
            with run.phase("prepare"):
                prepared = tools.prepared(run)
            if not run.infeasible:
                crew.carry_out(prepared)
    except KeyboardInterrupt:
        crew.interrupt()
        if run.plan is None and not run.infeasible:
            with suppress(TimeoutError):
                tools.draft(run, prepared)
        raise
    finally:
        crew.end()
    if run.plan is None and not (run.infeasible or run.bare) and run.stop_reason in (None, "time limit"):
        with run.phase("draft"), suppress(TimeoutError):
            tools.draft(run, prepared)


def can_run_here(method: Method) -> bool:
    """Return whether `method` can begin at once and looks at the clock all the time, as solvers do not."""
    return not method.exact and not method.library


def unfit(entry: Entry, prepared: Any) -> str:
    """Return why a method cannot run at all, nothing if it can."""
    if not entry.does.suits(prepared):
        return "it does not model all of the problem, or its model would be too large"
    if entry.added and not can_serve():
        return "no process of its own on this system, and this one is not to be risked"
    return "" if installed(entry.does) else f"{entry.does.library} is not installed"


class Crew:
    """Who works on one problem: this process, a worker for the searches, others beside it.

    The worker is asked for before anything else, and prepares while this process does and makes a quick plan.
    """

    def __init__(self, run: Run, name: str) -> None:
        self.run, self.named = run, name != "auto"
        self.entries = suited(run.problem)
        self.timetable = Timetable(())
        method = method_for(run.problem, name)
        if method is not None:
            added = [entry for entry in self.entries if entry.added and entry.name == name]
            self.entries = added or [Entry(run.problem.objective, name, method)]
        self.first = any(entry.alone for entry in self.entries)
        """Whether a worker is asked for only after what runs alone."""
        self._main: Process | None = None
        self._others: list[Process] = []

    def ask(self) -> None:
        """Ask for a worker if there is time and use for one."""
        if can_serve() and self.run.remaining() >= SHORT:
            self._main = Process(self.run, named=self.entries[0] if self.named else None)

    def survey(self, prepared: Any) -> Situation:
        """Return what the timetable depends on; note which methods cannot run, quick ones aside."""
        why = {entry.name: words for entry in self.entries if (words := unfit(entry, prepared))}
        for entry in self.entries:
            if entry.name in why and not entry.quick:
                self.run.leave_out(entry.name, why[entry.name])
        return Situation(
            self.entries,
            cores=self.run.workers,
            unfit=why,
            local=frozenset(
                x.name for x in self.entries if x.name not in why and (can_run_here(x.does) or (x.alone and self.first))
            ),
            serves=can_serve(),
            asked=self._main is not None,
            named=self.named,
        )

    def carry_out(self, prepared: Any) -> None:
        """Run what runs here or alone, renew the timetable after each kind of slots, not amid one; hand the rest over.

        Amid searches, what had time enough when they were planned would lose its turn with the time that they take.
        """
        run, here, done = self.run, list[TimetableSlot](), list[Entry]()
        if self._main is not None:
            self._main.listen()  # it may be ready
        situation = self.survey(prepared)
        while True:
            self.timetable = timetable(situation, run.seconds(), run.deadline - run.started, done)
            (where, _), slots = next(groupby(self.timetable.slots, lambda x: (x.where, x.why)), (("", ""), iter(())))
            if run.stopped or where not in (HERE, ALONE):
                break
            for slot in slots:
                if run.stopped:
                    break
                done.append(slot.entry)
                if where == HERE:
                    here.append(slot)
                    run_here(run, slot, slot.given, prepared, named=self.named)
                else:
                    self._others.append(Process(run, [slot], prepared))
                    self._attend(self._others[-1])
            if self.first and not run.stopped:
                self.first = False
                self.ask()
                situation = self.survey(prepared)
        if not run.stopped:
            for name, why in self.timetable.late.items():
                run.leave_out(name, why, late=True)
            self._hand_over(prepared)
        if self._main is None and not self.named:
            draw_on(run, enumerate(x.given for x in here), lambda i, entry: run_here(run, here[i], entry, prepared))
        self._attend()

    def interrupt(self) -> None:
        """Have the searches stop and tell what they have."""
        if self._main is not None:
            self._main.interrupt()

    def end(self) -> None:
        """End all workers, and say why who has not begun did not."""
        for process in [*([self._main] if self._main else ()), *self._others]:
            process.end()
        ran = {turn.method for turn in self.run.turns.values()}
        waiting = dict.fromkeys((slot.entry.name for slot in self.timetable.slots), "the solve ended before its turn")
        for name, why in {**self.timetable.left_out, **self.timetable.late, **waiting}.items():
            if name not in ran:
                self.run.left_out.setdefault(name, why)

    def _hand_over(self, prepared: Any) -> None:
        """Have workers run what is left of the timetable."""
        run, slots = self.run, [slot for slot in self.timetable.slots if slot.where == WORKER]
        self._others += [Process(run, [slot], prepared) for slot in self.timetable.slots if slot.where != WORKER]
        if slots:
            self._main = self._main or Process(run)
            self._main.order(slots, prepared)
            if run.plan is None and not self._main.ready and not self.named:
                with run.phase("draft"):
                    suite(run.problem.objective).draft(run, prepared)

    def _attend(self, until: Process | None = None) -> None:
        """Listen to all who are at work, or until one is done, as long as the run has not stopped."""
        run = self.run
        while not run.stopped:
            working = [x for x in (self._main, *self._others) if x is not None and not x.done]
            if not working or (until is not None and until.done):
                return
            listen(working)
        if self._main is None or run.stop_reason == "callback":
            return
        self._main.last_words()
        if run.stop_reason == "time limit" and not self._main.done and not self._main.ready:
            run.no_time("no time to load the searches: that goes on, for the solves to come")
