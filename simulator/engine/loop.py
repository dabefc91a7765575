"""The event loop: jobs end, nodes fail and recover, jobs arrive, and after all of an instant the scheduler decides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances import InstanceError

from ..asking import converted
from .decide import Decider
from .failures import Clock, Outages
from .policy import EngineScheduler, EngineView
from .state import ClusterState

_PATIENCE = 10_000
"""Failures of one job, or looks at an idle cluster, after which it is given up that jobs will ever be done."""


class Loop:
    """Runs a state to its end.

    Attributes:
        decider: who decides; whoever calls `advance` may do so instead.
        downs: (node, down, up) of every failure so far; infinite while the node is down.
    """

    def __init__(
        self,
        state: ClusterState,
        scheduler: EngineScheduler,
        outages: Outages,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.s, self._progress = state, progress
        self.view = EngineView(state)
        self.decider = Decider(scheduler, state, self.view)
        self._admit, self._wake = scheduler.part("admit"), scheduler.part("wake")
        self._clock = Clock(outages, state.fleet.n_nodes, float(state.workload.submit.min(initial=np.inf)))
        self._usable = np.asarray(state.fleet.usable)
        self._order = state.order.tolist()
        self._arrival = [*state.workload.submit[state.order].tolist(), np.inf]
        self.arrived, self._left, self._looks, self._begun = 0, state.workload.n_jobs, 0, False
        self.downs: list[tuple[int, float, float]] = []
        self._down: dict[int, int] = {}

    def run(self) -> None:
        """Simulate until every job is done or rejected."""
        while self.advance():
            self.decider.decide()

    def advance(self) -> bool:
        """Go on to the next instant at which there is something to decide; return whether there is one."""
        alarm = min(self._alarm(self.s.now), self.decider.due) if self._begun else np.inf
        if self._begun and not self.s.running.size:
            self._see_hope(alarm)
        self._begun = True
        if not self._left:
            return False
        now = min(self._arrival[self.arrived], self.s.next_end(), self._clock.time, alarm)
        if now == np.inf:
            raise self._waiting()
        self.s.advance(now)
        self._complete()
        self._fail(now)
        self._arrive(now)
        return True

    @property
    def last(self) -> bool:
        """Whether nothing more will happen by itself: all have arrived, none runs, and every node is up."""
        return self.arrived == len(self._order) and not self.s.running.size and bool((self.s.up == self._usable).all())

    def _complete(self) -> None:
        n = self.s.workload.n_jobs
        while self.s.complete():
            self._left -= 1
            if self._progress is not None and self._left % max(1, n // 100) == 0:
                self._progress(1 - self._left / n)

    def _fail(self, now: float) -> None:
        s, clock = self.s, self._clock
        while clock.time <= now and self._left:
            time = clock.time
            node, down = clock.pop()
            if not self._usable[node]:
                continue
            if not down:
                at = self._down.pop(node)
                self.downs[at] = (node, self.downs[at][1], time)
                s.repair(node)
                continue
            self._down[node] = len(self.downs)
            self.downs.append((node, time, np.inf))
            for job in s.fail(node):
                if s.broken[job] > _PATIENCE:
                    words = f"nodes fail too often: job {s.workload.names[job]} was interrupted {_PATIENCE} times"
                    raise InstanceError("outages", words)
                self.decider.join(job)

    def _arrive(self, now: float) -> None:
        while self._arrival[self.arrived] <= now:
            job = self._order[self.arrived]
            self.arrived += 1
            if self._admit is None or self._admit.admit(job, self.view):
                self.decider.join(job)
            else:
                self._left -= 1

    def _alarm(self, now: float) -> float:
        if self._wake is None:
            return np.inf
        alarm = converted(self._wake.wake(self.view), float, "wake")
        if not alarm > now:
            raise InstanceError("wake", f"{alarm!r} is not after {now!r}, when it was asked")
        return alarm

    def _see_hope(self, alarm: float) -> None:
        """Raise if jobs wait and there is nothing left for them to wait for."""
        if self._left and self.last:
            self._looks += 1
            if alarm == np.inf or self._looks > _PATIENCE:
                raise self._waiting()

    def _waiting(self) -> InstanceError:
        first = self.s.workload.names[self.s.queue.jobs[0]]
        return InstanceError("policy", f"leaves {self.s.queue.size} jobs waiting for good, the first is {first}")
