"""Where a job runs, to be printed or read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gangplan.instances.quantities import counted, moment

from ..state import SchedulerState
from ..stopping.notices import Stopping
from .explanation import Printed, span, wrapped


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
