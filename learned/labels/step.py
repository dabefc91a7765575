"""Step time: groups of ops in topological order, and the device each is on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from gangplan.instances import StepPlan, StepProblem
from gangplan.solvers import Run
from gangplan.solvers.cpsat_solver import cpsat_solver
from gangplan.solvers.partition.step.cpsat import Formulation
from gangplan.solvers.partition.step.cpsat_symmetry import DeviceTree
from gangplan.solvers.partition.step.model import prepare

from .space import Action, Formula, State


class StepSpace:
    """Decision i: the i-th group in the order in which their first ops come. Action d: it is on device d.

    Equal devices not used yet are the same but for names, as are equal servers; the first of them stands for all.

    Attributes:
        group_of: int32 (n,), the number i of each op's group.
    """

    methods: tuple[str, ...] = ("heft", "contiguous", "critical_path", "bounds", "cpsat", "lns", "cpsat_below")

    def __init__(self, problem: StepProblem) -> None:
        self.problem = problem
        self._p = prepare(problem)
        self._sequence: list[int] = list(dict.fromkeys(self._p.group_of[self._p.order].tolist()))
        number = np.empty(self._p.n_groups, dtype=np.int32)
        number[self._sequence] = np.arange(self._p.n_groups, dtype=np.int32)
        self.group_of = number[self._p.group_of]
        self._tree = DeviceTree(self._p)

    def depth(self, plan: StepPlan) -> int:
        """Return the number of groups."""
        return self._p.n_groups

    def key(self, state: State) -> Hashable:
        """Return the devices so far, as they are called by their first use."""
        return tuple(self._renamed(state.plan)[: state.depth])

    def actions(self, state: State, whole: bool) -> dict[Action, Action]:
        """Return each open group with each device that it may be on."""
        last = self._p.n_groups if whole else min(state.depth + 1, self._p.n_groups)
        used = self._devices(state.plan)[: state.depth]
        found: dict[Action, Action] = {}
        for i in range(state.depth, last):
            for d in range(self._p.n_devices):
                name = self._tree.canonical([*used, d])
                # of a later group no device stands for another: what comes between may tell them apart
                found[i, d] = (i, name[d] if i == state.depth else self._tree.canonical(used)[d])
        return found

    def taken(self, state: State, plan: StepPlan) -> set[Action]:
        """Return the device of every group, devices renamed as they are first used."""
        return set(enumerate(self._renamed(plan)))

    def formulate(self, state: State, actions: set[Action], ceiling: float) -> Formula:
        """Return the model of `solvers`, symmetry broken: a state's devices are renamed as its rule wants them."""
        model = Formulation(self._p, ceiling, None)
        base = model.base
        for g, d in zip(self._sequence, self._renamed(state.plan)[: state.depth], strict=False):
            base.model.add(base.x[g][d] == 1)
        rows = [base.x[g] for g in self._sequence]
        literal = {(i, d): rows[i][d] for i, d in actions if d in rows[i]}
        return Formula(base.model, sum(base.length), model.scale, 0.0, literal, model.plan)

    def solver(self, run: Run) -> Any:
        """Return CP-SAT as everywhere."""
        return cpsat_solver(run)

    def _devices(self, plan: StepPlan) -> list[int]:
        device: list[int] = plan.device[[self._p.members[g][0] for g in self._sequence]].tolist()
        return device

    def _renamed(self, plan: StepPlan) -> list[int]:
        used = self._devices(plan)
        name = self._tree.canonical(used)
        return [name[d] for d in used]
