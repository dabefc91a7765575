"""The calls of `Scheduler` that say why: of a decision, of a job that waits or runs, of one that may come."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Unpack, cast, overload

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain
from gangplan.instances.placement import GangJob

from ..decision import Decision
from ..policies.lookahead import worth
from ..queueing.request import Seconds
from ..queueing.terms import Price, TermFields
from ..starting.gpu_types import TypedSeconds
from ..state import SchedulerState
from .explain import why_waits
from .explanation import Explanation, WaitingJob
from .running_now import RunsNow

if TYPE_CHECKING:
    from ..scheduler import Scheduler

KEPT = 64
"""Decisions that can be explained."""


class ExplainCalls:
    """Say why. An `InstanceError` names what is wrong."""

    _state: SchedulerState

    def whatif(
        self,
        job: GangJob,
        seconds: Seconds | TypedSeconds = None,
        *,
        together: bool | None = None,
        price: Price = ...,
        **terms: Unpack[TermFields],
    ) -> WaitingJob:
        """Return what `explain` would say of a job were it submitted now; it is not, and nothing changes.

        Args:
            job, seconds, together, price, terms: as of `submit`.
        """
        of = cast("Scheduler", self)
        twin = of._few({*of.waiting})
        twin._intervals.load(of._intervals.save(), twin._state)
        twin.submit(job, seconds, together=together, price=price, **terms)
        told = twin.explain(job.name)
        assert isinstance(told, WaitingJob)
        return told

    @overload
    def explain(self, what: str) -> WaitingJob | RunsNow: ...
    @overload
    def explain(self, what: Decision | int) -> Explanation: ...
    def explain(self, what: Decision | int | str) -> Explanation | WaitingJob | RunsNow:
        """Return why a decision is as it is, why a job waits, or where it runs; to be printed, or read.

        Of a decision, one of the last 64: candidates, scores, which tier decided, the bound, why not the others. Of a
        job, by its name and whether or not a decision has been made since it came: what it needs and what is free, who
        is before it, when it starts if nobody else comes, and what would let it start now. A policy of the user's own
        or a network is not asked for that: the rule decides in its place. Of a running job: where it runs, since when,
        how long still, and if it may be stopped.

        Raises:
            InstanceError: if it is no such decision, or no job that waits or runs.
        """
        of = cast("Scheduler", self)
        if isinstance(what, str):
            if what in self._state.running:
                return RunsNow.of(self._state, what)
            self._state.find(what, "waits")
            return why_waits(self._state, what, of._waits.get(what), of._few, of._intervals)
        number = what.number if isinstance(what, Decision) else plain(what)
        if type(number) is not int or number not in of._explained:
            raise InstanceError("what", f"{number!r} is not one of the last {KEPT}, nor the name of a job")
        found = of._explained[number]
        if number == of._count and of._changes == self._state.changes and self._state.waiting:
            # prices of the last decision that was asked for, a good start for those of now
            of._worth = worth(self._state, of._worth)
            found = dataclasses.replace(found, objective=of._worth.objective, bound=of._worth.bound)
        return found
