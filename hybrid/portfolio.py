"""Run a problem's methods under one deadline: quick ones here, the others in processes of their own."""

from __future__ import annotations

import sys
from dataclasses import replace
from time import sleep
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.verify import Problem
from gangplan.solvers import Run
from gangplan.solvers.fork import can_fork
from gangplan.solvers.method import Method, Suite, suite_of

from .apart import Apart, look, run_apart
from .compiling import Compiler
from .guard import Step, guarded, in_time
from .hardness import parts
from .loading import load, loaded
from .order import APART, SHORT, first, lacking, plan, unsuited
from .registry import Entry, installed, is_own, named, suited

_IMPORT = 6.0
"""Seconds left from which on a policy may import PyTorch: it has half of them at least, then."""

_POLL = 0.05
"""Seconds between two looks for what is compiled."""
_LARGE = 100_000
"""Parts of a problem from which on a draft comes first: preparing may take all of the time, and a draft some of it."""


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    tools = suite_of(run.problem)
    chosen = None if method == "auto" else _named(run.problem, tools, method)
    with in_time(run):
        _run(run, tools, chosen, method)
    if run.plan is None and not run.infeasible and run.stop_reason in (None, "time limit"):
        with run.phase("draft"):
            tools.draft(run)


def _run(run: Run, tools: Suite, chosen: Method | None, method: str) -> None:
    compiler = Compiler(run)
    if parts(run.problem) > _LARGE:
        with run.phase("draft"):
            tools.draft(run)
    with run.phase("prepare"):
        prepared = tools.prepare(run)
    if run.infeasible:
        return
    if chosen is not None:
        if not chosen.suits(prepared):
            run.note(unsuited(method))
        elif not installed(chosen):
            run.note(lacking(method, chosen.library))
        elif compiler.wait(chosen, method):
            with run.phase(method):
                chosen.run(run, prepared)
        return
    portfolio = _Portfolio(run, prepared, compiler)
    try:
        quick = first(run)
        portfolio.run_all(quick)
        if not run.stopped:
            portfolio.run_all(plan(run, prepared, quick))
            portfolio.wait()
    finally:
        portfolio.end()


def run_here(run: Run) -> None:
    """Run the methods that decide whether there is a plan, one after the other in this process: no policies.

    It is for many small questions about one problem, for each of which a process would take too long.
    """
    prepared = suite_of(run.problem).prepare(run)
    methods = named(run.problem.objective)
    deciding = [x for x in suited(run.problem) if is_own(x) and not x.learned and methods[x.name].suits(prepared)]
    for entry in deciding:
        if run.stopped:
            return
        share = 1.0 if entry is deciding[-1] else entry.share
        guarded(run, Step(entry.name, share, methods[entry.name], prepared))


class _Portfolio:
    """Methods at work on one problem.

    A method that has to wait for its kernels is replaced by those that come after it, and takes over when they are
    there. PyTorch takes seconds to import: where that has not been done, the policy does it in a process beside the
    other methods.
    """

    def __init__(self, run: Run, prepared: Any, compiler: Compiler) -> None:
        self.run, self.prepared, self.compiler = run, prepared, compiler
        self._beside: list[Apart] = []

    def run_all(self, entries: list[Entry]) -> None:
        """Run the entries in their order; what runs apart does so in as few processes as it can."""
        methods = named(self.run.problem.objective)
        left = [(entry, Step(entry.name, entry.share, methods[entry.name], self.prepared)) for entry in entries]
        while left and not self.run.stopped:
            first = next((i for i, (_, step) in enumerate(left) if self._is_next(i, step)), None)
            if first is not None:
                del left[first : first + self._next(left[first:])]
            elif not self._fill(left):
                self.compiler.missing(left.pop(0)[1].name)
        late = [step.name for _, step in left if self.compiler.comes(step.method)]
        if late and self.run.stop_reason == "time limit":
            self.compiler.missing(late[0])

    def wait(self) -> None:
        """Wait for what runs beside the others; nothing else is left to do."""
        while not self.run.stopped and any(not apart.done for apart in self._beside):
            look(self._beside)

    def end(self) -> None:
        """End what still runs."""
        for apart in self._beside:
            apart.end()

    def _is_next(self, i: int, step: Step) -> bool:
        """Return whether a step has its turn: the first one, and those that the first has waited for kernels with."""
        return self.compiler.has(step.method) and (i == 0 or step.method.kernels is not None)

    def _next(self, left: list[tuple[Entry, Step]]) -> int:
        """Run the first step, and as many after it as go into one process with it; return how many are over."""
        run, (entry, step) = self.run, left[0]
        here = entry.quick or (is_own(entry) and run.remaining() < SHORT and no_solver(step.method))
        if not here and can_fork() and run.remaining() >= APART:
            if entry.learned and step.method.library not in sys.modules:
                self._begin_beside(step)
                return 1
            load(run, step.method)
            alone = (i for i in range(1, len(left)) if not self._is_there(left[i][1].method))
            end = next(alone, len(left))
            run_apart(run, [step for _, step in left[:end]], self._beside)
            return end
        if not is_own(entry):
            run.no_time(f"{entry.name} left out: no process of its own, for want of time or of a system that has them")
        elif not here and can_fork() and not no_solver(step.method):
            run.no_time(f"{entry.name} left out: no time for a process of its own")
        else:
            guarded(run, step)
        return 1

    def _is_there(self, method: Method) -> bool:
        """Return whether neither a library nor a kernel of `method` has to be waited for."""
        return method.library in ("", *sys.modules) and self.compiler.has(method)

    def _fill(self, left: list[tuple[Entry, Step]]) -> bool:
        """Use the time until some kernels are compiled: return whether that was worth it.

        A quick method runs as Python; else those that need nothing compiled are at work until one that does can begin.
        """
        run, compiler, (entry, step) = self.run, self.compiler, left[0]
        if entry.quick:
            if can_fork():
                run_apart(run, [replace(step, interpreted=True)], self._beside)
                left.pop(0)
            return can_fork()
        waiting = [step.method for _, step in left if step.method.kernels is not None]
        if not any(compiler.comes(method) for method in waiting):
            return False

        def ready() -> bool:
            return any(map(compiler.has, waiting)) or not any(map(compiler.comes, waiting))

        others = [replace(step, share=1.0) for _, step in left if step.method.kernels is None]
        if others and can_fork() and run.remaining() >= APART:
            for other in others:
                load(run, other.method)
            run_apart(run, others, self._beside, ready)
        with run.phase("compile"):
            while not (run.stopped or ready()):
                sleep(min(_POLL, run.remaining()))
        return True

    def _begin_beside(self, step: Step) -> None:
        """Have a policy import PyTorch and decide while the others are at work."""
        if self.run.remaining() < _IMPORT:
            self.run.no_time(f"{step.name} left out: no time to import {step.method.library}")
        else:
            self._beside.append(Apart(self.run, [replace(step, share=1.0)]))


def no_solver(method: Method) -> bool:
    """Return whether `method` can begin at once and looks at the clock all the time, as solvers do not."""
    return loaded(method) and not method.exact and method.library in ("", "numba", "torch")


def _named(problem: Problem, tools: Suite, method: Any) -> Method:
    methods = named(problem.objective)
    if not isinstance(method, str) or method not in methods:
        raise InstanceError("method", f"{method!r} is not one of auto, {', '.join(methods)}")
    if problem.variant not in tools.variants_of(methods[method]):
        raise InstanceError("method", f"{method!r} does not solve the variant {problem.variant!r}")
    return methods[method]
