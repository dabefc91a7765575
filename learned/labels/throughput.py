"""Throughput: groups of ops in topological order, and the stage of a pipeline each is in."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from gangplan.instances import InstanceError, PartitionPlan, PartitionProblem
from gangplan.solvers import Run
from gangplan.solvers.cpsat_solver import cpsat_solver
from gangplan.solvers.partition.throughput.cpsat import Model
from gangplan.solvers.partition.throughput.quotient import quotient

from .space import Action, Formula, State


class ThroughputSpace:
    """Decision g: group g of `group_of`. Action s: it is in stage s, of which none before a used one is empty.

    Attributes:
        group_of: int32 (n,), the group of each op; an edge never leads to an earlier one.
    """

    methods: tuple[str, ...] = ("greedy", "pipeline", "cpsat")

    def __init__(self, problem: PartitionProblem) -> None:
        """Look at `problem`.

        Raises:
            InstanceError: if it is no pipeline.
        """
        if problem.variant != "contiguous":
            raise InstanceError("variant", f"{problem.variant!r} has no labels, only contiguous has")
        self.problem = problem
        # no preprocessing: what it takes for granted loses actions that are as good
        self._q = quotient(problem)
        self.group_of = self._q.group_of
        self._first = np.unique(self.group_of, return_index=True)[1]

    def depth(self, plan: PartitionPlan) -> int:
        """Return the number of groups."""
        return self._q.n_groups

    def key(self, state: State) -> Hashable:
        """Return the stages so far."""
        return tuple(state.plan.stage[self._first].tolist()[: state.depth])

    def actions(self, state: State, whole: bool) -> dict[Action, Action]:
        """Return each open group with each stage: stages are in order, so that no two are the same."""
        last = self._q.n_groups if whole else min(state.depth + 1, self._q.n_groups)
        return {(g, s): (g, s) for g in range(state.depth, last) for s in range(int(self._q.counts.sum()))}

    def taken(self, state: State, plan: PartitionPlan) -> set[Action]:
        """Return the stage of every group."""
        return set(enumerate(plan.stage[self._first].tolist()))

    def formulate(self, state: State, actions: set[Action], ceiling: float) -> Formula:
        """Return the model of `solvers`, with no empty stage before a used one."""
        model = Model(self._q, ceiling)
        cp, x, slots = model.model, model.x, len(model.slots)
        used = [cp.new_bool_var("") for _ in range(slots)]
        for s in range(slots):
            cp.add_max_equality(used[s], [row[s] for row in x])
            if s:
                cp.add_implication(used[s], used[s - 1])
        for g, s in enumerate(state.plan.stage[self._first].tolist()[: state.depth]):
            cp.add(x[g][s] == 1)
        return Formula(cp, model.z, model.scale, 0.0, {(g, s): x[g][s] for g, s in actions}, model.plan)

    def solver(self, run: Run) -> Any:
        """Return CP-SAT as everywhere."""
        return cpsat_solver(run)
