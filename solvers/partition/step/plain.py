"""Scheduling with communication delays as a textbook has it, in CP-SAT and as a MILP; letters as in docs/step.md.

Nothing is contracted, nothing given, and an output waits for no link: contention is left to `cpsat`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gangplan.instances import StepPlan, StepProblem
from gangplan.instances.arrays import IntArray

from ...plain import CAP, TICKS, Formulation, Minimise, Search, Variable, letter, refine, solve_cpsat, solve_milp
from ...run import Run, watched
from ..textbook import Textbook

FORMULATION = Formulation(
    "Z, the makespan",
    (
        Variable("Z", "", "the makespan", seconds=True),
        Variable("x", "op device", "1 if op v is on device d"),
        Variable("s", "op", "start of op v", seconds=True),
        Variable("e", "op", "CP-SAT only: end of op v", seconds=True),
        Variable("y", "op op", "MILP only: 1 if op u is before op v where they share a device"),
    ),
    (
        ("A", "sum_d x[v,d] = 1;  Z >= s[v] + p[v];  x[v,d] = 0 if d cannot run v", "every op is on one device"),
        ("M", "sum_v m[v] x[v,d] <= M[d]", "memory"),
        (
            "D",
            "no overlap of [s[v], s[v] + p[d,v]) with x[v,d] = 1;  as a MILP  "
            "x[u,d] = x[v,d] = y[u,v] = 1  =>  s[v] >= s[u] + p[u]",
            "one op at a time",
        ),
        ("P", "s[v] >= s[u] + p[u];  x[u,a] = x[v,b] = 1  =>  s[v] >= s[u] + p[u] + c[u,a,b]", "inputs come first"),
    ),
)
"""The model in words; letters as in docs/step.md."""


def rows(problem: StepProblem) -> int:
    """Return the number of rows, but for a few; contended links raise `NotImplementedError`."""
    if problem.contention:
        raise NotImplementedError("contention: links that are contended for have no plain model")
    graph, devices = problem.graph, problem.cluster.n_devices
    return graph.n_ops * devices + graph.n_edges * devices**2


def rows_milp(problem: StepProblem) -> int:
    """Return the number of rows of the MILP, which has two for each pair of ops and device besides."""
    return rows(problem) + problem.graph.n_ops**2 * problem.cluster.n_devices


def plain_cpsat(run: Run, prepared: object = None, minimise: Search = solve_cpsat) -> None:
    """Minimise the makespan Z by CP-SAT: x[v][d] op v on device d, s[v] its start, e[v] its end."""
    from ortools.sat.python import cp_model

    size, t = rows(run.problem), Textbook.of(run.problem)

    def attempt(unit: float) -> None:
        time, _ = t.ticks(unit, TICKS)
        model = cp_model.CpModel()
        x = [[model.new_bool_var(f"x_{v}_{d}") for d in t.devices] for v in t.ops]
        s, e = ([model.new_int_var(0, TICKS, f"{name}_{v}") for v in t.ops] for name in "se")
        z = model.new_int_var(0, TICKS, "Z")
        model.minimize(z)
        letter(model, "A")
        for v in t.ops:  # (A) every op is on one device that runs it,
            model.add_exactly_one(x[v])
            model.add(z >= e[v])
        for v, w in t.together:  # colocated ops on the same
            for d in t.devices:
                model.add(x[v][d] == x[w][d])
        for d in t.devices:
            kind = t.kind[d]
            letter(model, "A")
            for v in t.barred[kind]:
                model.add(x[v][d] == 0)
            letter(model, "M")  # (M) memory; (D) one op at a time
            model.add(sum(t.size[kind][v] * x[v][d] for v in t.ops) <= t.room[kind])
            for ops in t.apart(kind):
                model.add_bool_or(~x[v][d] for v in ops)
            letter(model, "D")
            model.add_no_overlap(
                [model.new_optional_interval_var(s[v], time[kind][v], e[v], x[v][d], f"run_{v}_{d}") for v in t.ops]
            )
        letter(model, "P")
        for u, v in t.edges:  # (P) an op starts after its inputs have ended and, from another device, have been sent
            model.add(s[v] >= e[u])
        for u, v, a, b, delay in watched(delays(run.problem, t), lambda: run.stopped):
            model.add(s[v] >= e[u] + int(min(delay / unit, CAP) * TICKS)).only_enforce_if(x[u][a], x[v][b])

        minimise(run, model, TICKS / unit, lambda value: _plan(run, "plain_cpsat", t, x, s, value))

    refine(run, "plain_cpsat", size, _worst(t), attempt, t.covers.found)


def plain_milp(run: Run, prepared: object = None, minimise: Minimise = solve_milp) -> None:
    """Minimise the makespan Z by a MILP: letters as in `plain_cpsat`, y[u, v] op u before v if they share a device."""
    import pulp

    from ...pulp_solvers import ABOVE_ONE, Model

    size, t = rows_milp(run.problem), Textbook.of(run.problem)

    def attempt(unit: float) -> None:
        time, _ = t.seconds(unit)
        lp = Model("step", lambda: run.stopped)
        x = [[pulp.LpVariable(f"x_{v}_{d}", cat="Binary") for d in t.devices] for v in t.ops]
        y = {(u, v): pulp.LpVariable(f"y_{u}_{v}", cat="Binary") for u, v in combinations(t.ops, 2)}
        s = [pulp.LpVariable(f"s_{v}", 0, ABOVE_ONE) for v in t.ops]
        e = [s[v] + pulp.lpSum(time[t.kind[d]][v] * x[v][d] for d in t.devices) for v in t.ops]
        z = pulp.LpVariable("Z", 0, ABOVE_ONE)
        lp.setObjective(z + 0)
        letter(lp, "A")
        for v in t.ops:  # (A)
            lp += pulp.lpSum(x[v]) == 1
            lp += z >= e[v]
        for v, w in t.together:
            for d in t.devices:
                lp += x[v][d] == x[w][d]
        for d in t.devices:
            kind = t.kind[d]
            letter(lp, "A")
            for v in t.barred[kind]:
                lp += x[v][d] == 0
            letter(lp, "M")
            if t.room[kind]:  # (M)
                lp += pulp.lpSum(t.size[kind][v] / t.room[kind] * x[v][d] for v in t.ops) <= 1
            for ops in t.apart(kind):
                lp += pulp.lpSum(x[v][d] for v in ops) <= len(ops) - 1
            letter(lp, "D")
            for (u, v), first in y.items():  # (D)
                apart = 2 - x[u][d] - x[v][d]
                lp += s[v] >= e[u] - ABOVE_ONE * (apart + 1 - first)
                lp += s[u] >= e[v] - ABOVE_ONE * (apart + first)
        letter(lp, "P")
        for u, v in t.edges:  # (P)
            lp += s[v] >= e[u]
        for u, v, a, b, delay in delays(run.problem, t):
            lp += s[v] >= e[u] + min(delay / unit, CAP) * (x[u][a] + x[v][b] - 1)

        minimise(run, lp, unit, lambda: _plan(run, "plain_milp", t, x, s, pulp.value))

    refine(run, "plain_milp", size, _worst(t), attempt, t.covers.found)


def delays(problem: StepProblem, t: Textbook) -> Iterator[tuple[int, int, int, int, float]]:
    """Yield (u, v, a, b, seconds from device a to b) of each edge and pair of devices between which that takes time."""
    a, b = (ends.ravel().astype(np.int32) for ends in np.indices((len(t.devices), len(t.devices))))
    for u, v in t.edges:
        delay = problem.delay(np.full(len(a), u, dtype=np.int32), a, b)
        for i in np.flatnonzero(delay).tolist():
            yield u, v, int(a[i]), int(b[i]), float(delay[i])


def _worst(t: Textbook) -> float:
    return t.work + sum(t.cost) * len(t.devices)


def _plan(run: Run, by: str, t: Textbook, x: list[list[Any]], s: list[Any], value: Any) -> StepPlan | None:
    where = [max(t.devices, key=lambda d: value(row[d])) for row in x]
    plan = earliest(run.problem, np.array(where), [value(start) for start in s])
    return plan if t.accepts(run, plan, by) else None


def earliest(problem: StepProblem, device: IntArray, start: Sequence[float]) -> StepPlan:
    """Return the plan in which ops start in the order of `start`, a solver's rounded times, each as early as it can."""
    graph, cluster = problem.graph, problem.cluster
    rank = np.empty(graph.n_ops, dtype=int)
    rank[graph.topological_order()] = np.arange(graph.n_ops)
    seconds = problem.time()[cluster.type_of[device], np.arange(graph.n_ops)]
    delay = problem.delay(graph.source, device[graph.source], device[graph.target])
    inputs: list[list[tuple[int, float]]] = [[] for _ in range(graph.n_ops)]
    for u, v, wait in zip(graph.source.tolist(), graph.target.tolist(), delay.tolist(), strict=True):
        inputs[v].append((u, wait))
    at, end = np.zeros(graph.n_ops), np.zeros(graph.n_ops)
    free = np.zeros(cluster.n_devices)
    for v in sorted(range(graph.n_ops), key=lambda v: (start[v], rank[v])):
        at[v] = max([free[device[v]], *(end[u] + wait for u, wait in inputs[v])])
        end[v] = free[device[v]] = at[v] + seconds[v]
    return StepPlan(graph.names, device, at)
