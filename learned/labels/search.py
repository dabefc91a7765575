"""The value of every action of a state, by few solves: a plan shows what all its actions are worth at least.

Instead of one solve an action: ask for a plan within a tolerance of the best that takes as many actions not seen yet as
it can, and again, until CP-SAT proves that no plan takes any of them. Whatever is left is worse than the tolerance.
Tolerances grow from 0 to `near`, so that each action's value lies between what its best plan says and the last
tolerance at which it was proved to be out of reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, inf, nan
from typing import Any, NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import InstanceError, PartitionPlan, PartitionProblem, verify
from gangplan.solvers import Run
from gangplan.solvers.cpsat_solver import cpsat_solver
from gangplan.solvers.partition.throughput.cpsat import Model
from gangplan.solvers.partition.throughput.quotient import quotient
from gangplan.solvers.processes import interruptible
from gangplan.solvers.run import OPTIMAL_GAP

from .actions import Action, Labels, State
from .configuration import LEVELS

_EFFORT = 0.1
"""Deterministic seconds, CP-SAT's, to find more unseen actions at once; a proof may take longer."""

_NO_MORE = (cp_model.INFEASIBLE, cp_model.UNKNOWN)


class Completions(NamedTuple):
    """The CP-SAT model of all completions of a state; `literal` implies its action."""

    model: Model
    literal: Mapping[Action, Any]


class Pipelines:
    """Decision g: group g of `group_of`. Action s: it is in stage s, of which none before a used one is empty.

    Attributes:
        group_of: int32 (n,), the group of each op; an edge never leads to an earlier one.
        n_groups: how many there are.
    """

    def __init__(self, problem: PartitionProblem) -> None:
        """Look at `problem`.

        Raises:
            InstanceError: if it is no pipeline.
        """
        if problem.objective != "throughput":
            raise InstanceError("problem", f"{problem.objective!r} has no labels, only throughput has")
        if problem.variant != "contiguous":
            raise InstanceError("variant", f"{problem.variant!r} has no labels, only contiguous has")
        self.problem = problem
        # no preprocessing: what it takes for granted loses actions that are as good
        self._q = quotient(problem)
        self.group_of, self.n_groups = self._q.group_of, self._q.n_groups
        self._first = np.unique(self.group_of, return_index=True)[1]

    def stages(self, plan: PartitionPlan) -> list[int]:
        """Return the stage of every group."""
        found: list[int] = plan.stage[self._first].tolist()
        return found

    def actions(self, state: State, whole: bool) -> set[Action]:
        """Return each open group with each stage; only the next group unless `whole`."""
        last = self.n_groups if whole else min(state.depth + 1, self.n_groups)
        return {(g, s) for g in range(state.depth, last) for s in range(int(self._q.counts.sum()))}

    def completions(self, state: State, actions: set[Action], ceiling: float) -> Completions:
        """Return the model of the completions that cost at most `ceiling`, with no empty stage before a used one."""
        model = Model(self._q, ceiling)
        cp, x, slots = model.model, model.x, len(model.slots)
        used = [cp.new_bool_var("") for _ in range(slots)]
        for s in range(slots):
            cp.add_max_equality(used[s], [row[s] for row in x])
            if s:
                cp.add_implication(used[s], used[s - 1])
        for g, s in enumerate(self.stages(state.plan)[: state.depth]):
            cp.add(x[g][s] == 1)
        return Completions(model, {(g, s): x[g][s] for g, s in actions})


def label(
    space: Pipelines,
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
    search = _Search(space, state, run, actions, objective, bound or 0.0)
    search.best()
    search.cover(levels)
    order = sorted(actions)
    return Labels(
        objective=search.objective,
        bound=min(search.bound, search.objective),
        decision=np.array([d for d, _ in order], dtype=np.int32),
        action=np.array([a for _, a in order], dtype=np.int32),
        value=np.array([search.value.get(x, nan) for x in order]),
        lower=np.array([search.lower[x] for x in order]),
        plans=search.plans(),
    )


class _Search:
    """The best completion known, the value of each action seen, the bound of each; `shown`: seen at this level.

    A plan that the rounding of a model lets through may be a little worse than its level: it is seen all the same.
    """

    def __init__(
        self, space: Pipelines, state: State, run: Run, actions: set[Action], objective: float, bound: float
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
        for action in set(enumerate(self.space.stages(plan))) & self.actions:
            self.shown.add(action)
            if objective < self.value.get(action, inf):
                self.value[action], self.by[action] = objective, plan
        self.objective = min(self.objective, objective)

    def best(self) -> None:
        """Find the best completion, unless the one that came with the state is known to be."""
        if self.objective <= self.bound * (1 + OPTIMAL_GAP) or self.run.stopped:
            return
        found = self.space.completions(self.state, set(), self.objective)
        found.model.model.minimize(found.model.z)
        status, solver = self._solve(found, found.model.model)
        if status != cp_model.INFEASIBLE:  # rounding may cut off the only plan; then nothing is learned
            bound = solver.best_objective_bound / found.model.scale
            self.bound = max(self.bound, min(bound, self.objective))
            self.lower = dict.fromkeys(self.actions, self.bound)

    def cover(self, levels: tuple[float, ...]) -> None:
        """Go through the levels until all actions are seen, all levels done or the time is up."""
        best = self.objective
        completions = self.space.completions(self.state, self.actions, best * (1 + levels[-1]))
        for level in levels:
            most = best * (1 + level)
            self.shown = {a for a, value in self.value.items() if value <= most * (1 + OPTIMAL_GAP)}
            while (unseen := sorted(self.actions - self.shown)) and not self.run.stopped:
                status = self._more(completions, unseen, most)
                if status == cp_model.INFEASIBLE:
                    self.lower |= {a: max(self.lower[a], most) for a in unseen}
                if status in _NO_MORE or not self.shown.intersection(unseen):
                    break
            if self.run.stopped:
                break
        most = best * (1 + levels[-1]) * (1 + OPTIMAL_GAP)
        self.value = {action: value for action, value in self.value.items() if value <= most}

    def _more(self, completions: Completions, unseen: list[Action], most: float) -> Any:
        """Look for plans within `most` that take unseen actions, and return CP-SAT's status."""
        for greedy in (True, False):
            model: Any = completions.model.model.clone()
            model.clear_objective()
            literals = [completions.literal[a] for a in unseen]
            model.add(completions.model.z <= floor(most * completions.model.scale) + 1)
            model.add_bool_or(literals)
            if greedy:
                model.maximize(sum(literals))
            status, _ = self._solve(completions, model, _EFFORT if greedy else None)
            if status != cp_model.UNKNOWN:
                break
        return status

    def _solve(self, completions: Completions, model: Any, effort: float | None = None) -> tuple[Any, Any]:
        solver = cpsat_solver(self.run)
        if effort is not None:
            solver.parameters.max_deterministic_time = effort
        watcher = _Watcher(self, completions.model)
        status = interruptible(
            lambda: solver.solve(model, watcher), solver.stop_search, lambda: self.run.stopped or watcher.failed
        )
        if watcher.failure is not None:
            raise watcher.failure
        return status, solver


class _Watcher(cp_model.CpSolverSolutionCallback):
    """Keeps every plan that CP-SAT passes by."""

    def __init__(self, search: _Search, model: Model) -> None:
        super().__init__()
        self.search, self.model = search, model
        self.failure: Exception | None = None

    @property
    def failed(self) -> bool:
        return self.failure is not None

    def on_solution_callback(self) -> None:
        try:
            self.search.keep(self.model.plan(self.value))
        except Exception as error:
            # we are in a native solver's thread: raised again where it is waited for
            self.failure = error
            self.stop_search()
