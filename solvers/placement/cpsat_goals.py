"""Placement in CP-SAT: the goals that ask where GPUs are, and not how fast the jobs run. Figures are rounded down."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Any, Protocol

import numpy as np

from gangplan.instances.placement import Task
from gangplan.instances.placement.rate import pair_seconds
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.placement import Fragmentation

from .costs import most_communication
from .cpsat_cost import Cost
from .cpsat_model import FINE, Assignment, at_least

_LARGEST = 1 << 44
"""Units of the most that a placement can cost."""
_MILLI = 1000
"""The largest common denominator of shares that is looked for one by one."""


class Goal(Protocol):
    """What a model minimises.

    Attributes:
        total: an expression in whole units.
        units: how many units 1 of the goal is.
    """

    total: Any
    units: float


def goal_of(plan: Assignment, ceiling: float | None) -> Goal:
    """Add the goal of the problem to the model; no plan above `ceiling` is looked for."""
    name = plan.batch.problem.goal
    if name not in ("communication", "fragmentation"):
        return Cost(plan, ceiling)
    goal: Goal = Communication(plan) if name == "communication" else Fragments(plan)
    if ceiling is not None:
        plan.model.add(goal.total <= floor(ceiling * goal.units) + 1)
    plan.model.minimize(goal.total)
    return goal


def absence(plan: Assignment, units: float) -> Any:
    """Return what jobs that are left out or moved cost, in units."""
    total: Any = 0
    for j, job in enumerate(plan.batch.jobs):
        total += floor((job.value or 0.0) * units) * (1 - sum(plan.size[j].values()))
        if j in plan.moved:
            total += floor(plan.batch.standing[j][1] * units) * plan.moved[j]
    return total


class Communication:
    """(P) Pairs of GPUs of job j inside a member a, by literals "j has m workers or more there".

    With P_l the pairs inside members of level l (nodes, racks, ...) and u_l the seconds of a gigabyte between members
    of l, j costs the sum over nodes of their own seconds times their pairs, and u_l (P_(l + 1) - P_l) for each l.
    """

    def __init__(self, plan: Assignment) -> None:
        self.plan, batch = plan, plan.batch
        values = sum((job.value or 0.0) for job in batch.jobs) + sum(x for _, x in batch.standing.values())
        self.units = _LARGEST / max(1e-200, most_communication(batch) + values)  # finite where nothing costs
        self.total: Any = absence(plan, self.units)
        inside, across = pair_seconds(batch.problem.fleet)
        for j in range(len(batch.jobs)):
            scale = float(batch.weight[j]) * self.units
            if not batch.each[j]:
                continue
            for level, members in enumerate(batch.members):
                groups: defaultdict[int, list[int]] = defaultdict(list)
                for n in plan.w[j]:
                    groups[members[n]].append(n)
                above = float(across[level]) if level < len(across) else 0.0
                for nodes in groups.values():
                    own = float(inside[nodes[0]]) if level == 0 else float(across[level - 1])
                    self.total += self._pairs(j, nodes, scale * (own - above))

    def _pairs(self, j: int, nodes: list[int], each: float) -> Any:
        """Return what pairs of GPUs of job j on `nodes` cost, at `each` a pair."""
        batch = self.plan.batch
        workers = sum(self.plan.w[j][n] for n in nodes)
        room = sum(int(batch.room[j, batch.kind[n]]) for n in nodes)
        gpus = int(batch.each[j])
        total: Any = 0
        for m in range(1, min(room, batch.jobs[j].workers[-1]) + 1):
            more = gpus * gpus * (m - 1) + gpus * (gpus - 1) // 2  # pairs that the m-th worker makes
            if more:
                total += floor(each * more) * at_least(self.plan.model, workers, m)
        return total


class Fragments:
    """(F) What is free on node n and no use to a task k: all of it unless k fits, else of GPUs too full for k."""

    def __init__(self, plan: Assignment) -> None:
        self.plan, self.batch, self.model = plan, plan.batch, plan.model
        batch, fleet = self.batch, self.batch.problem.fleet
        self.measure = Fragmentation(batch.problem)
        shares = [*batch.share[batch.each > 0].tolist(), *(min(1.0, task.demand.gpu) for task, _ in self.measure.kinds)]
        self.parts = _parts(shares)
        values = sum((job.value or 0.0) for job in batch.jobs) + sum(x for _, x in batch.standing.values())
        weight = max(1, floor(_LARGEST / (self.parts * (float(fleet.gpus.sum()) + values + 1))))
        self.units = float(weight * self.parts)
        self.total: Any = absence(plan, self.units)
        for n in np.flatnonzero((fleet.gpus > 0) & np.asarray(fleet.usable)).tolist():
            self._loads(n)
            for task, share in self.measure.kinds:
                self.total += floor(share * weight) * self._fragment(n, task)

    def _loads(self, n: int) -> None:
        """Read how full the shared GPUs of n are: in parts of a GPU, rounded up and down."""
        batch = self.batch
        self.up: list[Any] = [0 for _ in self.plan.used[n]]
        self.down: list[Any] = [0 for _ in self.plan.used[n]]
        for j, nodes in enumerate(self.plan.card):
            share = float(batch.share[j]) * self.parts
            for g, x in enumerate(nodes.get(n, [])):
                self.up[g] += ceil(share - TOLERANCE) * x
                self.down[g] += floor(share + TOLERANCE) * x
        self.idle = int(batch.problem.fleet.gpus[n]) - self.plan.whole[n] - sum(self.plan.used[n])

    def _fragment(self, n: int, task: Task) -> Any:
        """Return the fragment of n to a task, in parts of a GPU."""
        model, used, parts = self.model, self.plan.used[n], self.parts
        free = parts * self.idle + sum(parts * x - up for x, up in zip(used, self.up, strict=True))
        fleet = self.batch.problem.fleet
        empty = float(fleet.cpu[n]), float(fleet.memory[n]), float(fleet.nic[n])
        if not self.measure.fits(n, task, [1.0] * int(fleet.gpus[n]), empty):
            return free
        fits = model.new_bool_var("")
        self._enough(n, task, fits)
        useless = model.new_int_var(0, parts * int(fleet.gpus[n]), "")
        model.add(useless >= parts * self.idle).only_enforce_if(~fits)
        total: Any = useless
        enough = []
        most = floor(parts * (1 - min(1.0, task.demand.gpu)) + TOLERANCE * parts)
        for x, up, down in zip(used, self.up, self.down, strict=True):
            good, rest = model.new_bool_var(""), model.new_int_var(0, parts, "")
            model.add_implication(good, fits)
            model.add_implication(good, x)
            model.add(down <= most).only_enforce_if(good)
            model.add(rest >= parts * x - up).only_enforce_if(~good)
            enough.append(good)
            total += rest
        model.add(self.idle + sum(enough) >= task.demand.grants).only_enforce_if(fits)
        return total

    def _enough(self, n: int, task: Task, fits: Any) -> None:
        """Let a task fit node n only if there are cores, memory and NIC for it."""
        demand = task.demand
        for need, (has, terms) in zip((demand.cpu, demand.memory, demand.nic), self.plan.loads(n), strict=True):
            if need and terms:
                (own, *sizes), room = self.plan.units(has, [need, *(x for x, _ in terms)])
                load = sum(size * count for size, (_, count) in zip(sizes, terms, strict=True))
                self.model.add(load + own <= room).only_enforce_if(fits)


def _parts(shares: list[float]) -> int:
    """Return into how many parts to divide a GPU so that shares are whole numbers of them, if that is not too fine."""
    near = [Fraction(x).limit_denominator(_MILLI) for x in shares]
    exact = all(abs(float(a) - b) < TOLERANCE for a, b in zip(near, shares, strict=True))
    parts = lcm(*(x.denominator for x in near)) if near else 1
    return parts if exact and parts <= FINE else FINE
