"""One solve while it is in progress: its clock, its best verified plan, its best bound."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from math import inf, isnan, ulp
from typing import TYPE_CHECKING, Any, TypeVar

from gangplan.instances import verify

from .result import PLACES, Incumbent, Turn, relative_gap

if TYPE_CHECKING:
    from gangplan.instances.verify import Answer, Problem

T = TypeVar("T")

OPTIMAL_GAP = 1e-6
"""A plan within this relative gap of the bound is called optimal: integer solvers round times, profiles do more."""

_IMPORT_SECONDS = {"torch": 4.0}
_IMPORT_AT_MOST = 0.5
"""What libraries take to import on a slow or cold machine, and all others."""
_OFTEN = 256
"""Turns of a loop between two looks at the clock: a look takes as long as a short turn."""

Callback = Callable[["Run"], bool | None]
"""Called at every new plan or bound; returning true stops the solve."""


class Run:
    """The state all methods of one solve share.

    A method calls `offer` with each plan it finds and `raise_bound` with each bound it proves, and returns
    when `stopped` turns true. Plans that fail the verifier are refused, whoever made them.

    Args:
        time_limit: seconds from `started`; everything counts.
        gap: relative gap at which a plan is good enough.
        started: `time.perf_counter()` at the user's call.
        bare: whether a method is to work on the problem itself: nothing is reduced, and no bound known beforehand.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        time_limit: float,
        seed: int = 0,
        workers: int = 1,
        gap: float = 0.0,
        callbacks: Sequence[Callback] = (),
        started: float | None = None,
        bare: bool = False,
    ) -> None:
        self.bare = bare
        self.started = time.perf_counter() if started is None else started
        # a method knows which problem it solves and what answers it, this class need not
        self.problem: Any = problem
        self.zero = _zero(problem)
        self.deadline = self.started + time_limit
        self.seed = seed
        self.workers = workers
        self.target_gap = max(gap, OPTIMAL_GAP)
        self.callbacks = callbacks
        self.plan: Any = None
        self.objective: float | None = None
        self.bound: float | None = None
        self.bound_by = ""
        self.claimants = set[str]()
        """Who has raised the bound: what comes later may rest on it."""
        self.rounding = 0.0
        """How far bounds are below what is proved because the verifier lets a clock be rounded: that is no gap."""
        self.infeasible = self.hurried = False
        self.conflict: tuple[str, ...] = ()
        self.trace: list[Incumbent] = []
        self.phases: dict[str, float] = {}
        self._inner: list[tuple[str, float]] = []
        self.turns: dict[object, Turn] = {}
        self.left_out, self.notes = dict[str, str](), list[str]()
        self.stop_reason: str | None = None
        self.failure: Exception | None = None
        self.proof: Any = None
        """The best certificate so far of a method that makes some."""

    def seconds(self) -> float:
        """Return the seconds since the user's call."""
        return time.perf_counter() - self.started

    def remaining(self) -> float:
        """Return the seconds left, at least 0."""
        return max(0.0, self.deadline - time.perf_counter())

    @property
    def gap(self) -> float | None:
        """The relative gap so far, see `relative_gap`; the rounding of a clock is none."""
        bound = None if self.bound is None else self.bound + self.rounding
        return relative_gap(self.objective, bound, self.zero)

    @property
    def stopped(self) -> bool:
        """Whether methods should return: at the optimum, good enough, out of time or told to."""
        if self.stop_reason is None and time.perf_counter() >= self.deadline:
            self.stop_reason = "time limit"
        return self.stop_reason is not None

    def offer(self, plan: Answer, by: str) -> bool:
        """Verify `plan` and keep it if it is the best; return whether it is; `AssertionError` if it is infeasible."""
        verdict = verify(self.problem, plan)
        if verdict.objective is None:
            raise AssertionError(f"{by} made an infeasible plan: {'; '.join(verdict.violations[:3])}")
        return self.keep(plan, verdict.objective, by)

    def keep(self, plan: Answer, objective: float, by: str) -> bool:
        """Keep a plan that has been verified if it is the best; return whether it is."""
        if self.objective is not None and objective >= self.objective:
            return False
        if self.bound is not None and objective < self.bound - OPTIMAL_GAP * (self.bound - self.zero):
            self.note(f"{by} found a plan of {objective:.9g} below the bound {self.bound:.9g}: bound withdrawn")
            self._refuted(f"the bound {self.bound:.9g}", by)
        if self.infeasible:
            self._refuted("that there is no plan", by)
        self.plan, self.objective = plan, objective
        if self.objective <= self.zero:
            # no load is negative; on a clock the verifier lets starts be some places early
            self.bound = min(self.objective, self.zero - PLACES * ulp(self.zero) * (self.zero > 0))
        self.trace.append(Incumbent(self.seconds(), objective, self.bound, by))
        self._changed()
        return True

    def raise_bound(self, value: float, by: str) -> None:
        """Record that `by` proved that no plan is better than `value` seconds; refuse it if a plan is.

        A bound of 0 says nothing and is left out: `None` means that nothing is proved.
        """
        if isnan(value) or value == inf:
            self.note(f"{by} claimed the bound {value}: refused")
        elif value <= self.zero:
            return
        elif self.objective is not None and value > self.objective + OPTIMAL_GAP * (self.objective - self.zero):
            self.note(f"{by} claimed the bound {value:.9g}, above a verified plan of {self.objective:.9g}: refused")
        elif self.bound is None or value > self.bound:
            self.bound, self.bound_by = value, by
            self.claimants.add(by)
            self._changed()

    def prove(self, proof: Any) -> None:
        """Record a certificate that is better than the one before."""
        self.proof = proof
        self._changed()

    def apart(self) -> Run:
        """Return a run of the same solve that goes on from the best so far, and of which nobody hears."""
        limit = self.deadline - self.started
        own = Run(self.problem, time_limit=limit, seed=self.seed, workers=self.workers, started=self.started)
        own.target_gap, own.bare, own.rounding = self.target_gap, self.bare, self.rounding
        own.adopt(*self.best)
        return own

    @property
    def best(self) -> tuple[Any, float | None, float | None, Sequence[Incumbent]]:
        """The best so far, for `adopt`."""
        return self.plan, self.objective, self.bound, self.trace[-1:]

    def adopt(self, plan: Any, objective: float | None, bound: float | None, trace: Sequence[Incumbent]) -> None:
        """Go on from the best that another run knows, where that is better than what this one does."""
        if objective is not None and (self.objective is None or objective <= self.objective):
            self.plan, self.objective, self.trace = plan, objective, [*trace]
        if bound is not None and (self.bound is None or bound > self.bound):
            self.bound, self.bound_by = bound, ""
        if self.stop_reason != "time limit":
            self.stop_reason = None
        self._changed()

    def prove_infeasible(self, by: str = "", why: str = "") -> None:
        """Record that `by` claims that there is no plan at all, and note why; refuse it beside a verified plan."""
        if why:
            self.note(why)
        if self.plan is not None:
            self.note("a claim that there is no plan, beside a verified one: refused")
            return
        self.infeasible, self.bound_by = True, by
        self.claimants.add(by)
        self.stop_reason = "claimed"

    def _refuted(self, claim: str, by: str) -> None:
        """Withdraw what a plan of `by` shows to be wrong, and say whose word it was."""
        if self.bound_by:
            self.leave_out(self.bound_by, f"it claimed {claim}, and {by} has a better plan")
        self.infeasible, self.bound, self.bound_by = False, None, ""
        if self.stop_reason == "claimed":
            self.stop_reason = None

    def note(self, text: str) -> None:
        """Leave a remark for the reader of the result."""
        if text not in self.notes:
            self.notes.append(text)

    def leave_out(self, name: str, why: str, *, late: bool = False) -> None:
        """Note why a method did not run, or not to its end; `late` if for want of time."""
        self.left_out[name] = why
        self.hurried |= late
        self.note(f"{name} left out: {why}")

    def can_import(self, library: str) -> bool:
        """Return whether a library is loaded or can be in the time left, as nothing stops an import; note it if not."""
        able = library in sys.modules or self.remaining() > _IMPORT_SECONDS.get(library, _IMPORT_AT_MOST)
        if not able:
            words = f"no time to import {library.partition('.')[0]}"
            self.leave_out(self._inner[-1][0] if self._inner else "a method", words, late=True)
        return able

    @contextmanager
    def share(self, fraction: float) -> Iterator[None]:
        """Let a block have no more than `fraction` of the time that is left."""
        if fraction >= 1:
            yield
            return
        outer = self.deadline
        self.deadline = time.perf_counter() + fraction * self.remaining()
        try:
            yield
        finally:
            self.deadline = outer
            if self.stop_reason == "time limit" and self.remaining() > 0:
                self.stop_reason = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Book the time of a block under `name`, less that of the phases inside it."""
        before = time.perf_counter()
        self._inner.append((name, 0.0))
        try:
            yield
        finally:
            spent = time.perf_counter() - before
            self.phases[name] = self.phases.get(name, 0.0) + spent - self._inner.pop()[1]
            if self._inner:
                outer, inside = self._inner.pop()
                self._inner.append((outer, inside + spent))

    def _changed(self) -> None:
        gap = self.gap
        if self.stop_reason is None and gap is not None and gap <= self.target_gap:
            self.stop_reason = "claimed" if gap <= OPTIMAL_GAP else "gap"
        for callback in self.callbacks:
            try:
                stop = callback(self)
            except Exception as error:
                # we may be in a native solver's thread: stop there, let `solve` raise it in the user's
                self.failure, stop = error, True
            if stop and self.stop_reason is None:
                self.stop_reason = "callback"


def _zero(problem: Any) -> float:
    if problem.objective != "schedule":
        return 0.0
    from gangplan.instances.verify.schedule import clock_cost

    return clock_cost(problem)


def never() -> bool:
    """Return false: there is no clock."""
    return False


@contextmanager
def in_time(run: Run) -> Iterator[None]:
    """Let a block end with `TimeoutError` once the run has stopped."""
    try:
        yield
    except TimeoutError:
        if not run.stopped:
            raise


def watched(items: Iterable[T], stopped: Callable[[], bool], often: int = _OFTEN) -> Iterator[T]:
    """Yield the items; every so `often` items look at the clock, and raise `TimeoutError` once `stopped` is true."""
    rest = iter(items)

    def runs() -> Iterator[Iterable[T]]:
        for item in rest:
            if stopped():
                raise TimeoutError
            yield chain((item,), islice(rest, often - 1))

    return chain.from_iterable(runs())  # no Python function is called for each item
