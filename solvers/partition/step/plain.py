"""Scheduling with communication delays as a textbook has it, in CP-SAT and as a MILP; letters as in docs/step.md.

Nothing is contracted, nothing given, and an output waits for no link: contention is left to `cpsat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gangplan.instances import StepPlan, StepProblem
from gangplan.instances.arrays import IntArray

from ...plain import Formulation, New, PlainRows, Variable, add_up, both, refine
from ...run import Run
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


def _solve(run: Run, by: str, new: New) -> None:
    t, size = Textbook.of(run.problem), (rows_milp if by == "plain_milp" else rows)(run.problem)

    def plan(device: IntArray, start: list[float], value: Callable[[Any], float]) -> StepPlan:
        return earliest(run.problem, device, start)

    worst = t.work + sum(t.cost) * len(t.devices)
    refine(run, by, size, worst, lambda unit: programme(new(unit), run, by, t, plan), t.covers.found)


def programme(
    model: PlainRows, run: Run, by: str, t: Textbook,
    plan: Callable[[IntArray, list[float], Callable[[Any], float]], StepPlan],
    parts: Sequence[Sequence[int]] = (),
    send: Callable[[int, int, Any, Any, list[dict[int, Any]]], None] | None = None,
    known: Callable[[list[dict[int, Any]], list[Any], list[Any]], None] = lambda x, s, z: None,
) -> None:  # fmt: skip
    """Minimise the makespan, the sum of Z: x[v][d] op v on device d, s[v] its start in its part, e[v] its end.

    Args:
        plan: makes a plan of the device and the start of each op, and of what gives the values of variables.
        parts: ops that are over before those of the next part begin, Z[i] later; by default all are one.
        send: adds (P) for the output of u to v, given u, v, the end of u, when v may start, and x; by default without
            contention, a row for each two devices.
        known: adds what is true of one of the best plans, of x, s and Z.
    """
    parts = parts or [t.ops]
    of = {v: i for i, part in enumerate(parts) for v in part}
    x = [{d: model.binary("x", v, d) for d in t.devices} for v in t.ops]
    s, (time, _) = [model.amount(1, "s", v) for v in t.ops], t.units(model)
    z = [model.amount(1, "Z", *([i] if i else [])) for i in range(len(parts))]
    t.assign(model, x)
    lasts = [add_up(time[t.kind[d]][v] * x[v][d] for d in t.devices) for v in t.ops]
    e = [model.defined(s[v] + lasts[v], "e", v) for v in t.ops]
    for v in t.ops:
        model.row(e[v], z[of[v]])
    for d in t.devices:
        here, length = [row[d] for row in x], time[t.kind[d]]
        t.hold(model, t.kind[d], here)
        model.letter("D")  # one op at a time
        for part in parts:
            model.no_overlap([(s[v], length[v], e[v], here[v]) for v in part])
    model.letter("P")  # an op starts after its inputs have ended and, from another device, have been sent
    for u, v in t.edges:
        ready = add_up([s[v], *z[of[u] : of[v]]])
        model.row(e[u], ready)
        if send is not None:
            send(u, v, e[u], ready, x)
    for u, v, a, b, delay in delays(run.problem, t) if send is None else ():
        wait = model.units(delay)
        model.row(e[u] + wait, s[v], x[u][a], x[v][b], over=wait)
    known(x, s, z)

    def made(value: Callable[[Any], float]) -> StepPlan | None:
        where = np.array([max(t.devices, key=lambda d: value(row[d])) for row in x], dtype=np.int32)
        begin = np.cumsum([0, *map(value, z)])
        return t.kept(run, plan(where, [begin[of[v]] + value(at) for v, at in enumerate(s)], value), by)

    model.minimise(add_up(z), made)


plain_cpsat, plain_milp = both(_solve)


def delays(problem: StepProblem, t: Textbook) -> Iterator[tuple[int, int, int, int, float]]:
    """Yield (u, v, a, b, seconds from device a to b) of each edge and pair of devices between which that takes time."""
    a, b = (ends.ravel().astype(np.int32) for ends in np.indices((len(t.devices), len(t.devices))))
    for u, v in t.edges:
        delay = problem.delay(np.full(len(a), u, dtype=np.int32), a, b)
        for i in np.flatnonzero(delay).tolist():
            yield u, v, int(a[i]), int(b[i]), float(delay[i])


def earliest(problem: StepProblem, device: IntArray, start: Sequence[float]) -> StepPlan:
    """Return the plan in which ops start in the order of `start`, a solver's rounded times, each as early as it can."""
    graph, cluster = problem.graph, problem.cluster
    rank = np.argsort(graph.topological_order())
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
