"""Who moves where, as a model for CP-SAT: all jobs that move have stopped before the first goes on.

min sum_j c_j x_j, x_j = 1 if job j moves, w_jn its workers (or bundles of them) that come to node n then, z_d = 1 if
domain d is chosen, and the gang as one more job with x = 1 that comes to nodes of the domain chosen:

    sum_n w_jn = b_j x_j,  sum_d z_d = 1,  sum_j need_jr w_jn <= free_rn + sum_j used_jrn x_j of each node and resource

Without a gang, who is in the chosen domain moves, and nobody comes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import float_info

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import GangJob
from gangplan.solvers.cpsat_solver import solver_for
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.state import Long

from ..state import SchedulerState
from ..stopping.running_jobs import RunningJob
from .migration import closed

SUM = 1e15
"""Sum of all costs in CP-SAT's whole numbers."""
COMES = -1
"""Number of the gang among the jobs."""
Answer = tuple[list[int], int, dict[str, dict[int, int]]]
"""Jobs that move, the domain, and the workers or bundles of each job by node; the gang's name is ""."""


class Relocation:
    """Build the model and solve it.

    `group` is the domain of each node, -1 if it is in none; `gang` needs room, or is `None` if a domain is to be free;
    `movable` are the numbers of the jobs that may move.
    """

    def __init__(
        self, state: SchedulerState, group: Long, gang: GangJob | None, jobs: Sequence[RunningJob],
        movable: Sequence[int],
    ) -> None:  # fmt: skip
        self._state, self._group, self._jobs, self._model = state, group, jobs, (model := cp_model.CpModel())
        self._moves = {j: model.new_bool_var("") for j in movable}
        self._gangs = {j: state.placed(jobs[j].request, jobs[j].degree) for j in movable}
        self._gangs |= {} if gang is None else {COMES: gang}
        self._chosen = {g: model.new_bool_var("") for g in np.unique(group[group >= 0]).tolist()}
        model.add_exactly_one(self._chosen.values())
        self._there: dict[tuple[int, int], cp_model.IntVar] = {}
        for j in self._gangs:
            self._come(j, free=gang is None)
        for n in range(state.fleet.n_nodes):
            if gang is None and group[n] >= 0:
                for j in self._here(n):
                    model.add(self._moves.get(j, 0) >= self._chosen[int(group[n])])
            self._fit(n)
            self._apart(n)

    def _here(self, n: int) -> list[int]:
        """Return the jobs on a node."""
        return [j for j, job in enumerate(self._jobs) if n in job.nodes]

    def _come(self, j: int, free: bool) -> None:
        """Let a job that moves come to nodes that may have it: of the chosen domain none if that is to be free."""
        gang, model = self._gangs[j], self._model
        most = np.minimum(self._state.placer.most_on(Kind.workers(gang)), gang.workers[0])
        late = self._state.delay([] if j == COMES else [self._jobs[j]])  # others who move may have a longer grace
        most[self._group < 0 if j == COMES else closed(self._state, self._jobs[j], self._state.now, late)] = 0
        nodes = np.flatnonzero(most).tolist()
        for n in nodes:
            self._there[j, n] = model.new_int_var(0, int(most[n]), "")
            if j == COMES or (free and self._group[n] >= 0):
                chosen = self._chosen[int(self._group[n])]
                model.add(self._there[j, n] == 0).only_enforce_if(~chosen if j == COMES else chosen)
        model.add(sum(self._there[j, n] for n in nodes) == gang.workers[0] * self._moves.get(j, 1))

    def _fit(self, n: int) -> None:
        """Let there be enough of each resource on a node."""
        placer = self._state.placer
        here = {self._jobs[j].name: j for j in self._here(n) if j in self._moves}
        for row in range(len(placer.vacant)):
            need = {j: amount for j, gang in self._gangs.items() if (amount := Kind.workers(gang).need[row])}
            need = {j: amount for j, amount in need.items() if (j, n) in self._there}
            if need:
                most = sum(amount * self._gangs[j].workers[0] for j, amount in need.items())
                uses = {j: placer.uses(name) for name, j in here.items()}
                freed = sum(int(used[row, nodes.index(n)]) * self._moves[j] for j, (nodes, used) in uses.items())
                asked = sum(amount * self._there[j, n] for j, amount in need.items())
                self._model.add(asked <= min(int(placer.vacant[row, n]), most) + freed)

    def _apart(self, n: int) -> None:
        """Keep jobs off a node that may not share it with others there."""
        come = [j for j in self._gangs if (j, n) in self._there]
        for j in come:
            for i in come:
                if i < j and _clash(self._gangs[i], self._gangs[j]):
                    one = self._model.new_bool_var("")
                    self._model.add(self._there[i, n] == 0).only_enforce_if(one)
                    self._model.add(self._there[j, n] == 0).only_enforce_if(~one)
            for i in self._here(n):
                if i != j and _clash(self._gangs[j], self._jobs[i].request.job):
                    self._model.add(self._there[j, n] <= self._gangs[j].workers[0] * self._moves.get(i, 0))

    def solve(self, cost: FloatArray, below: float, seconds: float) -> tuple[float, Answer | None]:
        """Return a lower bound on the cost, up to `below`, and the best moves that cost no more, if any."""
        dearest = float(cost[list(self._moves)].max(initial=0.0))
        scale = min(SUM / len(self._moves) / dearest, float_info.max) if dearest else 1.0
        total = sum(int(cost[j] * scale) * x for j, x in self._moves.items())  # rounded down, so that the bound holds
        self._model.minimize(total)
        if np.isfinite(below):
            self._model.add(total <= int(below * scale))
        solver = solver_for(seconds, 1, 0)
        status = solver.solve(self._model)
        if status == cp_model.INFEASIBLE:
            return below, None
        bound = min(below, solver.best_objective_bound / scale)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return bound, None
        counts: dict[str, dict[int, int]] = {}
        for (j, n), y in self._there.items():
            if solver.value(y):
                counts.setdefault("" if j == COMES else self._jobs[j].name, {})[n] = solver.value(y)
        domain = next(g for g, x in self._chosen.items() if solver.value(x))
        return bound, ([j for j, x in self._moves.items() if solver.value(x)], domain, counts)


def _clash(one: GangJob, other: GangJob) -> bool:
    """Return whether two jobs may not be on the same node."""
    return one.whole_nodes or other.whole_nodes or one.name in other.apart or other.name in one.apart
