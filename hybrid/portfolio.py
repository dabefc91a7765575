"""Run a problem's methods under one deadline: quick ones here, the others in workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gangplan.solvers.kernels import in_memory
from gangplan.solvers.method import Method, suite
from gangplan.solvers.run import Run, in_time

from .compiling import complete, loaded
from .processes import Process, guarded, listen
from .table import Entry, installed, method_for, parts, suited
from .worker import UNCOMPILED, draw_on, execute
from .workers import can_serve

PROCESS = 0.04
"""Seconds left from which on a worker is worth asking for."""
SHORT, _QUICK_SHARE = 0.5, 0.5
"""Seconds left below which everybody has a larger share, or it would be too small for anything; quick ones less.

Without this `auto` with 0.1 s is 23 and 6% worse on placements of 8 and 40 nodes.
"""
_EACH = 1e-4
"""Seconds for each part of a problem that a policy takes to encode it and to answer."""
_LARGE = 100_000
"""Parts of a problem from which on a draft comes first: preparing may take all of the time, and a draft some of it.

Drawn up after the time is up, the draft of 150,000 ops makes an answer due after 1 s come at 1.6 s instead of 1.3.
"""


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    tools, prepared = suite(run.problem.objective), None
    entry = _by_name(run.problem, method)
    crew = Crew(run)
    try:
        with in_time(run):
            if parts(run.problem) > _LARGE:
                with run.phase("draft"):
                    tools.draft(run, None)
            crew.call(entry)
            with run.phase("prepare"):
                prepared = tools.prepare(run)
            if run.infeasible:
                return
            if entry is not None and _usable(run, entry, prepared):
                crew.run_one(entry, prepared)
            elif entry is None:
                crew.run_all(prepared)
    except KeyboardInterrupt:
        crew.interrupt()
        if run.plan is None and not run.infeasible:
            tools.draft(run, prepared)
        raise
    finally:
        crew.end()
    if run.plan is None and not run.infeasible and run.stop_reason in (None, "time limit"):
        with run.phase("draft"):
            tools.draft(run, prepared)


def run_here(run: Run) -> None:
    """Run the methods that decide whether there is a plan, one after the other in this process: no policies.

    It is for many small questions about one problem, for each of which a process would take too long.
    """
    prepared = suite(run.problem.objective).prepare(run)
    entries = [x for x in suited(run.problem) if not x.added and not x.learned and _of(x).suits(prepared)]
    for entry in _last_gets_all(entries):
        if run.stopped:
            return
        guarded(run, entry, prepared)


def first(run: Run, prepared: Any) -> list[Entry]:
    """Return the quick methods that are worth their milliseconds now; where there are few, each may take them all."""
    left = run.remaining()
    short = 1.0 if left < PROCESS else _QUICK_SHARE
    quick = [x for x in suited(run.problem) if x.quick and left >= x.least and _of(x).suits(prepared)]
    return [replace(entry, share=_share(left, entry.share, short)) for entry in quick]


def rest(run: Run, prepared: Any, done: Sequence[Entry] = ()) -> list[Entry]:
    """Return what runs after the quick methods in `done`, in order, with the shares they get: see `_claims`."""
    left, over = run.remaining(), {entry.name for entry in done}
    entries = []
    for entry in sorted(suited(run.problem), key=lambda entry: left < entry.least):
        if entry.quick and (entry.name in over or left >= entry.least):
            continue
        if _usable(run, entry, prepared):
            if entry.learned and left < max(entry.least, _EACH * parts(run.problem)):
                run.no_time(f"{entry.name} left out: no time to encode the problem")
            else:
                entries.append(replace(entry, share=_share(left, entry.share, entry.short)))
    # a method that would follow itself has the time at once: its search is as long as it has time
    once = [x for x, after in zip(entries, [*entries[1:], None], strict=True) if x.name != _name(after)]
    return _claims(left, once)


def _claims(left: float, entries: Sequence[Entry]) -> list[Entry]:
    """Give all that is left to a method if no other one after it could begin with what it would leave."""
    given, over = list[Entry](), left
    for i, entry in enumerate(entries):
        over *= 1 - entry.share
        others = (x for x in entries[i + 1 :] if x.name != entry.name)
        later = any(left >= x.least and (over >= PROCESS or can_run_here(_of(x))) for x in others)
        given.append(entry if later else replace(entry, share=1.0))
    return given


def _name(entry: Entry | None) -> str:
    return entry.name if entry else ""


def can_run_here(method: Method) -> bool:
    """Return whether `method` can begin at once and looks at the clock all the time, as solvers do not."""
    return loaded(method) and not method.exact and method.library in ("", "numba", "torch")


def _last_gets_all(entries: list[Entry]) -> list[Entry]:
    return [*entries[:-1], *(replace(entry, share=1.0) for entry in entries[-1:])]


def _share(left: float, share: float, short: float) -> float:
    """Return what a method may take of the time left: `short` at least if that is little."""
    return share if left >= SHORT else max(share, short)


def _of(entry: Entry) -> Method:
    assert entry.method is not None
    return entry.method


def _by_name(problem: Any, name: str) -> Entry | None:
    """Return the method of that name as the only entry, `None` for ``auto``."""
    method = method_for(problem, name)
    if method is None:
        return None
    added = (entry for entry in suited(problem) if entry.added and entry.method is method)
    return replace(next(added, Entry(problem.objective, name, method)), share=1.0)


def _usable(run: Run, entry: Entry, prepared: Any) -> bool:
    """Return whether a method suits the problem and is installed; note it if not."""
    if not _of(entry).suits(prepared):
        run.note(f"{entry.name} left out: it does not model all of the problem, or its model would be too large")
    elif not installed(_of(entry)):
        run.note(f"{entry.name} left out: {_of(entry).library} is not installed")
    else:
        return True
    return False


class Crew:
    """Who works on one problem: this process, a worker for the searches, others beside it.

    The worker is asked for before anything else, and prepares while this process does and makes a quick plan. With
    limits of milliseconds nobody is asked whose start would take them, and what is loaded here runs here.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self._main: Process | None = None
        self._others: list[Process] = []

    def call(self, entry: Entry | None) -> None:
        """Ask for a worker if there is time and use for one: for the only entry, or all."""
        left = self.run.remaining()
        if can_serve() and left >= PROCESS and not (left < SHORT and self._loaded()):
            library = "" if entry is None else _of(entry).library
            self._main = Process(self.run, alone=entry is not None, library=library)

    def run_one(self, entry: Entry, prepared: Any) -> None:
        """Run the method that was asked for; what it raises is the caller's."""
        if self._main is not None:
            self._main.order([entry], prepared)
            self._attend()
        elif entry.added:
            self._run_strangers([entry], prepared)
        elif not self.run.stopped:
            execute(self.run, entry, prepared)

    def run_all(self, prepared: Any) -> None:
        """Run the quick methods, then the rest, and wait for what runs beside them."""
        run, main = self.run, self._main
        if main is not None:
            main.listen()  # it may be ready
        no_stand_in = self._loaded() if main is None else main.ready
        quick = [entry for entry in first(run, prepared) if not (entry.stand_in and no_stand_in)]
        here = [entry for entry in quick if can_run_here(_of(entry))]
        for entry in here:
            if not run.stopped:
                guarded(run, entry, prepared)
        left = rest(run, prepared, quick)
        self._run_strangers([entry for entry in left if entry.added], prepared)
        left = [entry for entry in left if not (entry.added or (entry.stand_in and no_stand_in))]
        left = _claims(run.remaining(), [*(entry for entry in quick if entry not in here), *left])
        over = []
        while left and not run.stopped and main is None and self._runs_here(left[0]):
            over.append(left.pop(0))
            guarded(run, over[-1], prepared)
        if left and not run.stopped and not self._hand_over(left, prepared):
            run.no_time(f"{', '.join(entry.name for entry in left)} left out: no time for a process of its own")
        if self._main is None:
            draw_on(run, enumerate(over), lambda _, entry: guarded(run, entry, prepared))
        self._attend()

    def interrupt(self) -> None:
        """Have the searches stop and tell what they have."""
        if self._main is not None:
            self._main.interrupt()

    def end(self) -> None:
        """End all workers."""
        for process in [*([self._main] if self._main else ()), *self._others]:
            process.end()

    def _loaded(self) -> bool:
        """Return whether all that is compiled for the problem is in this process."""
        ours = (entry for entry in suited(self.run.problem) if not (entry.added or entry.learned))
        return all(in_memory(_of(entry).kernels) for entry in ours)

    def _runs_here(self, entry: Entry) -> bool:
        """Return whether an entry runs in this process when no worker has been asked for."""
        return not can_serve() or ((entry.quick or self.run.remaining() < SHORT) and can_run_here(_of(entry)))

    def _run_strangers(self, entries: Sequence[Entry], prepared: Any) -> None:
        """Run what others have added, each in a process of its own, one after the other."""
        run = self.run
        for entry in entries:
            if run.stopped:
                return
            if not can_serve() or run.remaining() < PROCESS:
                words = "no process of its own, for want of time or of a system that has them"
                run.no_time(f"{entry.name} left out: {words}")
                continue
            self._others.append(Process(run, [entry], prepared))
            self._attend(self._others[-1])

    def _hand_over(self, left: list[Entry], prepared: Any) -> bool:
        """Have workers run what is left, if there is time for one.

        What only proves bounds has a worker of its own if there is a second core, and so has the first quick method,
        which runs as Python until it is compiled.
        """
        run = self.run
        if not can_serve() or (self._main is None and run.remaining() < PROCESS):
            return False
        if run.workers > 1 and run.remaining() >= SHORT:
            beside = [entry for entry in left if entry.beside and run.remaining() >= entry.least]
            self._others += [Process(run, [replace(entry, share=1.0)], prepared) for entry in beside]
            if beside:
                left = _claims(run.remaining(), [entry for entry in left if entry not in beside])
        quick = [entry for entry in left if entry.quick and _of(entry).kernels is not None]
        if quick and not complete(run.problem.objective):
            self._others.append(Process(run, quick[:1], prepared, interpreted=True))
        self._main = self._main or Process(run)
        self._main.order(left, prepared)
        if run.plan is None and not self._main.ready:
            with run.phase("draft"):
                suite(run.problem.objective).draft(run, prepared)
        return True

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
        if run.stop_reason == "time limit" and not self._main.done:
            if not complete(run.problem.objective):
                run.no_time(UNCOMPILED)
            elif not self._main.ready:
                run.no_time("no time to load the searches: that goes on, for the solves to come")
