"""The guard: what a method does wrong costs its own share of the time and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gangplan.solvers import Run
from gangplan.solvers.compiled.cache import interpret
from gangplan.solvers.method import Method

OF_A_METHOD = (Exception, SystemExit, GeneratorExit)
"""What a method may raise without ending the caller's program; Ctrl-C is for the caller."""


class MethodFailed(RuntimeWarning):
    """A method was left out because it failed; the answer is that of the others."""


@dataclass(frozen=True, slots=True)
class Step:
    """One method of a portfolio.

    Attributes:
        name: of the method.
        share: of the time left that it may take.
        method: itself.
        prepared: what the suite has made of the problem.
        interpreted: run as Python what is not compiled, in a process where nothing else is to follow.
    """

    name: str
    share: float
    method: Method
    prepared: Any
    interpreted: bool = False


def execute(run: Run, step: Step) -> None:
    """Run a method within its share of the time, if what it needs compiled is there."""
    if step.interpreted:
        interpret()
    if step.interpreted or run.compiled(step.method.kernels, step.name):
        with run.phase(step.name), run.share(step.share), in_time(run):
            step.method.run(run, step.prepared)


@contextmanager
def in_time(run: Run) -> Iterator[None]:
    """Let a block end with `TimeoutError` once the run has stopped."""
    try:
        yield
    except TimeoutError:
        if not run.stopped:
            raise


def guarded(run: Run, step: Step) -> None:
    """Run a method in this process; if it fails, say so and go on."""
    try:
        execute(run, step)
    except OF_A_METHOD as error:
        if run.failure is not None:  # a callback's, which is for the caller
            raise
        failed(run, step.name, reason_of(error))


def failed(run: Run, name: str, reason: str) -> None:
    """Note that a method failed, and warn: once for each reason, if the caller's filters are as usual."""
    text = f"{name} left out: {reason}"
    run.note(text)
    warnings.warn(f"{text}; the answer is that of the other methods", MethodFailed, stacklevel=2)


def reason_of(error: BaseException) -> str:
    """Return what went wrong in a line."""
    return f"it failed with {type(error).__name__}: {' '.join(str(error).split())[:300]}"
