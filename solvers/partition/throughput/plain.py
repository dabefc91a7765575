"""The assignment model as a textbook has it, in CP-SAT and as a MILP; letters as in docs/formulation.md, op for group.

Nothing is contracted, nothing given: no starting plan, no bound, no symmetry broken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import PartitionPlan, PartitionProblem

from ...plain import TICKS, Formulation, Minimise, Search, Variable, letter, refine, solve_cpsat, solve_milp
from ...run import Run
from ..textbook import Textbook

FORMULATION = Formulation(
    "Z, the load of the busiest device",
    (
        Variable("Z", "", "the greatest load", seconds=True),
        Variable("x", "op slot", "1 if op v is in slot s: a stage of a pipeline, else a device"),
        Variable("y", "slot type", "1 if slot s is a device of type t"),
        Variable("k", "op slot", "1 if slot s pays for the output of op u"),
        Variable("P", "op slot", "convex only: op v is in slot s or follows what is there"),
        Variable("Q", "op slot", "convex only: op v follows what is in slot s and is not there"),
    ),
    (
        ("A", "sum_s x[v,s] = 1;  x[v,s] = x[w,s] if v, w are colocated", "every op is in one slot"),
        ("T", "sum_t y[s,t] = 1;  sum_s y[s,t] = n_t;  x[v,s] + y[s,t] <= 1 if t cannot run v", "slots have types"),
        ("K", "k[u,s] >= x[u,s] - x[v,s];  k[u,s] >= x[v,s] - x[u,s] for each edge (u, v)", "an output crosses"),
        ("L", "y[s,t] = 1  =>  sum_v p[t,v] x[v,s] + sum_u c[u] k[u,s] <= Z", "loads; hosts pay no c"),
        ("M", "y[s,t] = 1  =>  sum_v m[v] x[v,s] <= M[t]", "memory"),
        ("C", "sum_{r<=s} x[b,r] <= sum_{r<=s} x[a,r] where a comes before b", "contiguous only: in order"),
        ("V", "x[v,s] = P[v,s] - Q[v,s];  P[u,s] <= P[v,s];  Q[u,s] <= Q[v,s] for u before v", "convex only"),
    ),
)
"""The model in words; letters as in docs/formulation.md."""


def rows(problem: PartitionProblem) -> int:
    """Return the number of rows of either model, but for a few: of ops, edges and slots."""
    graph, slots = problem.graph, problem.cluster.n_devices
    kinds = len(problem.cluster.device_types) if problem.variant == "contiguous" else 1
    return (graph.n_ops * kinds + 3 * graph.n_edges) * slots


def plain_cpsat(run: Run, prepared: object = None, minimise: Search = solve_cpsat) -> None:
    """Minimise Z by CP-SAT: x[v][s] op v in slot s, y[s][t] slot s is of type t, k[u][s] it pays for output u."""
    from ortools.sat.python import cp_model

    t = Textbook.of(run.problem)
    kinds = _kinds(run.problem, t)
    slots, types = range(len(kinds)), range(len(t.count))

    def attempt(unit: float) -> None:  # noqa: PLR0912, one model read from top to bottom
        time, cost = t.ticks(unit, TICKS)
        model = cp_model.CpModel()
        x = [[model.new_bool_var(f"x_{v}_{s}") for s in slots] for v in t.ops]
        y: list[dict[int, Any]] = [{i: model.new_bool_var(f"y_{s}_{i}") for i in kinds[s]} for s in slots]
        k = {u: [model.new_bool_var(f"k_{u}_{s}") for s in slots] for u, _ in t.edges if t.cost[u]}
        z = model.new_int_var(0, TICKS, "Z")
        model.minimize(z)
        letter(model, "A")
        for v in t.ops:  # (A) every op is in one slot,
            model.add_exactly_one(x[v])
        for v, w in t.together:  # colocated ops in the same
            for s in slots:
                model.add(x[v][s] == x[w][s])
        letter(model, "T")
        for s in slots:  # (T) every slot is a device of one type
            model.add_exactly_one(y[s].values())
        for i in types:
            model.add(sum(y[s][i] for s in slots if i in y[s]) == t.count[i])
        letter(model, "K")
        for u, v in t.edges:  # (K) a slot pays for an output that crosses its boundary
            for s in slots if u in k else ():
                model.add_bool_or(~x[u][s], x[v][s], k[u][s])
                model.add_bool_or(x[u][s], ~x[v][s], k[u][s])
        for s in slots:
            for i, chosen in y[s].items():
                letter(model, "T")
                for v in t.barred[i]:
                    model.add_implication(chosen, ~x[v][s])
                tolls = 0 if t.host[i] else sum(cost[u] * k[u][s] for u in k)
                letter(model, "L")  # (L) no load is above Z; (M) memory
                model.add(sum(time[i][v] * x[v][s] for v in t.ops) + tolls <= z).only_enforce_if(chosen)
                letter(model, "M")
                model.add(sum(t.size[i][v] * x[v][s] for v in t.ops) <= t.room[i]).only_enforce_if(chosen)
                for ops in t.apart(i):
                    model.add_bool_or(~chosen, *(~x[v][s] for v in ops))
        letter(model, "C" if run.problem.variant == "contiguous" else "V")
        if run.problem.variant == "contiguous":  # (C) a is in no later slot than b
            for a, b in t.order:
                for s in slots:
                    model.add(sum(x[b][: s + 1]) <= sum(x[a][: s + 1]))
        if run.problem.variant == "convex":  # (V) what a slot holds is an up-set P less one inside it, Q
            p, q = ([[model.new_bool_var(f"{n}_{v}_{s}") for s in slots] for v in t.ops] for n in "PQ")
            for s in slots:
                for v in t.ops:
                    model.add(x[v][s] == p[v][s] - q[v][s])
                for u, v in t.order:
                    model.add_implication(p[u][s], p[v][s])
                    model.add_implication(q[u][s], q[v][s])

        def plan(value: Any) -> PartitionPlan | None:
            return _plan(run, "plain_cpsat", t, [[value(x[v][s]) for s in slots] for v in t.ops], y, value)

        minimise(run, model, TICKS / unit, plan)

    refine(run, "plain_cpsat", rows(run.problem), t.work + sum(t.cost), attempt, t.covers.found)


def plain_milp(run: Run, prepared: object = None, minimise: Minimise = solve_milp) -> None:
    """Minimise Z by a MILP: letters as in `plain_cpsat`, and big M where that enforces."""
    import pulp

    from ...pulp_solvers import ABOVE_ONE, Model

    t = Textbook.of(run.problem)
    kinds = _kinds(run.problem, t)
    slots, types = range(len(kinds)), range(len(t.count))

    def attempt(unit: float) -> None:  # noqa: PLR0912, one model read from top to bottom
        time, cost = t.seconds(unit)
        lp = Model("partition", lambda: run.stopped)
        x = [[pulp.LpVariable(f"x_{v}_{s}", cat="Binary") for s in slots] for v in t.ops]
        y: list[dict[int, Any]] = [{i: pulp.LpVariable(f"y_{s}_{i}", cat="Binary") for i in kinds[s]} for s in slots]
        k = {u: [pulp.LpVariable(f"k_{u}_{s}", 0, 1) for s in slots] for u, _ in t.edges if t.cost[u]}
        z = pulp.LpVariable("Z", 0, ABOVE_ONE)
        lp.setObjective(z + 0)
        letter(lp, "A")
        for v in t.ops:  # (A)
            lp += pulp.lpSum(x[v]) == 1
        for v, w in t.together:
            for s in slots:
                lp += x[v][s] == x[w][s]
        letter(lp, "T")
        for s in slots:  # (T)
            lp += pulp.lpSum(y[s].values()) == 1
        for i in types:
            lp += pulp.lpSum(y[s][i] for s in slots if i in y[s]) == t.count[i]
        letter(lp, "K")
        for u, v in t.edges:  # (K)
            for s in slots if u in k else ():
                lp += k[u][s] >= x[u][s] - x[v][s]
                lp += k[u][s] >= x[v][s] - x[u][s]
        for s in slots:
            for i, chosen in y[s].items():
                letter(lp, "T")
                for v in t.barred[i]:
                    lp += x[v][s] <= 1 - chosen
                tolls = 0 if t.host[i] else pulp.lpSum(cost[u] * k[u][s] for u in k)
                most = sum(time[i]) + sum(cost)  # (L), (M): a slot of another type is let off all that it could carry
                letter(lp, "L")
                lp += pulp.lpSum(time[i][v] * x[v][s] for v in t.ops) + tolls <= z + most * (1 - chosen)
                letter(lp, "M")
                if t.room[i]:
                    share = [size / t.room[i] for size in t.size[i]]
                    lp += pulp.lpSum(share[v] * x[v][s] for v in t.ops) <= 1 + sum(share) * (1 - chosen)
                for ops in t.apart(i):
                    lp += pulp.lpSum(x[v][s] for v in ops) + chosen <= len(ops)
        letter(lp, "C" if run.problem.variant == "contiguous" else "V")
        if run.problem.variant == "contiguous":  # (C)
            for a, b in t.order:
                for s in slots:
                    lp += pulp.lpSum(x[b][: s + 1]) <= pulp.lpSum(x[a][: s + 1])
        if run.problem.variant == "convex":  # (V)
            p, q = ([[pulp.LpVariable(f"{n}_{v}_{s}", 0, 1) for s in slots] for v in t.ops] for n in "PQ")
            for s in slots:
                for v in t.ops:
                    lp += x[v][s] == p[v][s] - q[v][s]
                for u, v in t.order:
                    lp += p[u][s] <= p[v][s]
                    lp += q[u][s] <= q[v][s]

        def plan() -> PartitionPlan | None:
            return _plan(run, "plain_milp", t, [[x[v][s].value() for s in slots] for v in t.ops], y, pulp.value)

        minimise(run, lp, unit, plan)

    refine(run, "plain_milp", rows(run.problem), t.work + sum(t.cost), attempt, t.covers.found)


def _kinds(problem: PartitionProblem, t: Textbook) -> list[list[int]]:
    """Return the types that each slot may be of: stages of a pipeline may come in any order, others are devices."""
    return [[*range(len(t.count))] if problem.variant == "contiguous" else [kind] for kind in t.kind]


def _plan(run: Run, by: str, t: Textbook, x: list[list[float]], y: Any, value: Any) -> PartitionPlan | None:
    problem = run.problem
    slot = [max(range(len(row)), key=row.__getitem__) for row in x]
    used = sorted(set(slot))
    device = {s: s for s in used}
    if problem.variant == "contiguous":
        free = [[d for d in t.devices if t.kind[d] == i] for i in range(len(t.count))]
        device = {s: free[max(y[s], key=lambda i: value(y[s][i]))].pop(0) for s in used}
    stage = np.array([used.index(s) for s in slot])
    plan = PartitionPlan(problem.graph.names, np.array([device[s] for s in slot]), stage)
    return plan if t.accepts(run, plan, by) else None
