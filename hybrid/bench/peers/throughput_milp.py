"""The same assignment model as a mixed-integer linear programme, through PuLP."""

from __future__ import annotations

from math import isfinite
from typing import Any

import pulp

from gangplan.instances import PartitionPlan
from gangplan.solvers import Run
from gangplan.solvers.pulp_solvers import ABOVE_ONE

from .engines import Solve
from .textbook import Textbook, to_plan


def throughput_milp(run: Run, solve: Solve) -> None:  # noqa: PLR0912, one model read from top to bottom
    """Minimise the maximum load; letters as in `throughput_cpsat`."""
    t = Textbook.of(run.problem)
    unit = t.total or 1.0
    lp = pulp.LpProblem("textbook", pulp.LpMinimize)
    slots, ops = range(len(t.kinds)), range(len(t.memory))
    x = [[pulp.LpVariable(f"x_{v}_{s}", cat="Binary") for s in slots] for v in ops]
    kind: list[dict[int, Any]] = [
        {i: pulp.LpVariable(f"y_{s}_{i}", cat="Binary") if len(kinds) > 1 else 1 for i in kinds}
        for s, kinds in enumerate(t.kinds)
    ]
    z = pulp.LpVariable("Z", 0, ABOVE_ONE)
    lp += z
    for row in x:
        lp += pulp.lpSum(row) == 1
    if any(len(kinds) > 1 for kinds in t.kinds):
        for choice in kind:
            lp += pulp.lpSum(choice.values()) == 1
        for i, count in enumerate(t.counts):
            lp += pulp.lpSum(choice[i] for choice in kind) == count
    for v, w in t.together:
        for s in slots:
            lp += x[v][s] == x[w][s]
    for a, b in t.order:
        for s in slots[:-1]:
            lp += pulp.lpSum(x[b][: s + 1]) <= pulp.lpSum(x[a][: s + 1])
    sends = sorted({u for u, _ in t.edges if t.cost[u]})
    k = {u: [pulp.LpVariable(f"k_{u}_{s}", 0, 1) for s in slots] for u in sends}
    for u, v in t.edges:
        for s in slots if u in k else ():
            lp += k[u][s] >= x[u][s] - x[v][s]
            lp += k[u][s] >= x[v][s] - x[u][s]
    for s in slots:
        for i, choice in kind[s].items():
            runs = [v for v in ops if isfinite(t.time[i][v])]
            lp += pulp.lpSum(x[v][s] for v in ops if not isfinite(t.time[i][v])) <= len(ops) * (1 - choice)
            if isfinite(t.capacity[i]) and any(t.memory):
                room = t.capacity[i]
                excess = max(0.0, sum(t.memory) / room - 1)
                lp += pulp.lpSum(t.memory[v] / room * x[v][s] for v in ops) <= 1 + excess * (1 - choice)
            load = pulp.lpSum(t.time[i][v] / unit * x[v][s] for v in runs)
            most = sum(t.time[i][v] for v in runs)
            if not t.host[i]:
                load += pulp.lpSum(t.cost[u] / unit * k[u][s] for u in sends)
                most += sum(t.cost)
            lp += load <= z + most / unit * (1 - choice)

    def plan() -> PartitionPlan:
        slot = [next(s for s in slots if x[v][s].value() > 0.5) for v in ops]
        kinds = {s: next(i for i, c in kind[s].items() if len(kind[s]) == 1 or c.value() > 0.5) for s in set(slot)}
        return to_plan(run.problem, slot, kinds.__getitem__)

    solve(run, lp, unit, plan)
