"""The assignment model in CP-SAT, as a textbook has it: no contraction, no hint, no bound, no symmetry broken."""

from __future__ import annotations

from math import floor, isfinite
from typing import Any

from ortools.sat.python import cp_model

from gangplan.instances import PartitionPlan
from gangplan.solvers import Run

from .engines import run_cpsat
from .textbook import Textbook, to_plan

UNITS = 1 << 35
"""What a load that no device can exceed becomes in integers; rounding down keeps the bound a bound."""


def throughput_cpsat(run: Run) -> None:  # noqa: PLR0912, one model read from top to bottom
    """Minimise the maximum load: x[v, s] op v in slot s, k[u, s] the output of u crosses the boundary of s."""
    t = Textbook.of(run.problem)
    scale = UNITS / t.total if t.total > 0 else 1.0
    model = cp_model.CpModel()
    slots, ops = range(len(t.kinds)), range(len(t.memory))
    x = [[model.new_bool_var("") for _ in slots] for _ in ops]
    kind: list[dict[int, Any]] = [
        {i: model.new_bool_var("") if len(kinds) > 1 else 1 for i in kinds} for kinds in t.kinds
    ]
    z = model.new_int_var(0, UNITS, "Z")
    for row in x:
        model.add_exactly_one(row)
    if any(len(kinds) > 1 for kinds in t.kinds):
        for choice in kind:
            model.add_exactly_one(choice.values())
        for i, count in enumerate(t.counts):
            model.add(sum(choice[i] for choice in kind) == count)
    for v, w in t.together:
        for s in slots:
            model.add(x[v][s] == x[w][s])
    for a, b in t.order:
        for s in slots[:-1]:
            model.add(sum(x[b][: s + 1]) <= sum(x[a][: s + 1]))
    sends = sorted({u for u, _ in t.edges if t.cost[u]})
    k = {u: [model.new_bool_var("") for _ in slots] for u in sends}
    for u, v in t.edges:
        for s in slots if u in k else ():
            model.add_bool_or(~x[u][s], x[v][s], k[u][s])
            model.add_bool_or(x[u][s], ~x[v][s], k[u][s])
    byte = max(max(t.memory) / 2**31, 1e-300)
    for s in slots:
        for i, choice in kind[s].items():
            rows = []
            if isfinite(t.capacity[i]) and any(t.memory):
                used = sum(floor(t.memory[v] / byte) * x[v][s] for v in ops)
                rows.append(model.add(used <= floor(t.capacity[i] / byte)))
            load: Any = sum(floor(t.time[i][v] * scale) * x[v][s] for v in ops if isfinite(t.time[i][v]))
            if not t.host[i]:
                load += sum(floor(t.cost[u] * scale) * k[u][s] for u in sends)
            rows.append(model.add(load <= z))
            rows += [model.add(x[v][s] == 0) for v in ops if not isfinite(t.time[i][v])]
            for constraint in rows if len(kind[s]) > 1 else ():
                constraint.only_enforce_if(choice)
    model.minimize(z)

    def plan(solution: Any) -> PartitionPlan:
        slot = [next(s for s in slots if solution.boolean_value(x[v][s])) for v in ops]

        def type_of(s: int) -> int:
            return next(i for i, c in kind[s].items() if len(kind[s]) == 1 or solution.boolean_value(c))

        return to_plan(run.problem, slot, type_of)

    run_cpsat(run, model, scale, plan)
