"""Which method runs when, and where: quick ones here, the others in a process that can be stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.verify import Problem
from gangplan.solvers import Run
from gangplan.solvers.method import Method, Suite, suite_of

from .apart import can_fork, run_apart
from .guard import Step, guarded, in_time
from .hardness import parts
from .loading import load, loaded
from .order import APART, SHORT, first, plan, unsuited
from .registry import Entry, is_own, named

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
        elif run.can_compile(*chosen.compiled):
            with run.phase(method):
                chosen.run(run, prepared)
        return
    quick = first(run)
    _run_all(run, quick, prepared)
    if not run.stopped:
        _run_all(run, plan(run, prepared, quick), prepared)


def _run_all(run: Run, entries: list[Entry], prepared: Any) -> None:
    """Run the entries in their order; what runs apart does so in as few processes as it can."""
    methods = named(run.problem.objective)
    steps = [Step(entry.name, entry.share, methods[entry.name], prepared) for entry in entries]
    i = 0
    while i < len(steps) and not run.stopped:
        entry, step = entries[i], steps[i]
        if entry.quick and can_fork() and not run.can_compile(*step.method.compiled):
            run_apart(run, [replace(step, interpreted=True)])
            i += 1
            continue
        here = entry.quick or (is_own(entry) and run.remaining() < SHORT and no_solver(step.method))
        if not here and can_fork() and run.remaining() >= APART:
            load(run, step.method)
            end = next((j for j in range(i + 1, len(steps)) if not loaded(steps[j].method)), len(steps))
            run_apart(run, steps[i:end])
            i = end
            continue
        if not is_own(entry):
            run.no_time(f"{entry.name} left out: no process of its own, for want of time or of a system that has them")
        elif not here and can_fork() and not no_solver(step.method):
            run.no_time(f"{entry.name} left out: no time for a process of its own")
        else:
            guarded(run, step)
        i += 1


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
