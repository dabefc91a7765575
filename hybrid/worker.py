"""Run a method and tell what it finds: in a thread of the caller, or in a process of its own that takes orders."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from gangplan.solvers.method import suite
from gangplan.solvers.processes import one_thread
from gangplan.solvers.run import Run, in_time

from .table import Entry, own, proofs

_GIVES_WAY = 10
"""By how much nicer (nice(2)) a process is that only proves bounds: it takes what the search leaves of busy cores."""


def execute(run: Run, entry: Entry, prepared: Any) -> None:
    """Run a method within its share of the time."""
    threads = one_thread() if entry.learned else nullcontext()
    with run.phase(entry.name), run.share(entry.share), in_time(run), threads:
        entry.does.run(run, prepared)


def perform(
    run: Run,
    entry: Entry,
    prepared: Any,
    send: Callable[..., object],
    faults: type[BaseException] | tuple[type[BaseException], ...] = BaseException,
) -> None:
    """Run a method and send what it finds, how it failed if that is one of `faults`, and in the end its books."""
    process, run.callbacks = os.getpid(), (Tell(run, send),)
    try:
        execute(run, entry, prepared)
        if run.failure is not None:  # what could not be sent
            raise run.failure
    except faults as error:
        send("failed", reason(error), error)
    if os.getpid() != process:  # the method has forked, and both of it have come back
        os._exit(0)
    if run.infeasible:
        send("infeasible", run.bound_by or entry.name)
    # a solver's own clock may run out a moment before ours
    hurried = run.hurried or run.stop_reason == "time limit"
    send("end", tuple(run.notes), dict(run.left_out), dict(run.phases), hurried)


class Tell:
    """Send every new plan, bound and certificate of a run."""

    def __init__(self, run: Run, send: Callable[..., object]) -> None:
        self.send, self.plan, self.bound, self.proof = send, run.plan, run.bound, run.proof

    def __call__(self, run: Run) -> None:
        """Tell what is new."""
        if run.plan is not self.plan:
            self.plan = run.plan
            self.send("plan", run.plan, run.trace[-1].by, float(run.trace[-1].objective))
        if run.bound is not None and run.bound != self.bound:
            self.bound = run.bound
            self.send("bound", float(run.bound), run.bound_by)
        if run.proof is not self.proof:
            self.proof = run.proof
            self.send("proof", run.proof)


def reason(error: BaseException) -> str:
    """Return what a note says of a failure, whose words may fail too."""
    words = ""
    with suppress(Exception):
        words = " ".join(str(error).split())
    return f"it failed with {type(error).__name__}: {words[:300]}"


def work(connection: Connection) -> None:
    """Prepare for the job that comes, say that all is ready, and do what the caller orders until it has gone."""
    gc.freeze()  # a collection would copy all memory that is shared with whoever was forked
    base = run = Run(**connection.recv())

    def send(kind: str, *what: Any) -> None:
        if kind == "failed":
            what = what[0], what[1] if _can_be_sent(what[1]) else None
        try:
            connection.send((kind, *what))
        except OSError:  # with nobody to read it there is nothing left to do
            os._exit(1)

    def interrupt(*_: object) -> None:
        run.stop_reason = run.stop_reason or "interrupted"

    signal.signal(signal.SIGINT, interrupt)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # the threads of its pool are not in a fork
    with in_time(base):
        prepared = suite(base.problem.objective).prepared(base)
        send("ready")
        while True:
            (folder, environment, sys.path[:]), method, seed, best, beside = connection.recv()
            with suppress(OSError):
                os.chdir(folder)
            os.environ.update(environment)
            if beside:
                os.nice(_GIVES_WAY)
            entry: Entry = pickle.loads(method)
            run, run.seed = base.apart(), seed
            run.adopt(*best)
            known = {**own(entry.objective), **proofs()}
            perform(run, replace(entry, method=entry.method or known[entry.name]), prepared, send)


def _can_be_sent(error: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True
