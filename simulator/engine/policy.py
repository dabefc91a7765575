"""What a policy is: up to six decisions, each a method that sees an `EngineView`, and schedulers made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload

from ..options import DegreeOptions
from .jobs import Long, Rows

if TYPE_CHECKING:
    from .state import ClusterState

DISCIPLINES = ("head", "overtake", "easy", "conservative")


class EngineView:
    """What a policy sees: n jobs and m nodes, to be read and not to be changed. Its arrays refuse to be written to.

    Attributes:
        workload: the jobs, those that are still to arrive among them; policies that are not clairvoyant look at waiting
            and running ones only, and not at durations. Durations are what policies are told, as are options.
        speeds: the cost model, `None` if rates are 1.
        rank: of each job by submit time and place in the trace, int64 (n,).
        shared: whether GPUs are told apart and may be shared.
        cost: seconds to restore a job that has run before.
        degree: GPUs that each running job holds, and that each waiting job asked for, int64 (n,).
        rate: seconds of `workload.duration` that each running job gets on in a second, float64 (n,).
        up: which nodes are up, bool (m,).
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.workload: Workload = state.workload
        self.options: DegreeOptions = state.options
        if state.told is not None:
            self.workload = replace(state.workload, duration=state.told)
            self.options = state.options.told(state.workload.duration, state.told)
        self.fleet: Fleet = state.fleet
        self.speeds: SpeedModel | Proximity | None = state.speeds
        self.shared: bool = state.shared
        self.cost: float = state.cost
        self.rank: Long = _closed(state.rank)
        self.degree: Long = _closed(state.degree)
        self.rate: FloatArray = _closed(state.rate)
        self.up: NDArray[np.bool_] = _closed(state.up)

    @property
    def now(self) -> float:
        """Seconds."""
        return self._state.now

    @property
    def waiting(self) -> Long:
        """The jobs that wait, in the order of the last `select`, int64."""
        return _closed(self._state.queue.jobs)

    @property
    def running(self) -> Long:
        """The jobs that run, in no order, int64."""
        return _closed(self._state.running.jobs)

    @property
    def free(self) -> Long:
        """GPUs of each node that nobody holds, 0 where it is down, int64 (m,)."""
        return np.asarray(np.where(self.up, self._state.free[:, 0], 0.0).astype(np.int64))

    @property
    def idle(self) -> NDArray[np.bool_]:
        """Which GPUs no job holds that was placed on GPUs told apart, node by node, bool (GPUs,)."""
        return _closed(self._state.idle)

    @property
    def spare(self) -> FloatArray:
        """GPUs, cores and bytes of each node that nobody holds, 0 where it is down, float64 (m, 3)."""
        return self._state.spare()

    def left(self, jobs: Long) -> FloatArray:
        """Return what each job still has to do, in seconds of `workload.duration`."""
        s = self._state
        past = np.where(
            s.running.place[jobs] >= 0, np.maximum(s.now - np.maximum(s.since[jobs], s.ready[jobs]), 0.0), 0.0
        )
        left = np.asarray(s.left[jobs] - s.rate[jobs] * past)
        return left if s.excess is None else np.maximum(left + s.excess[jobs], 0.0)

    def attained(self, jobs: Long) -> FloatArray:
        """Return the GPU seconds that each job has held so far."""
        s = self._state
        past = np.where(s.running.place[jobs] >= 0, s.now - s.since[jobs], 0.0)
        return np.asarray(s.attained[jobs] + s.degree[jobs] * past)

    def rows(self, job: int) -> Rows:
        """Return which GPUs a running job holds."""
        return Rows(*(_closed(x) for x in self._state.log.rows(job)))

    def find(self, job: int, degree: int) -> Rows | None:
        """Return where a waiting job would go by default, None if it does not fit."""
        return self._state.find(job, degree)

    def suits(self, job: int, rows: Rows) -> bool:
        """Return whether the nodes of `rows` are up, can run the job's model, and have its cores and memory free."""
        state = self._state
        return bool(state.ok[state.kind[job], rows.node].all()) and state.has_beside(job, rows)

    @property
    def together(self) -> list[tuple[int, ...]]:
        """The sets of jobs that have a GPU in common, each ascending, where GPUs are shared."""
        sharing = self._state.sharing
        return (
            [] if sharing is None else sorted({tuple(sorted(sharing.at[node][gpu])) for node, gpu in sharing.crowded})
        )

    def holders(self, node: int, gpu: int) -> tuple[int, ...]:
        """Return the jobs on a GPU, where GPUs are shared."""
        if self._state.sharing is None:
            raise InstanceError("shared", "is false: GPUs are not told apart")
        return tuple(self._state.sharing.at[node][gpu])


def _closed(array: NDArray[Any]) -> NDArray[Any]:
    closed = array.view()
    closed.setflags(write=False)
    return closed


class EnginePolicy(Protocol):
    """What a policy may have, some of these or all."""

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Return a number for each of `jobs`, the least is first; ties go by submit time, then by place in the trace.

        `jobs` are those that wait and, in a preemptive mode, those that run. An attribute ``steady = True`` promises
        that the number of a job stays as it is while the job waits, whatever else happens: then it is asked for only
        once. By default the numbers are submit times.
        """

    def admit(self, job: int, view: EngineView) -> bool:
        """Return whether an arriving job joins the queue; it is rejected for good otherwise. By default all join."""

    def degree(self, job: int, view: EngineView) -> int:
        """Return the degree, one of its options, at which a waiting job starts now. By default what it asked for."""

    def place(self, job: int, degree: int, view: EngineView) -> Rows | None:
        """Return where a job starts now, or None if it does not. By default `view.find(job, degree)`."""

    def preempt(self, view: EngineView) -> Long:
        """Return running jobs that stop now and join the queue, before anyone starts.

        By default a waiting job that does not fit stops running ones that `select` puts behind it, the last ones
        first and no more than it needs. A policy with a `preempt` of its own stops those that it names and no others.
        """

    def wake(self, view: EngineView) -> float:
        """Return when to decide again though nobody arrives or ends, seconds; by default never."""


DECISIONS = ("select", "admit", "degree", "place", "preempt", "wake")
"""The methods of `EnginePolicy`."""


@dataclass(frozen=True, slots=True)
class EngineScheduler:
    """Decisions put together.

    Attributes:
        parts: each decision is made by the first part that has the method.
        discipline: ``head`` (who is first blocks the others), ``overtake`` (whoever fits starts, in order), ``easy``
            (whoever fits starts unless that delays the first) or ``conservative`` (unless that delays any before it).
        consolidate: a job no larger than a node runs on one node, that with the fewest free GPUs that fits; a larger
            one on whole free nodes. Otherwise on any free GPUs.
        preemptive: whether running jobs may be stopped; by default if a part says so by an attribute ``preemptive``.
        shared: whether GPUs may be shared; by default if a part says so by an attribute ``shared``.
    """

    parts: tuple[Any, ...]
    discipline: str = "head"
    consolidate: bool = False
    preemptive: bool | None = None
    shared: bool | None = None

    def __post_init__(self) -> None:
        parts = self.parts if isinstance(self.parts, tuple) else (self.parts,)
        object.__setattr__(self, "parts", parts)
        for i, part in enumerate(parts):
            if not any(hasattr(part, name) for name in DECISIONS):
                raise InstanceError(f"parts[{i}]", f"{part!r} has none of {', '.join(DECISIONS)}")
        require_choice(self.discipline, "discipline", DISCIPLINES)
        for field in ("preemptive", "shared"):
            given = getattr(self, field)
            asked = any(getattr(part, field, False) for part in parts)
            object.__setattr__(self, field, asked if given is None else given)
        if not self.preemptive and self.part("preempt"):
            raise InstanceError("preemptive", "is false, but a policy stops jobs")
        if self.discipline in ("easy", "conservative"):
            if self.preemptive or self.shared:
                words = "holds reservations, which goes neither with preemption nor with shared GPUs"
                raise InstanceError("discipline", f"{self.discipline!r} {words}")
            if self.part("place") or self.part("degree"):
                words = "holds reservations, so it chooses places and degrees itself"
                raise InstanceError("discipline", f"{self.discipline!r} {words}")

    def part(self, decision: str) -> Any:
        """Return the part that makes a decision, None if it is made by default."""
        return next((part for part in self.parts if hasattr(part, decision)), None)
