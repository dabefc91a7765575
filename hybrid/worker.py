"""Run a method and tell what it finds: in a thread of the caller, or in a process of its own that takes orders."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from gangplan.solvers.method import Method, suite
from gangplan.solvers.processes import one_thread
from gangplan.solvers.run import Incumbent, Run, in_time

from .table import Entry, own, proofs

_WORD, _WORD_SHARE = 0.05, 0.02
"""Seconds, and share of the limit, that a process stops early at most."""
_GIVES_WAY = 10
"""By how much nicer (nice(2)) a process is that only proves bounds: it takes what the search leaves of busy cores."""

Send = Callable[..., object]
"""Takes what is said: a kind, and what belongs to it."""


def execute(run: Run, entry: Entry, prepared: Any) -> None:
    """Run a method within its share of the time."""
    with (
        run.phase(entry.name),
        run.share(entry.share),
        in_time(run),
        one_thread() if entry.learned else nullcontext(),
    ):
        entry.does.run(run, prepared)


def perform(run: Run, entry: Entry, prepared: Any, send: Send) -> None:
    """Run a method and send what it finds, how it failed, and in the end its books."""
    process, run.callbacks = os.getpid(), (Tell(run, send),)
    try:
        execute(run, entry, prepared)
        if run.failure is not None:  # what could not be sent
            raise run.failure
    except BaseException as error:  # whatever it is, it is the method's: nobody presses Ctrl-C here
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

    def __init__(self, run: Run, send: Send) -> None:
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


def word(run: Run) -> float:
    """Return the seconds that a process stops early, so that a solver's last bound arrives in time."""
    return min(_WORD, _WORD_SHARE * (run.deadline - run.started))


def job(run: Run) -> dict[str, Any]:
    """Return the arguments of the `Run` of a process; all processes share `time.perf_counter`."""
    rest = {"seed": run.seed, "workers": run.workers, "gap": run.target_gap, "started": run.started, "bare": run.bare}
    return {"problem": run.problem, "time_limit": run.deadline - run.started - word(run), **rest}


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    """What a process is to do: one of gangplan's own methods by name, another one by value.

    By value, with the code of its module, a method is there as it is here, whatever the caller has set; nothing has to
    be imported again, neither the caller's program nor a module that only it can find.

    Attributes:
        entry: without its method.
        method: if it is not gangplan's own.
        seed: of the search.
        best: as `Run.adopt` takes it.
        beside: whether to give way to others.
        place: folder, environment and ``sys.path`` of the caller for others' methods, else `None`.
    """

    entry: Entry
    method: bytes | None
    seed: int
    best: tuple[Any, float | None, float | None, Sequence[Incumbent]]
    beside: bool
    place: tuple[str, Mapping[str, str], list[str]] | None

    @classmethod
    def of(cls, run: Run, entry: Entry, *, beside: bool = False) -> WorkerOrder:
        """Return the order to go on from the best so far.

        Raises:
            Exception: if the method cannot be sent.
        """
        method = None if _ours(entry) else _packed(entry.does)
        place = (os.getcwd(), dict(os.environ), [*map(str, sys.path)]) if method else None
        return cls(replace(entry, method=None), method, run.seed, run.best, beside, place)

    def unpack(self) -> Entry:
        """Return the entry with its method."""
        if self.place is not None:
            os.chdir(self.place[0])
            os.environ.update(self.place[1])
            sys.path[:] = self.place[2]
        method = pickle.loads(self.method) if self.method else _known(self.entry.objective)[self.entry.name]
        return replace(self.entry, method=method)


def _known(objective: str) -> Mapping[str, Method]:
    """Return the methods that every process has, by name."""
    return {**own(objective), **proofs()}


def _ours(entry: Entry) -> bool:
    """Return whether a process knows the method by its name."""
    known = _known(entry.objective).get(entry.name)
    if known is None or known is not entry.method:
        return False
    function = getattr(known.function, "func", known.function)  # of one with arguments
    return str(getattr(function, "__module__", "gangplan.")).startswith("gangplan.")


def _packed(method: Method) -> bytes:
    """Return a method as a process can read it.

    Raises:
        Exception: if it holds what cannot be sent, a lock say.
    """
    import cloudpickle  # rarely needed

    module = sys.modules.get(getattr(method.function, "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or module.__name__.startswith("gangplan."):
        return bytes(cloudpickle.dumps(method))
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(method))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def work(connection: Connection) -> None:
    """Prepare for the job that comes, and do what the caller orders."""
    base = Run(**connection.recv())
    with in_time(base):
        serve(base, suite(base.problem.objective).prepared(base), connection)


def serve(base: Run, prepared: Any, connection: Connection, entry: Entry | None = None) -> None:
    """Say that all is ready, and do what the caller orders until it has gone; with an entry that alone."""
    run = base

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
    if entry is not None:
        perform(base.apart(), entry, prepared, send)
    while entry is None:
        send("ready")
        order: WorkerOrder = connection.recv()
        if order.beside:
            os.nice(_GIVES_WAY)
        run, run.seed = base.apart(), order.seed
        run.adopt(*order.best)
        perform(run, order.unpack(), prepared, send)


def _can_be_sent(error: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True
