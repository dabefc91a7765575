"""What no policy beats on a workload: each gang at its fastest, GPUs only counted; or the best plan, by CP-SAT."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.arrays import begin, cluster_of, copy, jobs_of
from gangplan.simulator.gangs.exact import best_end
from gangplan.simulator.gangs.step import at_best
from gangplan.simulator.outcome import Outcome
from gangplan.solvers.run import OPTIMAL_GAP
from gangplan.solvers.schedule.clairvoyant import clairvoyant
from gangplan.solvers.schedule.workload_bounds import mean_jct_bound

from .oracle import Oracle
from .simulate import outcome_of


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


@dataclass(frozen=True, slots=True)
class Window:
    """The best plan found, and what no plan is below.

    Attributes:
        outcome: the schedule, checked.
        mean_jct, bound: seconds.
    """

    outcome: Outcome
    mean_jct: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether no plan is better, but for rounding."""
        return self.mean_jct - self.bound <= OPTIMAL_GAP * self.mean_jct


def window(
    workload: Workload,
    fleet: Fleet,
    proximity: Proximity | None = None,
    *,
    time_limit: float = 60.0,
    workers: int = 1,
    turns: int = 1500,
    seed: int = 0,
) -> Window:
    """Minimise the mean JCT of a workload, all of it known, on a cluster that is empty at first.

    Args:
        workload: some 15 jobs.
        time_limit: seconds for CP-SAT.
        turns: of the `Oracle`, with whose plan it begins.
    """
    require_number(time_limit, "time_limit", positive=True)
    proximity = proximity or Proximity()
    jobs, cluster = jobs_of(workload, proximity), cluster_of(fleet, proximity)
    state, least = begin(jobs, cluster), bound(workload, fleet, proximity)
    end = copy(state)
    Oracle(turns, seed=seed).finish(jobs, cluster, end)
    sum_of_jcts = least * len(jobs.submit)
    end, proved = best_end(jobs, cluster, state, end, time_limit, least=sum_of_jcts, workers=workers, seed=seed)
    mean = float((end.finish - jobs.submit).mean())
    outcome = outcome_of(workload, fleet, proximity, jobs, cluster, end)
    return Window(outcome, mean, min(mean, max(least, proved / len(jobs.submit))))
