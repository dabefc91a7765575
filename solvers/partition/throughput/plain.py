"""The assignment model as a textbook has it, in CP-SAT and as a MILP; letters as in docs/formulation.md, op for group.

Nothing is contracted, nothing given: no starting plan, no bound, no symmetry broken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.instances import PartitionPlan, PartitionProblem

from ...plain import Formulation, New, PlainRows, Variable, add_up, both, refine
from ...run import Run
from ..textbook import Textbook
from .quotient import planned

Stages = list[tuple[int, list[int]]]
FORMULATION = Formulation(
    "Z, the load of the busiest device",
    (
        Variable("Z", "", "the greatest load", seconds=True),
        Variable("x", "op slot", "1 if op v is in slot s: a stage of a pipeline, else a device"),
        Variable("y", "slot type", "1 if slot s is a device of type t"),
        Variable("k", "op slot", "1 if slot s pays for the output of op u"),
        Variable("P", "op slot", "not if free: op v is in slot s or follows what is there; in a pipeline, or later"),
        Variable("Q", "op slot", "convex only: op v follows what is in slot s and is not there"),
    ),
    (
        ("A", "sum_s x[v,s] = 1;  x[v,s] = x[w,s] if v, w are colocated", "every op is in one slot"),
        ("T", "sum_t y[s,t] = 1;  sum_s y[s,t] = n_t;  x[v,s] + y[s,t] <= 1 if t cannot run v", "slots have types"),
        ("K", "k[u,s] >= x[u,s] - x[v,s];  k[u,s] >= x[v,s] - x[u,s] for each edge (u, v)", "an output crosses"),
        ("L", "y[s,t] = 1  =>  sum_v p[t,v] x[v,s] + sum_u c[u] k[u,s] <= Z", "loads; hosts pay no c"),
        ("M", "y[s,t] = 1  =>  sum_v m[v] x[v,s] <= M[t]", "memory"),
        ("C", "x[v,s] = P[v,s] - P[v,s+1];  P[a,s] <= P[b,s] where a comes before b", "contiguous only: in order"),
        ("V", "x[v,s] = P[v,s] - Q[v,s];  P[u,s] <= P[v,s];  Q[u,s] <= Q[v,s] for u before v", "convex only"),
    ),
)
"""The model in words; letters as in docs/formulation.md."""


def rows(problem: PartitionProblem) -> int:
    """Return the number of rows of either model, but for a few: of ops, edges and slots."""
    graph, slots = problem.graph, problem.cluster.n_devices
    kinds = len(problem.cluster.device_types) if problem.variant == "contiguous" else 1
    return (graph.n_ops * kinds + 3 * graph.n_edges) * slots


def _solve(run: Run, by: str, new: New) -> None:
    problem, t = run.problem, Textbook.of(run.problem)
    # stages of a pipeline may come in any order, others are devices
    kinds = [[*range(len(t.count))] if problem.variant == "contiguous" else [kind] for kind in t.kind]

    def plan(stages: Stages) -> PartitionPlan:
        return planned(problem, stages, t.op_of)

    def attempt(unit: float) -> None:
        assignment(new(unit), run, by, t, kinds, plan)

    refine(run, by, rows(problem), t.work + sum(t.cost), attempt, t.covers.found)


def assignment(
    model: PlainRows, run: Run, by: str, t: Textbook, kinds: list[list[int]], plan: Callable[[Stages], PartitionPlan],
    known: Callable[[list[dict[int, Any]], Any], None] = lambda x, z: None,
) -> None:  # fmt: skip
    """Minimise Z: x[v][s] op v is in slot s, y[s][i] slot s is of type i, k[u][s] it pays for output u.

    Args:
        kinds: the types that each slot may be of.
        plan: makes a plan of a type and ops of each slot.
        known: adds what is true of one of the best plans, of x and Z.
    """
    slots = range(len(kinds))
    x = [{s: model.binary("x", v, s) for s in slots} for v in t.ops]
    y = [{i: model.binary("y", s, i) for i in kinds[s]} for s in slots]
    paid = [u for u, (cost, pins) in enumerate(t.nets) if cost and len(pins) > 1]
    k = {u: [model.implied(1, "k", u, s) for s in slots] for u in paid}
    z, (time, cost) = model.amount(1, "Z"), t.units(model)
    t.assign(model, x)
    model.letter("T")  # every slot is a device of one type
    for s in slots:
        model.equal(add_up(y[s].values()), 1)
    for i, count in enumerate(t.count):
        model.equal(add_up(y[s][i] for s in slots if i in y[s]), count)
    model.letter("K")  # a slot pays for an output that crosses its boundary
    for u in paid:
        _, (first, *others) = t.nets[u]
        for v in others:
            for s in slots:
                model.row(x[first][s] - x[v][s], k[u][s])
                model.row(x[v][s] - x[first][s], k[u][s])
    for s in slots:
        for i, chosen in y[s].items():
            model.letter("L")
            load = [time[i][v] * x[v][s] for v in t.ops]
            tolls = [] if t.host[i] else [cost[u] * k[u][s] for u in paid]
            model.row(add_up(load + tolls), z, chosen)
            t.hold(model, i, [row[s] for row in x], chosen, barred="T")
    _order(model, t, x, run.problem.variant)
    known(x, z)

    def made(value: Callable[[Any], float]) -> PartitionPlan | None:
        slot = [max(slots, key=lambda s: value(row[s])) for row in x]
        stages = [(max(y[s], key=lambda i: value(y[s][i])), [v for v in t.ops if slot[v] == s]) for s in slots]
        return t.kept(run, plan(stages), by)

    model.minimise(z, made)


def _order(model: PlainRows, t: Textbook, x: list[dict[int, Any]], variant: str) -> None:
    """Add (C) or (V): what a slot holds is an up-set P less one inside it, Q, in a pipeline the P of the next slot."""
    slots, ends = range(len(x[0])), sorted({v for pair in t.order for v in pair})

    def up(name: str, s: int) -> dict[int, Any]:
        return {v: model.implied(1, name, v, s) for v in ends}

    if variant == "free":
        return
    model.letter("C" if variant == "contiguous" else "V")
    p = [up("P", s) for s in slots]
    q = [up("Q", s) for s in slots] if variant == "convex" else [*p[1:], dict.fromkeys(ends, 0)]
    for s in slots:
        for v in ends:
            model.equal(x[t.end_of[v]][s], p[s][v] - q[s][v])
    for held in [*p, *q] if variant == "convex" else p:
        for a, b in t.order:
            model.row(held[a], held[b])


plain_cpsat, plain_milp = both(_solve)
