"""The event loop: jobs end, nodes fail and recover, jobs arrive, and after all of an instant the scheduler decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.workload import Workload

from ..trace.check import check
from ..trace.menu import Menu
from ..trace.outcome import Outcome
from .failures import Clock, Outages
from .policy import Scheduler

if TYPE_CHECKING:
    from .state import State

_PATIENCE = 10_000
"""Failures of one job after which it is given up that it will ever be done."""


def simulate(
    workload: Workload,
    fleet: Fleet,
    scheduler: Scheduler,
    *,
    menu: Menu | None = None,
    speeds: SpeedModel | None = None,
    outages: Outages | None = None,
    preempt_cost: float = 0.0,
    checkpoint_interval: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Outcome:
    """Run `workload` on `fleet` as `scheduler` decides.

    Of one instant, jobs that are done leave first, then nodes come up, go down, and jobs arrive; then it decides.

    Args:
        workload: the jobs.
        fleet: the nodes. Cores and memory count if jobs name them.
        scheduler: the policies.
        menu: degrees of the jobs; by default each runs on the GPUs it asked for.
        speeds: of the models of the jobs: with it jobs slow one another down on nodes, GPUs and links, and run slower on
            slower GPUs, by the cost model of placement; a duration is then that of a job alone at its best. By
            default every job runs at rate 1.
        outages: when nodes are down. Jobs there stop, and go on from their last checkpoints.
        preempt_cost: seconds that a job holds its GPUs without getting on whenever it runs again after it was stopped.
        checkpoint_interval: seconds between the checkpoints of a job since it last started; by default progress is
            saved only when it is stopped on purpose.
        progress: called now and then with the share of the jobs that are done.

    Raises:
        InstanceError: if an argument is wrong, a job never fits, or a policy breaks its contract or leaves jobs waiting
            for good.
    """
    require_number(preempt_cost, "preempt_cost")
    require_number(checkpoint_interval, "checkpoint_interval", optional=True)
    interval = float("inf") if checkpoint_interval is None else float(checkpoint_interval)
    if menu is not None and menu.n_jobs != workload.n_jobs:
        raise InstanceError("menu", f"is of {menu.n_jobs} jobs where there are {workload.n_jobs}")
    if not scheduler.shared and (np.asarray(workload.share) < 1).any():
        i = int(np.argmax(np.asarray(workload.share) < 1))
        raise InstanceError(f"share[{i}]", f"job {workload.names[i]} asks for a share, and GPUs are not shared")
    from .decide import Decider  # compiling takes longer than most imports
    from .state import State
    from .view import View

    state = State(
        workload,
        fleet,
        Menu.rigid(workload) if menu is None else menu,
        speeds,
        shared=bool(scheduler.shared),
        consolidate=scheduler.consolidate,
        cost=float(preempt_cost),
        interval=interval,
    )
    if scheduler.part("degree") is None and scheduler.part("admit") is None:
        _fit(state)
    view = View(state)
    decider = Decider(scheduler, state, view)
    admit, wake = scheduler.part("admit"), scheduler.part("wake")
    clock = Clock(outages or Outages(), fleet.n_nodes)
    downs: list[list[float]] = []
    down_row: dict[int, int] = {}
    n, arrived, left, alarm = workload.n_jobs, 0, workload.n_jobs, np.inf
    order, usable = state.order.tolist(), np.asarray(fleet.usable)
    arrival = [*workload.submit[state.order].tolist(), np.inf]
    step = max(1, n // 100)
    while left:
        now = min(arrival[arrived], state.next_end(), clock.time, alarm)
        if now == np.inf:
            raise _waiting(state)
        state.advance(now)
        while state.complete():
            left -= 1
            if progress is not None and left % step == 0:
                progress(1 - left / n)
        while clock.time <= now and left:
            time = clock.time
            node, down = clock.pop()
            if not usable[node]:
                continue
            if down:
                down_row[node] = len(downs)
                downs.append([node, time, np.inf])
                for job in state.fail(node):
                    if state.broken[job] > _PATIENCE:
                        words = f"job {workload.names[job]} was lost {_PATIENCE} times; nodes fail too often for it"
                        raise InstanceError("outages", words)
                    decider.join(job)
            else:
                downs[down_row[node]][2] = time
                state.repair(node)
        while arrival[arrived] <= now:
            job = order[arrived]
            arrived += 1
            if admit is None or admit.admit(job, view):
                decider.join(job)
            else:
                left -= 1
        decider.decide()
        alarm = np.inf
        if wake is not None:
            alarm = float(wake.wake(view))
            if not alarm > now:
                raise InstanceError("wake", f"{alarm!r} is not after {now!r}, when it was asked")
        if left and arrived == n and not state.running.size and alarm == np.inf and (state.up == usable).all():
            raise _waiting(state)
    outcome = state.log.outcome(
        workload,
        np.where(usable, fleet.gpus, 0).astype(np.int32),
        state.started,
        state.finish,
        [(int(node), start, end) for node, start, end in downs],
        state.cost,
        interval,
        menu,
    )
    wrong = check(outcome)
    if wrong:
        raise AssertionError(f"the simulator made an impossible schedule: {'; '.join(wrong[:3])}")
    return outcome


def _waiting(state: State) -> InstanceError:
    first = state.workload.names[state.queue.jobs[0]]
    return InstanceError("policy", f"leaves {state.queue.size} jobs waiting for good, the first is {first}")


def _fit(state: State) -> None:
    """Raise if a job would not fit if it were alone."""
    asked = np.column_stack([state.workload.gpus, state.workload.share, state.kind, state.unit])
    _, sample = np.unique(asked, axis=0, return_index=True)
    for job in sorted(sample.tolist()):
        need = int(state.workload.gpus[job])
        if state.find(job, need) is None:
            words = f"job {state.workload.names[job]} needs {need}, which the cluster never has for it"
            raise InstanceError(f"gpus[{job}]", words)
