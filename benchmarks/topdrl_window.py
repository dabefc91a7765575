"""The best plan of some jobs, all of them known, by CP-SAT, and what no plan is below."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.arrays import begin, cluster_of, jobs_of
from gangplan.simulator.gangs.exact import best_end
from gangplan.simulator.outcome import Outcome
from gangplan.solvers.run import OPTIMAL_GAP
from gangplan.systems.topdrl.oracle import Oracle
from gangplan.systems.topdrl.simulate import bound, outcome_of


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
    end = state.copy()
    Oracle(turns, seed=seed).finish(jobs, cluster, end)
    sum_of_jcts = least * len(jobs.submit)
    end, proved = best_end(jobs, cluster, state, end, time_limit, least=sum_of_jcts, workers=workers, seed=seed)
    mean = float((end.finish - jobs.submit).mean())
    outcome = outcome_of(workload, fleet, proximity, jobs, cluster, end)
    return Window(outcome, mean, min(mean, max(least, proved / len(jobs.submit))))
