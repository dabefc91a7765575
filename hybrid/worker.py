"""Run methods and tell what they find: what a worker is told, and what it does, in a process of its own."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from gangplan.solvers.method import Method, suite
from gangplan.solvers.processes import one_thread
from gangplan.solvers.run import Incumbent, Run, in_time

from .table import Entry, named, own

REQUEST = struct.Struct("!cI")
"""A letter and a number, which is what the server takes."""
_WORD = 0.05
"""Seconds that a worker stops before the limit is over, at most."""
_WORD_SHARE = 0.02
"""The same as a share of the limit."""
_GIVES_WAY = 10
"""By how much nicer (nice(2)) a process is that only proves bounds: it takes what the search leaves of busy cores."""
_EXHAUSTED = 1e-3
"""Seconds of a round of searches below which another round, with other random numbers, is not worth its start."""


def job(run: Run) -> dict[str, Any]:
    """Return the arguments of a worker's `Run`, with a moment less, so that the last bound of a solver arrives in time.

    All processes of a machine share `time.perf_counter`.
    """
    limit = run.deadline - run.started
    rest = {"seed": run.seed, "workers": run.workers, "gap": run.target_gap, "started": run.started, "bare": run.bare}
    return {"problem": run.problem, "time_limit": limit - min(_WORD, _WORD_SHARE * limit), **rest}


@dataclass(frozen=True, slots=True)
class WorkerOrders:
    """What a worker is told to do once it is ready: gangplan's own methods by name, others' by value.

    By value, with the code of its module, a method is there as it is here, whatever the caller has set; nothing has to
    be imported again, neither the caller's program nor a module that only it can find.

    Attributes:
        entries: in this order, by their numbers, without their methods.
        methods: those that are not gangplan's own.
        once: whether to leave it at one search of those that draw.
        best: plan, objective, bound and last entry of the trace, see `Run.adopt`.
        place: folder, environment and ``sys.path`` of the caller for others' methods, else `None`.
    """

    entries: Mapping[int, Entry]
    methods: Mapping[int, bytes]
    once: bool
    best: tuple[Any, float | None, float | None, Sequence[Incumbent]]
    place: tuple[str, Mapping[str, str], list[str]] | None

    @classmethod
    def of(cls, run: Run, entries: Mapping[int, Entry], *, once: bool) -> WorkerOrders:
        """Return the orders to go on from the best so far.

        Raises:
            Exception: if a method cannot be sent.
        """
        methods = {i: packed(entry.does) for i, entry in entries.items() if not ours(entry)}
        bare = {i: replace(entry, method=None) for i, entry in entries.items()}
        place = (os.getcwd(), dict(os.environ), [*map(str, sys.path)]) if methods else None
        return cls(bare, methods, once, (run.plan, run.objective, run.bound, run.trace[-1:]), place)

    def unpack(self) -> dict[int, Entry]:
        """Return the entries with their methods."""
        if self.place is not None:
            os.chdir(self.place[0])
            os.environ.update(self.place[1])
            sys.path[:] = self.place[2]
        packed = {i: pickle.loads(method) for i, method in self.methods.items()}
        return {
            i: replace(entry, method=packed[i] if i in packed else named(entry.objective)[entry.name])
            for i, entry in self.entries.items()
        }


def ours(entry: Entry) -> bool:
    """Return whether a worker knows the method by its name."""
    known = own(entry.objective).get(entry.name)
    if known is None or known is not entry.method:
        return False
    return str(getattr(known.function, "__module__", "gangplan.")).startswith("gangplan.")


def packed(method: Method) -> bytes:
    """Return a method as a worker can read it.

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


def work(connection: Connection, file: int) -> None:
    """Prepare for the job in a file, say so, and do what the caller orders."""
    tell = Tell(connection)
    with os.fdopen(file, "rb") as source:
        source.seek(0)
        run = Run(**pickle.load(source))

    def interrupt(*_: object) -> None:
        run.stop_reason = run.stop_reason or "interrupted"

    signal.signal(signal.SIGINT, interrupt)
    with in_time(run):
        prepared = suite(run.problem.objective).prepared(run)
        tell.send("ready")
        orders: WorkerOrders = connection.recv()
        tell.plan, _, tell.bound, _ = orders.best
        run.adopt(*orders.best)
        serve(run, orders.unpack(), prepared, tell, once=orders.once)


def serve(run: Run, entries: dict[int, Entry], prepared: Any, tell: Tell, *, once: bool = False) -> None:
    """Run entries in their order and tell what they find.

    Unless told to search `once`, those that draw go on with other random numbers for as long as there is time.
    """
    if all(entry.beside for entry in entries.values()):
        os.nice(_GIVES_WAY)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # the threads of its pool are not in a fork
    process, run.callbacks = os.getpid(), (tell,)

    def turn(number: int, entry: Entry) -> None:
        for book in (run.notes, run.left_out, run.phases):
            book.clear()
        tell.begin(number, entry.name, run.remaining() * entry.share)
        tell(run)
        try:
            execute(run, entry, prepared)
        except BaseException as error:  # whatever it is, it is the method's: nobody presses Ctrl-C here
            tell.failed(error, once)
        if os.getpid() != process:  # the method has forked, and both of it have come back
            os._exit(0)
        if run.infeasible:
            tell.send("infeasible", run.bound_by or entry.name)
        # a solver's own clock may run out a moment before ours
        hurried = run.hurried or run.stop_reason == "time limit"
        tell.send("end", number, tuple(run.notes), dict(run.left_out), dict(run.phases), hurried)

    if run.stopped and entries:  # what it prepared is the answer
        tell.begin(*next((i, entry.name) for i, entry in entries.items()), run.remaining())
        tell(run)
    for number, entry in entries.items():
        if not run.stopped:
            turn(number, entry)
    if not once:
        draw_on(run, entries.items(), turn)
    tell.send("done")


def draw_on(run: Run, entries: Any, turn: Callable[[int, Entry], object]) -> None:
    """Run searches that draw again and again, with other random numbers, until the run has stopped."""
    again = [(i, entry) for i, entry in entries if entry.does.draws]
    while again and not run.stopped:
        since = time.perf_counter()
        run.seed = (run.seed + 1) % 2**31
        for i, entry in again:
            if not run.stopped:
                turn(i, entry)
        if time.perf_counter() - since < _EXHAUSTED * len(again):
            return


def execute(run: Run, entry: Entry, prepared: Any) -> None:
    """Run a method within its share of the time."""
    with (
        run.phase(entry.name),
        run.share(entry.share),
        in_time(run),
        one_thread() if entry.learned else nullcontext(),
    ):
        entry.does.run(run, prepared)


class Tell:
    """Send every new plan and bound to who has begun this process."""

    def __init__(self, outbox: Connection) -> None:
        self.outbox, self.by = outbox, ""
        self.plan: Any = None
        self.bound: float | None = None

    def send(self, *message: Any) -> None:
        """Send a message; with nobody to read it there is nothing left to do."""
        try:
            self.outbox.send(message)
        except OSError:
            os._exit(1)

    def begin(self, number: int, name: str, seconds: float) -> None:
        """Tell that a method has begun, and how long it may take."""
        self.by = name
        self.send("begin", number, seconds)

    def failed(self, error: BaseException, whole: bool) -> None:
        """Tell that the method has failed, with the error itself if the caller is to have it, and it can be sent."""
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            whole = False
        self.send("failed", reason(error), error if whole else None)

    def __call__(self, run: Run) -> None:
        """Tell what is new."""
        if run.plan is not self.plan:
            self.plan = run.plan
            self.send("plan", run.plan, run.trace[-1].by)
        if run.bound is not None and run.bound != self.bound:
            self.bound = run.bound
            self.send("bound", run.bound, run.bound_by or self.by)


def reason(error: BaseException) -> str:
    """Return what a note says of a failure."""
    return f"it failed with {type(error).__name__}: {' '.join(str(error).split())[:300]}"
