"""Place by CP-SAT, warm-started with the best plan; here too are the goals that ask where GPUs are."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import partial
from math import ceil, floor, isfinite, lcm
from typing import Any, Protocol

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import verify
from gangplan.instances.placement import PlacementPlan, Task
from gangplan.instances.placement.rate import pair_seconds
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.placement import Fragmentation

from ..cpsat_solver import cpsat_solver, minimise, search
from ..run import Run
from .build import build
from .costs import most_communication
from .cpsat_cost import Cost
from .cpsat_model import FINE, AssignmentModel, at_least
from .gpu_assignment import as_plan, rows_of
from .policies import best_fit, least_interference, topology
from .prepare import PreparedBatch, Rows

_LARGEST = 1 << 44
"""Units of the most that a placement can cost."""
_MILLI = 1000
"""The largest common denominator of shares that is looked for one by one."""


class Goal(Protocol):
    """What a model minimises: `total`, an expression in whole units, of which `units` are 1 of the goal."""

    total: Any
    units: float


def goal_of(plan: AssignmentModel, ceiling: float | None) -> Goal:
    """Add the goal of the problem to the model; no plan above `ceiling` is looked for."""
    name = plan.batch.problem.goal
    if name not in ("communication", "fragmentation"):
        return Cost(plan, ceiling)
    goal: Goal = Communication(plan) if name == "communication" else Fragments(plan)
    if ceiling is not None:
        plan.model.add(goal.total <= floor(ceiling * goal.units) + 1)
    plan.model.minimize(goal.total)
    return goal


def absence(plan: AssignmentModel, units: float) -> Any:
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

    def __init__(self, plan: AssignmentModel) -> None:
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

    def __init__(self, plan: AssignmentModel) -> None:
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


_COMPLETION = 2.0
"""Seconds to find the value of every variable of a plan that is known."""


def cpsat(run: Run, batch: PreparedBatch) -> None:
    """Minimise the goal with CP-SAT; offers plans as they come, raises the bound."""
    if run.plan is None:
        build(run, batch, (topology, best_fit, least_interference), "cpsat")
    if run.plan is None and not run.stopped:
        # a model with costs has a largest one: that there is no plan is for one without them to say
        plan = AssignmentModel(batch)
        if search(run, cpsat_solver(run), plan.model, partial(_plan, run, batch, plan), "cpsat") == cp_model.INFEASIBLE:
            run.prove_infeasible("cpsat")
    if run.stopped:
        return
    with run.phase("cpsat model"):
        plan = AssignmentModel(batch)
        cost = goal_of(plan, run.objective)
        if run.bound is not None and isfinite(run.bound):
            plan.model.add(cost.total >= int(run.bound * cost.units) - slack(batch))
        if run.plan is not None and not run.stopped:
            hint(run, batch, plan)
    if run.stopped:
        return
    with run.phase("cpsat"):
        minimise(run, cpsat_solver(run), plan.model, cost.units, partial(_plan, run, batch, plan))


def slack(batch: PreparedBatch) -> int:
    """Return by how many units rounding may have made a plan look cheaper than it is."""
    return 16 * len(batch.jobs) * (2 + len(batch.bandwidth))


def hint(run: Run, batch: PreparedBatch, plan: AssignmentModel) -> None:
    """Give the model the value of every variable of the run's plan to start from."""
    rows, packing = _read(batch, run.plan)
    fixed = plan.model.clone()
    for index, value in _fixing(plan, rows, packing):
        fixed.add(fixed.get_int_var_from_proto_index(index) == value)
    solver = cpsat_solver(run)
    solver.parameters.max_time_in_seconds = min(_COMPLETION, run.remaining())
    if solver.solve(fixed) in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        plan.model.clear_hints()  # type: ignore[no-untyped-call]
        plan.model.proto.solution_hint.vars.extend(range(len(plan.model.proto.variables)))
        plan.model.proto.solution_hint.values.extend(solver.response_proto.solution)
    else:
        run.note("cpsat: its model does not take the plan it should start from")


def _fixing(plan: AssignmentModel, rows: list[Rows], packing: Any) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for j, row in enumerate(rows):
        for task, counts in enumerate((plan.w[j], plan.p[j])):
            found += [(x.index, row.get(n, (0, 0))[task]) for n, x in counts.items()]
        for n, cards in plan.card[j].items():
            held = packing.get(n, [])
            found += [(x.index, held[g].get(j, 0) if g < len(held) else 0) for g, x in enumerate(cards)]
    return found


def _read(batch: PreparedBatch, plan: PlacementPlan) -> tuple[list[Rows], dict[int, list[dict[int, int]]]]:
    cards: dict[int, dict[int, dict[int, int]]] = {}
    for r, g in zip(plan.grant_row.tolist(), plan.grant_gpu.tolist(), strict=True):
        j, n = int(plan.job[r]), int(plan.node[r])
        if batch.share[j] < 1:
            held = cards.setdefault(n, {}).setdefault(g, {})
            held[j] = held.get(j, 0) + 1
    return rows_of(batch, plan), {n: list(held.values()) for n, held in cards.items()}


def _plan(run: Run, batch: PreparedBatch, plan: AssignmentModel, value: Any) -> PlacementPlan | None:
    found = as_plan(batch, plan.rows(value), lambda n: plan.packing(value, n))
    # rows of cores and bytes are rounded: what only they allow is no plan
    return found if verify(run.problem, found).ok else None
