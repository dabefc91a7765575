"""Policies by name, on the simulator that is fastest for what is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload

from ..options import Menu
from ..outcome import Outcome
from ..trace import policies as fixed
from ..trace.simulate import DISCIPLINES as PLAIN
from ..trace.simulate import by_queue
from ..trace.simulate import simulate as simulate_fast
from .failures import Outages
from .policies import POLICIES
from .policy import Scheduler
from .simulate import simulate

_AMPLE = 1e15
"""Cores or bytes of a node where they are not counted."""


def simulate_named(
    workload: Workload,
    nodes: int,
    gpus: int,
    policy: str | Callable[[], Any] = "fifo",
    *,
    discipline: str = "head",
    consolidate: bool = False,
    preemptive: bool | None = None,
    shared: bool | None = None,
    preempt_cost: float = 0.0,
    checkpoint_interval: float | None = None,
    outages: Outages | None = None,
    degrees: Sequence[int] = (),
    overhead: float = 0.1,
    cpu: float | None = None,
    memory: float | None = None,
    per_queue: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Outcome:
    """Run `workload` on equal nodes by a policy's name.

    Args:
        workload: the jobs.
        nodes, gpus: the cluster, or that of each queue.
        policy: a name of `POLICIES`, or what makes a policy.
        discipline, consolidate: see `Scheduler`.
        preemptive: whether running jobs may be stopped; by default as the policy would have it.
        shared: whether GPUs may be shared; by default if the policy or the trace would have it.
        preempt_cost, checkpoint_interval, outages: see `simulate`.
        degrees: on offer to every job besides its own; durations by `Menu.scaling` with `overhead`.
        cpu, memory: cores and bytes of each node; by default they are not counted.
        per_queue: give each queue of the trace a cluster of its own.
        progress: called now and then with the share of the jobs that are done.

    Raises:
        InstanceError: if an argument is wrong, or a job never fits.
    """
    if isinstance(policy, str) and policy not in POLICIES:
        raise InstanceError("policy", f"{policy!r} is not one of {', '.join(POLICIES)}")
    for field, value in (("cpu", cpu), ("memory", memory)):
        require_number(value, field, optional=True)
    for field, value in (("nodes", nodes), ("gpus", gpus)):
        require_number(value, field, positive=True, whole=True)
    if per_queue and degrees:
        raise InstanceError("per_queue", "does not go with degrees")
    shares = bool((np.asarray(workload.share) < 1).any())
    shared = shared if shared is not None else True if shares else None
    plain = (
        isinstance(policy, str)
        and policy in fixed.POLICIES
        and discipline in PLAIN
        and not (preemptive or shared or outages or degrees)
    )
    if plain and cpu is None and memory is None:
        name = str(policy)

        def run(jobs: Workload) -> Outcome:
            return simulate_fast(jobs, nodes, gpus, policy=name, discipline=discipline, consolidate=consolidate)
    else:
        make = POLICIES[policy] if isinstance(policy, str) else policy
        fleet = Fleet.regular(
            1, nodes, gpus, cpu=_AMPLE if cpu is None else cpu, memory=_AMPLE if memory is None else memory
        )

        def run(jobs: Workload) -> Outcome:
            return simulate(
                jobs,
                fleet,
                Scheduler((make(),), discipline, consolidate, preemptive, shared),
                menu=Menu.scaling(jobs, degrees, overhead) if degrees else None,
                outages=outages,
                preempt_cost=preempt_cost,
                checkpoint_interval=checkpoint_interval,
                progress=progress,
            )

    return by_queue(workload, run) if per_queue else run(workload)
