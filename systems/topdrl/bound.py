"""What no policy beats on a workload: each gang at its fastest, GPUs only counted."""

from __future__ import annotations

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.step import at_best
from gangplan.solvers.schedule.clairvoyant import clairvoyant
from gangplan.solvers.schedule.workload_bounds import mean_jct_bound


def bound(workload: Workload, fleet: Fleet, proximity: Proximity | None = None, *, time_limit: float = 0.0) -> float:
    """Return a mean JCT that no schedule is below, seconds.

    Take any schedule of gangs on GPUs that are told apart. Let each gang end as soon after its start as it could have
    on the closest GPUs of an empty cluster (`least_cost`): no JCT grows, and no GPU is held longer. Forget which GPUs
    are held: of no instant are there more than all. What is left is a schedule of rigid gangs on GPUs that are only
    counted, which the bounds of `gangplan.solvers.schedule` hold for: `mean_jct_bound`, preemptive and divisible on one
    machine as fast as all GPUs (Schrage 1968; Goemans 1996), and each job alone; with time, the time-indexed LP.

    Args:
        time_limit: seconds for the LP, 0 to leave it out.
    """
    fastest = at_best(workload, fleet, proximity or Proximity())
    if time_limit > 0:
        return clairvoyant(fastest, fleet.n_gpus, time_limit=time_limit).bound
    return mean_jct_bound(fastest, fleet.n_gpus)
