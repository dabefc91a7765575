"""Schedules: jobs in the order of their starts, and which starts next, at what degree."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.schedule import SchedulePlan, ScheduleProblem
from gangplan.instances.verify import clock_cost
from gangplan.solvers import Run
from gangplan.solvers.cpsat_solver import cpsat_solver
from gangplan.solvers.schedule.cpsat import Model
from gangplan.solvers.schedule.grain import down, tick_of
from gangplan.solvers.schedule.prepare import prepare

from .space import Action, Formula, State

LEFT_OUT = -1
"""Instead of a place on the menu: the job never runs."""
WAIT: Action = (-1, 0)
"""Nothing starts now."""


class ScheduleSpace:
    """The state after some starts is now, the time of the next start, with what has started before and runs on.

    Decision j: job j, which has arrived and not started. Action k: it starts now with the k-th degree of its menu, or
    is `LEFT_OUT` for good. Instead of all of them: `WAIT` until later. Jobs that start at one time take several
    actions at once.
    """

    methods: tuple[str, ...] = ("lists", "starts", "local_search", "cpsat")

    def __init__(self, problem: ScheduleProblem) -> None:
        """Look at `problem`.

        Raises:
            InstanceError: if its times are not multiples of one tick: a state in between would be rounded.
        """
        self.problem = problem
        self._p = prepare(problem)
        self._tick, whole = tick_of(self._p)
        if not whole:
            raise InstanceError("jobs", "have times that are not multiples of one unit, which labels need")

    def depth(self, plan: SchedulePlan) -> int:
        """Return the number of jobs that run, less one: after the last start nothing is decided."""
        return len(self._started(plan)) - 1

    def now(self, state: State) -> float:
        """Return the seconds at which the next job starts."""
        return float(state.plan.start[self._started(state.plan)[state.depth]])

    def started(self, state: State) -> list[int]:
        """Return the jobs that have started, in the order of their starts."""
        return self._started(state.plan)[: state.depth]

    def key(self, state: State) -> Hashable:
        """Return now, and what has started when at which degree."""
        plan = state.plan
        return self.now(state), tuple((j, int(plan.degree[j]), float(plan.start[j])) for j in self.started(state))

    def actions(self, state: State, whole: bool) -> dict[Action, Action]:
        """Return what may start now on as many GPUs as are idle, what may be left out, and to wait."""
        p, now, done = self._p, self.now(state) - self._p.zero, self.started(state)
        idle = p.cluster.total
        option = self._option(state.plan)
        for j in done:
            if state.plan.start[j] - p.zero + p.seconds[option[j]] > now:
                idle -= int(p.gpus[option[j]])
        found = {WAIT}
        for j in np.flatnonzero(p.release <= now).tolist():
            if j in done:
                continue
            found |= {(j, int(p.menu[o])) for o in p.options(j) if p.gpus[o] <= idle}
            if np.isfinite(p.price[j]):
                found.add((j, LEFT_OUT))
        return {action: action for action in found}

    def taken(self, state: State, plan: SchedulePlan) -> set[Action]:
        """Return what starts now, what never does, and `WAIT` if nothing does."""
        now, done = self.now(state), self.started(state)
        new = [j for j in self._started(plan) if j not in done and plan.start[j] <= now]
        found = {(j, int(plan.degree[j])) for j in new} or {WAIT}
        return found | {(j, LEFT_OUT) for j in np.flatnonzero(plan.degree < 0).tolist()}

    def formulate(self, state: State, actions: set[Action], ceiling: float) -> Formula:
        """Return the model of `solvers`, in which what has not started does so from now on."""
        p, model, option = self._p, Model(self._p), self._option(state.plan)
        cp, now, done = model.cp, down(self.now(state) - p.zero, self._tick), set(self.started(state))
        later = cp.new_bool_var("")
        literal: dict[Action, Any] = {}
        for o, x in enumerate(model.x):
            j = int(p.owner[o])
            if j in done:
                cp.add(x == (o == option[j]))
                if o == option[j]:
                    cp.add(model.s[o] == down(float(state.plan.start[j]) - p.zero, self._tick))
                continue
            cp.add(model.s[o] >= now).only_enforce_if(x)
            cp.add(model.s[o] >= now + 1).only_enforce_if(x, later)
            if (j, int(p.menu[o])) in actions:
                start = literal[j, int(p.menu[o])] = cp.new_bool_var("")
                cp.add_implication(start, x)
                cp.add(model.s[o] == now).only_enforce_if(start)
        literal |= {(j, LEFT_OUT): x for j, x in enumerate(model.out) if (j, LEFT_OUT) in actions}
        if WAIT in actions:
            literal[WAIT] = later
        constant = model.scale.constant + clock_cost(self.problem)
        return Formula(cp, model.total, 1 / model.scale.unit, constant, literal, lambda value: self._plan(model, value))

    def solver(self, run: Run) -> Any:
        """Return CP-SAT as everywhere."""
        return cpsat_solver(run)

    def _started(self, plan: SchedulePlan) -> list[int]:
        runs = np.flatnonzero(plan.degree >= 0)
        return [int(j) for j in runs[np.lexsort((runs, plan.start[runs]))]]

    def _option(self, plan: SchedulePlan) -> dict[int, int]:
        p = self._p
        return {
            j: next(o for o in p.options(j) if p.menu[o] == plan.degree[j])
            for j in np.flatnonzero(plan.degree >= 0).tolist()
        }

    def _plan(self, model: Model, value: Any) -> SchedulePlan:
        """Return the plan with every start where the solution has it: the past of a state cannot be improved."""
        p = self._p
        option = np.full(p.n, -1)
        start: FloatArray = np.zeros(p.n)
        rows: list[tuple[int, int, int]] = []
        for o, x in enumerate(model.x):
            if value(x):
                j = int(p.owner[o])
                option[j], start[j] = o, value(model.s[o]) * self._tick
                rows += [(j, *part) for literal, parts in model.where[o] if value(literal) for part in parts]
        return p.plan(option, start, np.array(rows, dtype=np.int64).reshape(-1, 3).T)
