"""The calls of `Scheduler` that say why: of a decision, of a job that waits, runs or may come; and where a job runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack, cast, overload

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain
from gangplan.instances.placement import GangJob
from gangplan.instances.quantities import counted, moment

from ..decision import Decision
from ..policies.lookahead import worth
from ..queueing.request import Seconds
from ..queueing.terms import Price, TermFields
from ..starting.gpu_types import TypedSeconds
from ..state import SchedulerState
from ..stopping.notices import Stopping
from .explain import why_waits
from .explanation import Explanation, Printed, WaitingJob, span, wrapped

if TYPE_CHECKING:
    from ..scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class RunsNow(Printed):
    """Describe a job that runs.

    Attributes:
        now, since: seconds of the user's clock, now and when it started.
        degree: number of workers.
        nodes: its GPUs by name of the node.
        left: seconds that it is expected to run still: as long as it did if it was expected to be done.
        stops: from when on it may be stopped for others, `None` if never.
        price: of a stop, seconds, `None` if it may not be stopped.
        stopping: that it was told to stop, if it was.
    """

    job: str
    now: float
    since: float
    degree: int
    nodes: Mapping[str, tuple[int, ...]]
    left: float
    stops: float | None
    price: float | None
    stopping: Stopping | None = None

    @classmethod
    def of(cls, state: SchedulerState, name: str) -> RunsNow:
        """Return what is known of a running job."""
        job = state.running[name]
        stops = job.settled if job.settled < float("inf") else None
        where = state.named(job.nodes)
        told = state.notices.stopping.get(name)
        return cls(name, state.now, job.since, job.degree, where, job.left(state.now), stops, job.request.price, told)

    def __str__(self) -> str:
        """Return it as lines to be read."""
        nodes = ", ".join(f"{len(gpus)} on {node}" for node, gpus in self.nodes.items())
        stops = "it is not stopped for others"
        if self.stops is not None:
            stops = f"it may be stopped for others from {moment(self.stops)} on, which costs {span(self.price or 0.0)}"
        if told := self.stopping:
            whom = f"{told.other} ({told.cause})" if told.other else f"a {told.cause}"
            stops = f"stops in {span(max(0.0, told.until - self.now))}: told to by {whom}, holds its GPUs"
        size = counted(self.degree, "worker")
        lines = [
            f"{self.job} runs since {moment(self.since)}, {size}, for {span(self.left)} still",
            f"  GPUs: {nodes}",
            f"  {stops}",
        ]
        return "\n".join(wrapped(lines))


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
