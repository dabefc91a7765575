"""`Scheduler`: a state that is told what happens, and says who starts where."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gangplan.instances import Cluster, InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, GangJob, SpeedModel

from .decision import TIERS, Decision, Explanation
from .desk import Desk
from .explain import Record, explain
from .guard import Guard
from .job import Seconds
from .policy import Proposes, Ranks
from .settings import STOPPING, USUAL, Settings
from .snapshot import load as load_snapshot
from .snapshot import save
from .stops import Stopping
from .tiers import Tiers

POLICIES = ("hybrid", "learned", "heuristic")
_KEEP = 64
"""Decisions that can be explained."""
_LOOK, _FILL = 0.4, 0.9
"""Of the deadline, when the lookahead is over and when the last start is begun."""


class Scheduler:
    """Decides online who starts where, for a loop of the user's own.

    Jobs are stopped only where a stop has a `price`. Everything happens when a method is called: there are no threads,
    and time is what the caller says it is. Equal calls give equal decisions where no deadline is hit.

    Args:
        cluster: the nodes; of a device-level cluster, its servers.
        policy: ``heuristic``; ``hybrid``, that and a lookahead where jobs may be stopped; ``learned``, the heuristic
            with a learned order; or an object with `rank` or `propose` (`Ranks`, `Proposes`), before the heuristic and
            with the lookahead.
        speeds: which models run on which GPUs; by default all run on all.
        together: whether workers that fit on one node stay on one, and larger gangs take whole nodes.
        reserve: whether the first job that does not fit is not to be delayed by those behind it.
        order: jobs are in the order of seconds times GPUs to this power. By default 0, the shortest first; 1/2 if there
            is a `price`, or what a lookahead chooses for each decision.
        price: seconds that its GPUs are held without getting on when a job that was stopped runs again; `None` if jobs
            are not stopped. `submit` may say otherwise of a job.

    Raises:
        InstanceError: naming the argument that is wrong.
    """

    def __init__(
        self,
        cluster: Fleet | Cluster,
        policy: str | Any = "hybrid",
        *,
        speeds: SpeedModel | None = None,
        together: bool = True,
        reserve: bool = True,
        order: float | None = None,
        price: float | None = None,
    ) -> None:
        fleet = cluster if isinstance(cluster, Fleet) else Fleet.of(cluster)
        if isinstance(policy, str) and policy not in POLICIES:
            raise InstanceError("policy", f"{policy!r} is not one of {', '.join(POLICIES)}")
        if not isinstance(policy, str) and not isinstance(policy, Ranks | Proposes):
            raise InstanceError("policy", f"{policy!r} has neither rank nor propose")
        ahead = order is None and policy not in ("heuristic", "learned")
        usual = order if order is not None else USUAL if price is None else STOPPING
        self._settings = Settings(together, bool(reserve), usual, ahead, price)
        self._policy = policy
        self._arguments: dict[str, Any] = {
            "speeds": speeds,
            "together": together,
            "reserve": reserve,
            "order": order,
            "price": price,
        }
        self._guard = Guard()
        self._desk = Desk(fleet, speeds, self._settings)
        self._tiers = Tiers(self._desk, self._guard, policy)
        self._records: dict[int, Record] = {}
        self._count = 0

    @property
    def now(self) -> float:
        """The latest time that was heard of."""
        return self._desk.book.now

    @property
    def idle(self) -> int:
        """GPUs of nodes that are up which nobody holds."""
        return self._desk.book.idle

    @property
    def waiting(self) -> tuple[str, ...]:
        """The names of the jobs that wait, by submission."""
        return tuple(self._desk.book.waiting)

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the jobs that run, by start."""
        return tuple(self._desk.book.running)

    def submit(
        self,
        job: GangJob,
        seconds: Seconds = None,
        *,
        now: float | None = None,
        together: bool | None = None,
        price: float | None = None,
    ) -> None:
        """Let a job wait.

        Args:
            job: the gang; its name is new.
            seconds: how long it is expected to run, for each number of workers; by default what finished jobs like it
                took.
            now: seconds, no less than before; by default as before.
            together, price: instead of the scheduler's.

        Raises:
            InstanceError: naming the field; nothing has changed then.
        """
        self._tiers.expect(self._desk.submit(job, seconds, now, together, price))

    def finish(self, job: str, *, now: float | None = None) -> None:
        """Note that a running job is done, and free its GPUs.

        Raises:
            InstanceError: if no such job runs; nothing has changed then.
        """
        self._desk.finish(job, now)

    def withdraw(self, job: str, *, now: float | None = None) -> None:
        """Forget a waiting job.

        Raises:
            InstanceError: if no such job waits; nothing has changed then.
        """
        self._desk.withdraw(job, now)

    def fail_node(self, node: str | int, *, now: float | None = None) -> tuple[str, ...]:
        """Note that a node is down; return the jobs that ran there, which wait again.

        Raises:
            InstanceError: if there is no such node, or it is down already.
        """
        return self._desk.fail(node, now)

    def repair_node(self, node: str | int, *, now: float | None = None) -> None:
        """Note that a node is up again.

        Raises:
            InstanceError: if there is no such node, or it is up.
        """
        self._desk.repair(node, now)

    def decide(self, deadline: float = 0.05, *, now: float | None = None) -> Decision:
        """Stop whoever should make room, and start whoever should start now.

        Args:
            deadline: seconds of the machine's clock. What could not be started in time is for the next call, and
                `Decision.more` is true.
            now: seconds, no less than before.

        Raises:
            InstanceError: if an argument is wrong.
        """
        began = time.perf_counter()
        require_number(deadline, "deadline", positive=True)
        desk, tiers = self._desk, self._tiers
        desk.book.now = desk.book.at(now)
        self._count += 1
        scores: list[tuple[str, float]] = []
        fill = desk.fill(self._guard, began + _FILL * deadline)
        tiers.look(began + _LOOK * deadline)
        stopping = Stopping(desk, fill)
        if desk.book.waiting and desk.book.idle:
            scores = tiers.ask(fill, began + deadline)
        if desk.book.waiting and desk.parts.stoppable:
            stopping.run()
        if desk.book.waiting and desk.book.idle:
            fill.all(desk.degrees, tiers.usual)
        said = {start.tier for start in fill.starts}
        tier = next((tier for tier in TIERS if tier in said), "heuristic")
        notes = self._guard.taken()
        names = tuple(start.job for start in fill.starts)
        orders = tiers.ahead.candidates() if tiers.ahead is not None else ()
        stops = stopping.told
        record = Record(self._count, tier, desk.changes, names, scores, orders, stops, fill.waits, tiers.name, notes)
        self._records[self._count] = record
        self._records.pop(self._count - _KEEP, None)
        took = time.perf_counter() - began
        return Decision(self._count, self.now, tuple(fill.starts), tier, notes, took, fill.more, tuple(stopping.stops))

    def snapshot(self) -> dict[str, Any]:
        """Return the state, for JSON: what runs and waits, and what was learned."""
        return save(self._desk, self._guard, self._count)

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Take over a state that `snapshot` returned, of a scheduler of the same cluster and arguments.

        Decisions made before cannot be explained any more.

        Raises:
            InstanceError: naming what is wrong with it; nothing has changed then.
        """
        fresh = Scheduler(self._desk.book.fleet, self._policy, **self._arguments)
        fresh._count = load_snapshot(snapshot, fresh._desk, fresh._guard)
        for request in fresh._desk.requests():
            fresh._tiers.expect(request)
        self.__dict__.update(fresh.__dict__)

    def explain(self, decision: Decision | int) -> Explanation:
        """Return why a decision is as it is: candidates, scores, which tier decided, the bound, why not the others.

        Raises:
            InstanceError: if it is not one of the last ones.
        """
        number = decision.number if isinstance(decision, Decision) else decision
        if number not in self._records:
            raise InstanceError("decision", f"{number!r} is not one of the last {_KEEP}")
        return explain(self._records[number], self._desk)
