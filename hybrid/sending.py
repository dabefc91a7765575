"""Send methods to a worker: gangplan's own by name, others' by value.

By value, with the code of its module, a method is there as it is here, whatever the caller has set; nothing has to be
imported again, neither the caller's program nor a module that only it can find.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from gangplan.solvers.method import Method, suite
from gangplan.solvers.run import Incumbent, Run

from .table import Entry, named

REQUEST = struct.Struct("!cI")
"""A letter and a number, which is what the server takes."""
_WORD, _WORD_SHARE = 0.05, 0.02
"""Seconds, and share of a limit, that a worker stops before it is over."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker prepares for: a problem and the clock of its solve.

    Attributes:
        problem: to be solved.
        started, deadline: by `time.perf_counter`, which all processes of a machine share.
        seed, workers, gap: as `Run` has them.
    """

    problem: Any
    started: float
    deadline: float
    seed: int
    workers: int
    gap: float

    @classmethod
    def of(cls, run: Run) -> Job:
        """Return the job of a solve, with a moment less, so that the last bound of a solver arrives in time."""
        deadline = run.deadline - min(_WORD, _WORD_SHARE * (run.deadline - run.started))
        return cls(run.problem, run.started, deadline, run.seed, run.workers, run.target_gap)

    def run(self) -> Run:
        """Return the solve as a worker sees it."""
        return Run(
            self.problem,
            time_limit=self.deadline - self.started,
            seed=self.seed,
            workers=self.workers,
            gap=self.gap,
            started=self.started,
        )


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is told to do once it is ready.

    Attributes:
        entries: in this order, by their numbers, without their methods.
        methods: those that are not gangplan's own.
        interpreted: whether to run as Python what is not compiled.
        once: whether to leave it at one search of those that draw.
        plan, objective, bound: the best so far.
        trace: the last entry of the trace.
        place: folder, environment and ``sys.path`` of the caller for others' methods, else `None`.
    """

    entries: Mapping[int, Entry]
    methods: Mapping[int, bytes]
    interpreted: bool
    once: bool
    plan: Any
    objective: float | None
    bound: float | None
    trace: Sequence[Incumbent]
    place: tuple[str, Mapping[str, str], list[str]] | None

    @classmethod
    def of(cls, run: Run, entries: Mapping[int, Entry], *, interpreted: bool, once: bool) -> Orders:
        """Return the orders to go on from the best so far.

        Raises:
            Exception: if a method cannot be sent.
        """
        methods = {i: packed(method) for i, x in entries.items() if (method := x.method) is not None and not ours(x)}
        bare = {i: replace(entry, method=None) for i, entry in entries.items()}
        place = (os.getcwd(), dict(os.environ), [*map(str, sys.path)]) if methods else None
        return cls(bare, methods, interpreted, once, run.plan, run.objective, run.bound, run.trace[-1:], place)

    def unpack(self) -> dict[int, Entry]:
        """Return the entries with their methods."""
        if self.place is not None:
            os.chdir(self.place[0])
            os.environ.update(self.place[1])
            sys.path[:] = self.place[2]
        found = {}
        for i, entry in self.entries.items():
            method = pickle.loads(self.methods[i]) if i in self.methods else named(entry.objective)[entry.name]
            found[i] = replace(entry, method=method)
        return found


def libraries(objective: str) -> list[str]:
    """Return the heavy libraries of an objective's methods, in an order that every process has."""
    return sorted({method.library for method in suite(objective).methods.values() if method.library})


def ours(entry: Entry) -> bool:
    """Return whether a worker knows the method by its name."""
    known = suite(entry.objective).methods.get(entry.name)
    if known is None or known is not entry.method:
        return False
    return str(getattr(known.function, "__module__", "gangplan.")).startswith("gangplan.")


def packed(method: Method) -> bytes:
    """Return a method as a worker can read it.

    Raises:
        Exception: if it holds what cannot be sent, a lock say.
    """
    cloudpickle: Any = import_module("numba.cloudpickle")  # numba's own copy of it

    module = sys.modules.get(getattr(method.function, "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or module.__name__.startswith("gangplan."):
        return bytes(cloudpickle.dumps(method))
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(method))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
