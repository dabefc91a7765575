"""The best that can become of a state when all jobs to come are known, by CP-SAT: running jobs stay as they are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.schedule.grain import common

from .arrays import ARRIVED, NOW, RUNNING, WAITING, GpuRacks, Jobs, State
from .step import advance, start, total_jct

Whole = NDArray[np.int64]
TICKS = 1 << 22
"""Maximum number of ticks in the horizon."""
ROUGH = 1 << 10
"""The same where a plan is wanted at once."""
PARTS = 64
"""Of a tick, in which GPU seconds at a price are counted."""


def best_end(
    jobs: Jobs, cluster: GpuRacks, state: State, end: State, seconds: float, *,
    least: float = 0.0, workers: int = 1, seed: int = 0, rough: bool = False, price: float = 0.0,
) -> tuple[State, float]:  # fmt: skip
    """Return the end of the best plan for the jobs that wait or come, and a bound on the sum of JCTs, seconds.

    Times are whole ticks, of which all durations are multiples if that can be; else they are rounded down, so that the
    bound holds: were a schedule's starts rounded down too, all that was over before would still be.

    Args:
        jobs: some ten that wait or come; a job that has arrived and is not in the queue is left out.
        state: where the plan begins; nothing changes here.
        end: of a plan, which the search begins with; it is returned if CP-SAT has no better one.
        seconds: time limit of CP-SAT.
        least: bound on the sum of JCTs of the jobs that wait or come, seconds.
        rough: whether ticks are long and `seconds` of deterministic time; the plan counts in full, the bound suffers,
            and is -inf where no plan in such ticks was proved to be the best.
        price: of a GPU second, see `worth`; the bound leaves it out.
    """
    left = np.append(state.queue[: state.count[WAITING]], np.arange(state.count[ARRIVED], len(jobs.submit)))
    if len(left) == 0:
        return end, total_jct(jobs, end)
    model = _GangModel(jobs, cluster, state, left, rough, price)
    model.hint(end)
    plan, proved = model.solve(least, seconds, workers, seed)
    if plan is not None:
        other = _replay(jobs, cluster, state.copy(), left, *plan)
        end = min(end, other, key=lambda x: worth(jobs, x, price))
    begun = state.start < np.inf
    return end, proved + float((state.finish[begun] - jobs.submit[begun]).sum())


def worth(jobs: Jobs, end: State, price: float) -> float:
    """Return the sum of JCTs, and of GPU seconds at a price; seconds."""
    return total_jct(jobs, end) + price * float((end.finish - end.start) @ jobs.gpus)


class _GangModel:
    """c[j, v]: GPUs of job j on node v; on[j, v]: whether there are some; s[j], d[j]: start and duration, ticks.

    The clock of the state is tick 0, and the GPUs of running jobs are taken until these end.
    """

    def __init__(self, jobs: Jobs, cluster: GpuRacks, state: State, left: Whole, rough: bool, price: float) -> None:
        from ortools.sat.python import cp_model

        self.jobs, self.cluster, self.left, self.cp = jobs, cluster, left.tolist(), cp_model.CpModel()
        self.size, self.now = np.diff(cluster.first).tolist(), float(state.clock[NOW])
        racks = [range(a, b) for a, b in pairwise(cluster.begin.tolist())]
        running, m = state.running[: state.count[RUNNING]].tolist(), len(self.size)
        menus = [self._menu(j, racks) for j in self.left]
        release, ends = np.maximum(jobs.submit[left] - self.now, 0.0), state.finish[running] - self.now
        times = np.concatenate([release, ends, *([q for *_, q in menu] for menu in menus)])
        # a schedule in which no job waits while nothing runs is over by then
        horizon = float(max(release.max(), ends.max(initial=0.0))) + sum(max(q for *_, q in menu) for menu in menus)
        self.rough = rough
        self.tick = horizon / ROUGH if rough else common(times, TICKS) or horizon / TICKS
        cp, most, gpus = self.cp, self.down(horizon) + 1, jobs.gpus[left].tolist()
        self.c = [[cp.new_int_var(0, min(size, g), "") for size in self.size] for g in gpus]
        self.s = [cp.new_int_var(self.down(t), most, "") for t in release]
        self.end, spans, lasts = [], [], list[Any]()
        for j, menu in enumerate(menus):
            on = [cp.new_bool_var("") for _ in range(m)]
            rack = [cp.new_bool_var("") for _ in racks]
            cp.add(sum(self.c[j]) == gpus[j])
            for v in range(m):
                cp.add(self.c[j][v] >= on[v])
                cp.add(self.c[j][v] <= self.size[v] * on[v])
            for r, nodes in zip(rack, racks, strict=True):
                cp.add_max_equality(r, [on[v] for v in nodes])
            one = [cp.new_bool_var("") for _ in menu]
            cp.add_exactly_one(one)
            cp.add(sum(on) == sum(k * y for (k, _, _), y in zip(menu, one, strict=True)))
            cp.add(sum(rack) == sum(r * y for (_, r, _), y in zip(menu, one, strict=True)))
            ticks = [self.down(q) for *_, q in menu]
            d, e = cp.new_int_var(min(ticks), max(ticks), ""), cp.new_int_var(0, 2 * most, "")
            cp.add(d == sum(q * y for q, y in zip(ticks, one, strict=True)))
            spans.append(cp.new_interval_var(self.s[j], d, e, ""))
            self.end.append(e)
            lasts.append(d)
        held = [np.bincount(cluster.node[state.held[jobs.first[j] : jobs.first[j + 1]]], minlength=m) for j in running]
        fixed = [cp.new_fixed_size_interval_var(0, self.down(t), "") for t in ends]
        for v, size in enumerate(self.size):
            cp.add_cumulative(spans + fixed, [c[v] for c in self.c] + [int(x[v]) for x in held], size)
        # implied by the nodes', and what propagates
        cp.add_cumulative(spans + fixed, gpus + jobs.gpus[running].tolist(), sum(self.size))
        taken = [(size, *(int(x[v]) for x in held)) for v, size in enumerate(self.size)]
        self._break_symmetry(racks, taken)
        self.release = sum(self.down(t) for t in release)
        if price > 0:
            costs = [round(PARTS * price * g) for g in gpus]
            cp.minimize(PARTS * sum(self.end) + sum(cost * d for cost, d in zip(costs, lasts, strict=True)))
        else:
            cp.minimize(sum(self.end) - self.release)

    def down(self, seconds: float) -> int:
        """Return whole ticks."""
        return int(seconds / self.tick + 1e-6)

    def _menu(self, j: int, racks: list[range]) -> list[tuple[int, int, float]]:
        """Return how many nodes and racks a job may have, and the seconds that it then takes."""
        gpus, weight, menu = int(self.jobs.gpus[j]), self.cluster.weight.tolist(), []
        for r in range(1, min(gpus, len(racks)) + 1):
            for k in range(r, min(gpus, len(self.size)) + 1):
                if sum(sorted(self.size, reverse=True)[:k]) >= gpus:
                    cost = (gpus - k) * weight[0] + (k - r) * weight[1] + (r - 1) * weight[2]
                    menu.append((k, r, float(self.jobs.work[j] * (1 + self.jobs.intensity[j] * cost))))
        return menu

    def _break_symmetry(self, racks: list[range], taken: list[tuple[int, ...]]) -> None:
        """Let the first job have no more GPUs of a node or rack than of one before it that is taken alike."""
        for nodes in racks:
            for v in nodes[:-1]:
                if taken[v] == taken[v + 1]:
                    self.cp.add(self.c[0][v] >= self.c[0][v + 1])
        for one, two in pairwise(racks):
            if [taken[v] for v in one] == [taken[v] for v in two]:
                self.cp.add(sum(self.c[0][v] for v in one) >= sum(self.c[0][v] for v in two))

    def hint(self, end: State) -> None:
        """Begin with a schedule."""
        for j, row, s in zip(self.left, self.c, self.s, strict=True):
            held = end.held[self.jobs.first[j] : self.jobs.first[j + 1]]
            count = np.histogram(held, self.cluster.first)[0]
            for variable, value in zip(row, count.tolist(), strict=True):
                self.cp.add_hint(variable, value)
            self.cp.add_hint(s, self.down(end.start[j] - self.now))

    def solve(
        self, least: float, seconds: float, workers: int, seed: int
    ) -> tuple[tuple[FloatArray, Whole] | None, float]:
        """Return starts and GPUs of the best plan, if any was found, and a bound on the sum of JCTs, seconds."""
        from ortools.sat.python import cp_model

        from gangplan.solvers.cpsat_solver import solver_for

        solver: Any = solver_for(seconds, workers, seed)
        if self.rough:  # propagation alone proves sooner, and the same plan comes of the same seed at any load
            solver.parameters.linearization_level, solver.parameters.cp_model_presolve = 0, False
            solver.parameters.max_time_in_seconds, solver.parameters.max_deterministic_time = 100 * seconds, seconds
        else:
            solver.parameters.use_objective_lb_search = True  # on one thread the bound hardly moves without it
        # releases are rounded down too, and count as they are
        waited = len(self.left) * self.now - float(self.jobs.submit[self.left].sum())
        self.cp.add(sum(self.end) >= int((least - waited) / self.tick) - 2 * len(self.end))
        status = solver.solve(self.cp)
        if status == cp_model.INFEASIBLE:
            raise AssertionError("CP-SAT finds no plan where one after the other is one")
        proved = (solver.best_objective_bound + self.release) * self.tick + waited
        if self.rough and status != cp_model.OPTIMAL:
            proved = -np.inf
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None, proved
        starts = np.array([solver.value(s) for s in self.s], dtype=np.float64)
        return (starts, np.array([[solver.value(x) for x in row] for row in self.c])), proved


def _replay(jobs: Jobs, cluster: GpuRacks, state: State, left: Whole, starts: FloatArray, take: Whole) -> State:
    """Run on to the end; jobs start in this order on these GPUs, each as soon as it can."""
    for row in np.lexsort((jobs.submit[left], starts)).tolist():
        while True:
            waiting = state.queue[: state.count[WAITING]].tolist()
            if left[row] in waiting and (state.free >= take[row]).all():
                start(jobs, cluster, state, waiting.index(left[row]), take[row])
                break
            advance(jobs, cluster, state)
    while advance(jobs, cluster, state):
        pass
    return state
