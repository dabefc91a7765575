"""Run a problem's methods under one deadline: quick ones here, the others in processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from time import sleep
from typing import Any

from gangplan.solvers.kernels import in_memory
from gangplan.solvers.method import Method, suite
from gangplan.solvers.processes import POLL, can_fork
from gangplan.solvers.run import Run

from .compiling import Compiler, load, loaded
from .processes import Process, guarded, in_time, listen, run_in_processes
from .table import Entry, installed, method_for, parts, suited

PROCESS = 0.04
"""Seconds left from which on a process of its own is worth its start."""
SHORT, _QUICK_SHARE = 0.5, 0.5
"""Seconds left below which everybody has a larger share, or it would be too small for anything; quick ones less.

Without this `auto` with 0.1 s is 23 and 6% worse on placements of 8 and 40 nodes.
"""
_EACH = 1e-4
"""Seconds for each part of a problem that a policy takes to encode it and to answer."""
_IMPORT = 6.0
"""Seconds left from which on a policy may import PyTorch: it has half of them at least, then."""
_LARGE = 100_000
"""Parts of a problem from which on a draft comes first: preparing may take all of the time, and a draft some of it.

Drawn up after the time is up, the draft of 150,000 ops makes an answer due after 1 s come at 1.6 s instead of 1.3.
"""


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    tools, prepared = suite(run.problem.objective), None
    chosen = method_for(run.problem, method)
    with in_time(run):
        compiler = Compiler(run)
        if parts(run.problem) > _LARGE:
            with run.phase("draft"):
                tools.draft(run, None)
        with run.phase("prepare"):
            prepared = tools.prepare(run)
        if run.infeasible:
            return
        if chosen is None:
            _Portfolio(run, prepared, compiler).run_all()
        elif _usable(run, Entry(run.problem.objective, method, chosen), prepared) and compiler.wait(chosen, method):
            with run.phase(method):
                chosen.run(run, prepared)
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


def _usable(run: Run, entry: Entry, prepared: Any) -> bool:
    """Return whether a method suits the problem and is installed; note it if not."""
    if not _of(entry).suits(prepared):
        run.note(f"{entry.name} left out: it does not model all of the problem, or its model would be too large")
    elif not installed(_of(entry)):
        run.note(f"{entry.name} left out: {_of(entry).library} is not installed")
    else:
        return True
    return False


class _Portfolio:
    """Methods at work on one problem.

    A method that has to wait for its kernels is replaced by those that come after it, and takes over when they are
    there. PyTorch takes seconds to import: where that has not been done, the policy does it in a process beside the
    other methods.
    """

    def __init__(self, run: Run, prepared: Any, compiler: Compiler) -> None:
        self.run, self.prepared, self.compiler = run, prepared, compiler
        self._beside: list[Process] = []

    def run_all(self) -> None:
        """Run the quick methods, then the rest, and wait for what runs beside them."""
        run = self.run
        try:
            quick = first(run, self.prepared)
            self._run(self._needed(quick))
            if not run.stopped:
                self._run(self._needed(rest(run, self.prepared, quick)))
                while not run.stopped and any(not process.done for process in self._beside):
                    listen(self._beside)
        finally:
            for process in self._beside:
                process.end()

    def _needed(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries without those that stand in for our own searches, if these need not wait for anything."""
        return [entry for entry in entries if not (entry.stand_in and self._all_compiled())]

    def _all_compiled(self) -> bool:
        ours = (entry for entry in suited(self.run.problem) if not (entry.added or entry.learned))
        return all(in_memory(_of(entry).kernels) for entry in ours)

    def _run(self, left: list[Entry]) -> None:
        """Run methods in their order; those with processes of their own do so in as few as they can."""
        compiler = self.compiler
        self._begin_bounds(left)
        while left and not self.run.stopped:
            turn = next((i for i, entry in enumerate(left) if self._is_next(i, _of(entry))), None)
            if turn is not None:
                del left[turn : turn + self._next(left[turn:])]
            elif not self._fill(left):
                compiler.missing(left.pop(0).name)
        late = [entry.name for entry in left if compiler.comes(_of(entry))]
        if late and self.run.stop_reason == "time limit":
            compiler.missing(late[0])

    def _is_next(self, i: int, method: Method) -> bool:
        """Return whether a method has its turn: the first one, and those that the first has waited for kernels with."""
        return self.compiler.has(method) and (i == 0 or method.kernels is not None)

    def _next(self, left: list[Entry]) -> int:
        """Run the first method, and as many after it as go into one process with it; return how many are over."""
        run, entry, method = self.run, left[0], _of(left[0])
        here = entry.quick or (not entry.added and run.remaining() < SHORT and can_run_here(method))
        if not here and can_fork() and run.remaining() >= PROCESS:
            if entry.learned and method.library not in sys.modules:
                self._begin_beside(entry)
                return 1
            load(run, method)
            alone = (i for i in range(1, len(left)) if not self._is_there(_of(left[i])))
            end = next(alone, len(left))
            run_in_processes(run, left[:end], self.prepared, self._beside)
            return end
        if entry.added:
            run.no_time(f"{entry.name} left out: no process of its own, for want of time or of a system that has them")
        elif not here and can_fork() and not can_run_here(method):
            run.no_time(f"{entry.name} left out: no time for a process of its own")
        else:
            guarded(run, entry, self.prepared)
        return 1

    def _is_there(self, method: Method) -> bool:
        """Return whether neither a library nor a kernel of `method` has to be waited for."""
        return method.library in ("", *sys.modules) and self.compiler.has(method)

    def _fill(self, left: list[Entry]) -> bool:
        """Use the time until some kernels are compiled: return whether that was worth it.

        A quick method runs as Python; else those that need nothing compiled are at work until one that does can begin.
        """
        run, compiler = self.run, self.compiler
        if left[0].quick:
            if can_fork():
                run_in_processes(run, [left.pop(0)], self.prepared, self._beside, interpreted=True)
            return can_fork()
        waiting = [_of(entry) for entry in left if _of(entry).kernels is not None]
        if not any(compiler.comes(method) for method in waiting):
            return False

        def ready() -> bool:
            return any(map(compiler.has, waiting)) or not any(map(compiler.comes, waiting))

        others = [replace(entry, share=1.0) for entry in left if _of(entry).kernels is None]
        if others and can_fork() and run.remaining() >= PROCESS:
            for other in others:
                load(run, _of(other))
            run_in_processes(run, others, self.prepared, self._beside, until=ready)
        with run.phase("compile"):
            while not (run.stopped or ready()):
                sleep(min(POLL, run.remaining()))
        return True

    def _begin_bounds(self, left: list[Entry]) -> None:
        """Begin what is for a second worker, if there is one, and take it from the list."""
        run = self.run
        if run.workers > 1 and can_fork() and run.remaining() >= SHORT:
            beside = [x for x in left if x.beside and run.remaining() >= x.least and self.compiler.has(_of(x))]
            for entry in beside:
                load(run, _of(entry))
                self._beside.append(Process(run, [replace(entry, share=1.0)], self.prepared))
                left.remove(entry)
            if beside:
                left[:] = _claims(run.remaining(), left)

    def _begin_beside(self, entry: Entry) -> None:
        """Have a policy import PyTorch and decide while the others are at work."""
        if self.run.remaining() < _IMPORT:
            self.run.no_time(f"{entry.name} left out: no time to import {_of(entry).library}")
        else:
            self._beside.append(Process(self.run, [replace(entry, share=1.0)], self.prepared))
