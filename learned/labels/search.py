"""The value of every action of a state, by few solves: a plan shows what all its actions are worth at least.

Instead of one solve an action: ask for a plan within a tolerance of the best that takes as many actions not seen yet as
it can, and again, until CP-SAT proves that no plan takes any of them. Whatever is left is worse than the tolerance.
Tolerances grow from 0 to `near`, so that each action's value lies between what its best plan says and the last
tolerance at which it was proved to be out of reach.
"""

from __future__ import annotations

from math import floor, inf, nan
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import verify
from gangplan.solvers import Run
from gangplan.solvers.interrupt import interruptible
from gangplan.solvers.result import OPTIMAL_GAP

from .space import Action, Formula, Space, State
from .values import LEVELS, Labels

_EFFORT = 0.1
"""Deterministic seconds, CP-SAT's, to find more unseen actions at once; a proof may take longer."""

_NO_MORE = (cp_model.INFEASIBLE, cp_model.UNKNOWN)


def label(
    space: Space,
    state: State,
    run: Run,
    *,
    whole: bool = False,
    levels: tuple[float, ...] = LEVELS,
    bound: float | None = None,
) -> Labels:
    """Return what the actions of a state are worth.

    Args:
        space: the problem.
        state: its plan must be feasible; the better it completes the state, the faster this is.
        run: says for how long, with how many threads and which seed.
        whole: whether to label every open decision, or only the next one.
        levels: see `LEVELS`; ascending from 0.
        bound: on all completions, if one is known.

    Raises:
        ValueError: if the plan of the state is not feasible.
    """
    objective = verify(space.problem, state.plan).objective
    if objective is None:
        raise ValueError("the plan of a state must be feasible")
    actions = space.actions(state, whole)
    search = _Search(space, state, run, set(actions.values()), objective, bound or 0.0)
    search.best()
    search.cover(levels)
    order = sorted(actions)
    return Labels(
        objective=search.objective,
        bound=min(search.bound, search.objective),
        decision=np.array([d for d, _ in order], dtype=np.int32),
        action=np.array([a for _, a in order], dtype=np.int32),
        value=np.array([search.value.get(actions[x], nan) for x in order]),
        lower=np.array([search.lower[actions[x]] for x in order]),
        plans=search.plans(),
    )


class _Search:
    """The best completion known, the value of each action seen, the bound of each; `shown`: seen at this level.

    A plan that the rounding of a model lets through may be a little worse than its level: it is seen all the same.
    """

    def __init__(
        self, space: Space, state: State, run: Run, actions: set[Action], objective: float, bound: float
    ) -> None:
        self.space, self.state, self.run, self.actions = space, state, run, actions
        self.objective, self.bound = objective, bound
        self.value: dict[Action, float] = {}
        self.lower = dict.fromkeys(actions, bound)
        self.by: dict[Action, Any] = {}
        self.shown: set[Action] = set()
        self.keep(state.plan)

    def plans(self) -> tuple[tuple[Any, float], ...]:
        """Return the plan of each value, the best one first."""
        found = {id(self.by[action]): (self.by[action], value) for action, value in self.value.items()}
        return tuple(sorted(found.values(), key=lambda pair: pair[1]))

    def keep(self, plan: Any) -> None:
        """Take note of a plan; refuse one that breaks a constraint."""
        verdict = verify(self.space.problem, plan)
        if verdict.objective is None:
            raise AssertionError(f"labels made an infeasible plan: {'; '.join(verdict.violations[:3])}")
        objective = verdict.objective
        for action in self.space.taken(self.state, plan) & self.actions:
            self.shown.add(action)
            if objective < self.value.get(action, inf):
                self.value[action], self.by[action] = objective, plan
        self.objective = min(self.objective, objective)

    def best(self) -> None:
        """Find the best completion, unless the one that came with the state is known to be."""
        if self.objective <= self.bound * (1 + OPTIMAL_GAP) or self.run.stopped:
            return
        formula = self.space.formulate(self.state, set(), self.objective)
        formula.model.minimize(formula.total)
        status, solver = self._solve(formula, formula.model)
        if status != cp_model.INFEASIBLE:  # rounding may cut off the only plan; then nothing is learned
            found = solver.best_objective_bound / formula.units + formula.constant
            self.bound = max(self.bound, min(found, self.objective))
            self.lower = dict.fromkeys(self.actions, self.bound)

    def cover(self, levels: tuple[float, ...]) -> None:
        """Go through the levels until all actions are seen, all levels done or the time is up."""
        best = self.objective
        formula = self.space.formulate(self.state, self.actions, best * (1 + levels[-1]))
        for action in self.actions - set(formula.literal) - set(self.value):
            self.lower[action] = inf
        for level in levels:
            most = best * (1 + level)
            self.shown = {a for a, value in self.value.items() if value <= most * (1 + OPTIMAL_GAP)}
            while (unseen := sorted(set(formula.literal) - self.shown)) and not self.run.stopped:
                status = self._more(formula, unseen, most)
                if status == cp_model.INFEASIBLE:
                    self.lower |= {a: max(self.lower[a], most) for a in unseen}
                if status in _NO_MORE or not self.shown.intersection(unseen):
                    break
            if self.run.stopped:
                break
        most = best * (1 + levels[-1]) * (1 + OPTIMAL_GAP)
        self.value = {action: value for action, value in self.value.items() if value <= most}

    def _more(self, formula: Formula, unseen: list[Action], most: float) -> Any:
        """Look for plans within `most` that take unseen actions, and return CP-SAT's status."""
        for greedy in (True, False):
            model = formula.model.clone()
            model.clear_objective()
            literals = [formula.literal[a] for a in unseen]
            model.add(formula.total <= floor((most - formula.constant) * formula.units) + 1)
            model.add_bool_or(literals)
            if greedy:
                model.maximize(sum(literals))
            status, _ = self._solve(formula, model, _EFFORT if greedy else None)
            if status != cp_model.UNKNOWN:
                break
        return status

    def _solve(self, formula: Formula, model: Any, effort: float | None = None) -> tuple[Any, Any]:
        solver = self.space.solver(self.run)
        if effort is not None:
            solver.parameters.max_deterministic_time = effort
        watcher = _Watcher(self, formula)
        status = interruptible(
            lambda: solver.solve(model, watcher), solver.stop_search, lambda: self.run.stopped or watcher.failed
        )
        if watcher.failure is not None:
            raise watcher.failure
        return status, solver


class _Watcher(cp_model.CpSolverSolutionCallback):
    """Keeps every plan that CP-SAT passes by."""

    def __init__(self, search: _Search, formula: Formula) -> None:
        super().__init__()
        self.search, self.formula = search, formula
        self.failure: Exception | None = None

    @property
    def failed(self) -> bool:
        return self.failure is not None

    def on_solution_callback(self) -> None:
        try:
            plan = self.formula.plan(self.value)
            if plan is not None:
                self.search.keep(plan)
        except Exception as error:
            # we are in a native solver's thread: raised again where it is waited for
            self.failure = error
            self.stop_search()
