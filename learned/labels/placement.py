"""Placement: jobs in the order of the batch, and the nodes each is on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from gangplan.instances import verify
from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.solvers import Run
from gangplan.solvers.placement.cpsat import read_plan, suitable_solver
from gangplan.solvers.placement.cpsat_goals import goal_of
from gangplan.solvers.placement.cpsat_model import Assignment
from gangplan.solvers.placement.grants import as_plan
from gangplan.solvers.placement.prepare import Batch

from .space import Action, Formula, State

LEFT_OUT = -1
"""Instead of a node: the job is not placed."""


class PlacementSpace:
    """Decision i: job ``order[i]`` of the batch. Action n: it has workers on node n, or is `LEFT_OUT`.

    A gang on several nodes takes several actions at once. Nodes that are equal, in one rack, and hold the same tasks
    are the same but for names.

    Attributes:
        order: the jobs that are to be placed, those that run and may move among them.
    """

    methods: tuple[str, ...] = ("topology", "local_search", "patterns", "cpsat")

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self._batch = Batch(problem)
        self.order = tuple(j for j in range(len(problem.jobs)) if j not in self._batch.pinned)

    def depth(self, plan: PlacementPlan) -> int:
        """Return the number of jobs to place."""
        return len(self.order)

    def key(self, state: State) -> Hashable:
        """Return the rows of the jobs so far."""
        rows = read_plan(self._batch, state.plan)
        return tuple(tuple(sorted(rows[j].items())) for j in self.order[: state.depth])

    def actions(self, state: State, whole: bool) -> dict[Action, Action]:
        """Return each open job with each node that its workers may be on, and leaving it out if it may be."""
        batch, rows = self._batch, read_plan(self._batch, state.plan)
        done = self.order[: state.depth]
        looks = [(place, *(rows[j].get(n, (0, 0)) for j in done)) for n, place in enumerate(batch.place.tolist())]
        first = {look: n for n, look in reversed(list(enumerate(looks)))}
        found: dict[Action, Action] = {}
        for i in range(state.depth, len(self.order) if whole else min(state.depth + 1, len(self.order))):
            j = self.order[i]
            if batch.jobs[j].value is not None:
                found[i, LEFT_OUT] = (i, LEFT_OUT)
            for n, kind in enumerate(batch.kind.tolist()):
                if batch.room[j, kind]:
                    found[i, n] = (i, first[looks[n]])
        return found

    def taken(self, state: State, plan: PlacementPlan) -> set[Action]:
        """Return the nodes of every job, each by the first that is the same."""
        same = self.actions(state, True)
        found = set()
        for i, j in enumerate(self.order):
            rows = read_plan(self._batch, plan)[j]
            nodes = [n for n, (workers, _) in rows.items() if workers] if rows else [LEFT_OUT]
            found |= {same[i, n] for n in nodes if (i, n) in same}
        return found

    def formulate(self, state: State, actions: set[Action], ceiling: float) -> Formula:
        """Return the model of `solvers`; a state fixes how many tasks are where, not which GPUs they hold."""
        batch = self._batch
        plan = Assignment(batch)
        cost = goal_of(plan, ceiling)
        rows = read_plan(batch, state.plan)
        for j in self.order[: state.depth]:
            for task, counts in enumerate((plan.w[j], plan.p[j])):
                for n, x in counts.items():
                    plan.model.add(x == rows[j].get(n, (0, 0))[task])
        literal: dict[Action, Any] = {}
        for i, n in actions:
            j = self.order[i]
            if n == LEFT_OUT:
                literal[i, n] = plan.model.new_bool_var("")
                for x in plan.size[j].values():
                    plan.model.add_implication(literal[i, n], ~x)
            elif n in plan.busy[j]:
                literal[i, n] = plan.busy[j][n]

        def read(value: Any) -> PlacementPlan | None:
            found = as_plan(batch, plan.rows(value), lambda n: plan.packing(value, n))
            # rows of cores and bytes are rounded: what only they allow is no plan
            return found if verify(self.problem, found).ok else None

        return Formula(plan.model, cost.total, cost.units, 0.0, literal, read)

    def solver(self, run: Run) -> Any:
        """Return CP-SAT as models of placement need it."""
        return suitable_solver(run)
