"""What no policy beats on a workload: each gang at its fastest, GPUs only counted; or the best plan, by CP-SAT."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.arrays import WAITING, Cluster, Jobs, State, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.step import advance, at_best, start
from gangplan.simulator.outcome import Outcome
from gangplan.solvers.compiled.kernel import Ints2
from gangplan.solvers.run import OPTIMAL_GAP
from gangplan.solvers.schedule.clairvoyant import clairvoyant
from gangplan.solvers.schedule.grain import common
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


_TICKS = 1 << 22
"""In the horizon, at most."""


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

    Times are whole ticks, of which all durations are multiples if that can be; else they are rounded down, so that the
    bound holds: were a schedule's starts rounded down too, all that was over before would still be.

    Args:
        workload: some 15 jobs.
        time_limit: seconds for CP-SAT.
        turns: of the `Oracle`, with whose plan it begins.
    """
    require_number(time_limit, "time_limit", positive=True)
    proximity = proximity or Proximity()
    jobs, cluster = jobs_of(workload, proximity), cluster_of(fleet, proximity)
    state = begin(jobs, cluster)
    Oracle(turns, seed=seed).finish(jobs, cluster, state)
    best, least = state, bound(workload, fleet, proximity)
    model = _Model(jobs, cluster, float(state.finish.max()))
    model.hint(jobs, cluster, state)
    found, proved = model.solve(least * len(jobs.submit), time_limit, workers, seed)
    if found is not None:
        other = _replay(jobs, cluster, *found)
        best = other if other.finish.sum() < best.finish.sum() else best
    mean = float((best.finish - jobs.submit).mean())
    outcome = outcome_of(workload, fleet, proximity, jobs, cluster, best)
    return Window(outcome, mean, min(mean, max(least, proved / len(jobs.submit))))


class _Model:
    """c[j, v]: GPUs of job j on node v; on[j, v]: whether there are some; s[j], d[j]: start and duration, ticks."""

    def __init__(self, jobs: Jobs, cluster: Cluster, latest: float) -> None:
        from ortools.sat.python import cp_model

        self.jobs, self.cluster, self.cp = jobs, cluster, cp_model.CpModel()
        self.size = np.diff(cluster.first).tolist()
        racks = [range(a, b) for a, b in zip(cluster.begin[:-1].tolist(), cluster.begin[1:].tolist(), strict=True)]
        n, m = len(jobs.submit), len(self.size)
        menus = [self._menu(j, racks) for j in range(n)]
        times = np.concatenate([jobs.submit, *([q for *_, q in menu] for menu in menus)])
        # a schedule in which no job waits while nothing runs is over by then
        horizon = float(jobs.submit.max()) + sum(max(q for *_, q in menu) for menu in menus)
        self.tick = common(times, _TICKS) or horizon / _TICKS
        cp, most = self.cp, self.down(horizon) + 1
        self.c = [[cp.new_int_var(0, min(size, int(g)), "") for size in self.size] for g in jobs.gpus]
        self.s = [cp.new_int_var(self.down(t), most, "") for t in jobs.submit]
        self.end, spans = [], []
        for j in range(n):
            on = [cp.new_bool_var("") for _ in range(m)]
            rack = [cp.new_bool_var("") for _ in racks]
            cp.add(sum(self.c[j]) == int(jobs.gpus[j]))
            for v in range(m):
                cp.add(self.c[j][v] >= on[v])
                cp.add(self.c[j][v] <= self.size[v] * on[v])
            for r, nodes in zip(rack, racks, strict=True):
                cp.add_max_equality(r, [on[v] for v in nodes])
            one = [cp.new_bool_var("") for _ in menus[j]]
            cp.add_exactly_one(one)
            cp.add(sum(on) == sum(k * y for (k, _, _), y in zip(menus[j], one, strict=True)))
            cp.add(sum(rack) == sum(r * y for (_, r, _), y in zip(menus[j], one, strict=True)))
            ticks = [self.down(q) for *_, q in menus[j]]
            d, e = cp.new_int_var(min(ticks), max(ticks), ""), cp.new_int_var(0, 2 * most, "")
            cp.add(d == sum(q * y for q, y in zip(ticks, one, strict=True)))
            spans.append(cp.new_interval_var(self.s[j], d, e, ""))
            self.end.append(e)
        for v, size in enumerate(self.size):
            cp.add_cumulative(spans, [self.c[j][v] for j in range(n)], size)
        # implied by the nodes', and what propagates
        cp.add_cumulative(spans, jobs.gpus.tolist(), sum(self.size))
        self._break_symmetry(racks)
        self.release = sum(self.down(t) for t in jobs.submit)
        cp.minimize(sum(self.end) - self.release)

    def down(self, seconds: float) -> int:
        """Return whole ticks."""
        return int(seconds / self.tick + 1e-6)

    def _menu(self, j: int, racks: list[range]) -> list[tuple[int, int, float]]:
        """Return how many nodes and racks a job may have, and the seconds that it then takes."""
        gpus, weight, found = int(self.jobs.gpus[j]), self.cluster.weight.tolist(), []
        for r in range(1, min(gpus, len(racks)) + 1):
            for k in range(r, min(gpus, len(self.size)) + 1):
                if sum(sorted(self.size, reverse=True)[:k]) >= gpus:
                    cost = (gpus - k) * weight[0] + (k - r) * weight[1] + (r - 1) * weight[2]
                    found.append((k, r, float(self.jobs.work[j] * (1 + self.jobs.intensity[j] * cost))))
        return found

    def _break_symmetry(self, racks: list[range]) -> None:
        """Let the first job have no more GPUs of a node or rack than of an equal one before it."""
        for nodes in racks:
            for v in nodes[:-1]:
                if self.size[v] == self.size[v + 1]:
                    self.cp.add(self.c[0][v] >= self.c[0][v + 1])
        for one, two in pairwise(racks):
            if [self.size[v] for v in one] == [self.size[v] for v in two]:
                self.cp.add(sum(self.c[0][v] for v in one) >= sum(self.c[0][v] for v in two))

    def hint(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Begin with a schedule."""
        for j, row in enumerate(self.c):
            held = state.held[jobs.first[j] : jobs.first[j + 1]]
            count = np.histogram(held, cluster.first)[0]
            for variable, value in zip(row, count.tolist(), strict=True):
                self.cp.add_hint(variable, value)
            self.cp.add_hint(self.s[j], self.down(state.start[j]))

    def solve(
        self, least: float, seconds: float, workers: int, seed: int
    ) -> tuple[tuple[FloatArray, Ints2] | None, float]:
        """Return starts and GPUs of the best plan, if any was found, and a bound on the sum of JCTs, seconds."""
        from ortools.sat.python import cp_model

        from gangplan.solvers.cpsat_solver import solver_for

        solver: Any = solver_for(seconds, workers, seed)
        solver.parameters.use_objective_lb_search = True  # on one thread the bound hardly moves without it
        self.cp.add(sum(self.end) - self.release >= int(least / self.tick) - 2 * len(self.end))
        status = solver.solve(self.cp)
        if status == cp_model.INFEASIBLE:
            raise AssertionError("CP-SAT finds no plan where one after the other is one")
        # releases are rounded down too, and count as they are
        proved = (solver.best_objective_bound + self.release) * self.tick - float(self.jobs.submit.sum())
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None, proved
        starts = np.array([solver.value(s) for s in self.s], dtype=np.float64)
        return (starts, np.array([[solver.value(x) for x in row] for row in self.c])), proved


def _replay(jobs: Jobs, cluster: Cluster, starts: FloatArray, take: Ints2) -> State:
    """Return the end of a run that starts jobs in this order on these GPUs, each as soon as it can."""
    state = begin(jobs, cluster)
    for job in np.lexsort((jobs.submit, starts)).tolist():
        while True:
            waiting = state.queue[: state.count[WAITING]].tolist()
            if job in waiting and (state.free >= take[job]).all():
                start(jobs, cluster, state, waiting.index(job), take[job])
                break
            advance(jobs, cluster, state)
    while advance(jobs, cluster, state):
        pass
    return state
