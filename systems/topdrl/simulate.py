"""The front: run a policy over a workload, and return a checked schedule; and what no policy beats there."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.check import assert_sound, check
from gangplan.simulator.gangs.arrays import GpuRacks, Jobs, State, begin, cluster_of, jobs_of, order_of
from gangplan.simulator.gangs.step import at_best
from gangplan.simulator.outcome import Outcome
from gangplan.solvers.schedule.workload_bounds import mean_jct_bound


class Finishes(Protocol):
    """Decides from a state on."""

    def finish(self, jobs: Jobs, cluster: GpuRacks, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""


def simulate(
    workload: Workload,
    fleet: Fleet,
    policy: Finishes,
    proximity: Proximity | None = None,
    *,
    expected: FloatArray | None = None,
) -> Outcome:
    """Run `workload` on `fleet`: gangs on GPUs that are told apart and never shared, without preemption.

    Of one instant, jobs that are done leave first, then jobs arrive; then the policy decides.

    Args:
        proximity: how much GPUs pay for being apart.
        expected: the durations that the policy is told, float64 (n,), by default the true ones.

    Raises:
        InstanceError: if a job asks for more GPUs than there are, or for a share of one.
    """
    proximity = proximity or Proximity()
    jobs, cluster = jobs_of(workload, proximity, expected), cluster_of(fleet, proximity)
    state = begin(jobs, cluster)
    policy.finish(jobs, cluster, state)
    return outcome_of(workload, fleet, proximity, jobs, cluster, state)


def outcome_of(
    workload: Workload, fleet: Fleet, proximity: Proximity, jobs: Jobs, cluster: GpuRacks, state: State
) -> Outcome:
    """Return the schedule of a run that is over, checked without the compiled code."""
    order = order_of(workload)
    owner = np.repeat(np.arange(len(order)), np.diff(jobs.first))
    node = np.asarray(np.searchsorted(cluster.first, state.held, side="right") - 1)
    start, finish = np.empty(len(order)), np.empty(len(order))
    start[order], finish[order] = state.start, state.finish
    gpu, rate = state.held - cluster.first[node], (1 / (1 + jobs.intensity * state.cost))[owner]
    room = fleet.gpus.astype(np.int32)
    outcome = Outcome.unbroken(workload, room, start, finish, node, 1, order[owner], gpu=gpu, rate=rate)
    assert_sound(check(outcome) or check_rates(outcome, fleet, proximity))
    return outcome


def costs(outcome: Outcome, fleet: Fleet, proximity: Proximity) -> dict[int, float]:
    """Return what the GPUs of each job's last run cost it for communication, worked out from the rows alone."""
    last = outcome.row_end == outcome.finish[outcome.row_job]
    held: dict[int, tuple[list[int], list[int]]] = {}
    for job, *row in np.column_stack([outcome.row_job, outcome.row_node, outcome.row_gpus])[last].tolist():
        for column, value in zip(held.setdefault(job, ([], [])), row, strict=True):
            column.append(value)
    return {job: proximity.cost(fleet, *on) for job, on in held.items()}


def check_rates(outcome: Outcome, fleet: Fleet, proximity: Proximity) -> list[str]:
    """Return which jobs do not run at the rate of the GPUs that they have, in words."""
    work, rate = outcome.workload, outcome.row_rate
    right = {job: proximity.rate(work.model[job], cost) for job, cost in costs(outcome, fleet, proximity).items()}
    gives = np.array([right.get(job, 0.0) for job in outcome.row_job.tolist()])
    wrong = {int(outcome.row_job[i]): i for i in np.flatnonzero(~np.isclose(rate, gives, rtol=1e-9))[::-1].tolist()}
    return [
        f"job {work.names[job]} runs at rate {rate[i]:.6g}, its GPUs give {gives[i]:.6g}"
        for job, i in sorted(wrong.items())
    ]


def bound(workload: Workload, fleet: Fleet, proximity: Proximity) -> float:
    """Return a mean JCT that no schedule is below, seconds.

    Take any schedule of gangs on GPUs that are told apart. Let each gang end as soon after its start as it could have
    on the closest GPUs of an empty cluster (`least_cost`): no JCT grows, and no GPU is held longer. Forget which GPUs
    are held: of no instant are there more than all. What is left is a schedule of rigid gangs on GPUs that are only
    counted, for which `mean_jct_bound` holds: preemptive and divisible on one machine as fast as all GPUs (Schrage
    1968; Goemans 1996), and each job alone.
    """
    return mean_jct_bound(at_best(workload, fleet, proximity), fleet.n_gpus)
