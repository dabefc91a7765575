"""The integer programme of Tarnawski et al. (NeurIPS 2020, section 4), in CP-SAT and as a MILP; docs/latency.md.

Nothing is contracted, nothing given. Letters are those of the page; d is a host or an accelerator, whose ops are one
call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gangplan.instances import LatencyPlan, LatencyProblem

from ...plain import Formulation, New, PlainRows, Variable, add_up, both, refine
from ...run import Run
from ..textbook import Textbook

FORMULATION = Formulation(
    "Z, when the last result is there",
    (
        Variable("Z", "", "when all is over", seconds=True),
        Variable("x", "op device", "1 if op v is on device d"),
        Variable("into", "device op", "1 if the output of op u enters call d"),
        Variable("out", "device op", "1 if the output of op u leaves call d"),
        Variable("ready", "op", "when the result of op v is there", seconds=True),
        Variable("start", "device", "when call d starts", seconds=True),
        Variable("finish", "device", "when call d has finished", seconds=True),
        Variable("level", "op", "op v is behind so many others in a line of calls and ops"),
        Variable("turn", "device", "the level of the ops of call d"),
    ),
    (
        ("A", "sum_d x[v,d] = 1;  Z >= ready[v];  x[v,d] = 0 if d cannot run v", "every op is on one device"),
        ("M", "sum_v m[v] x[v,d] <= M[d]", "memory"),
        ("K", "into[d,u] >= x[v,d] - x[u,d];  out[d,u] >= x[u,d] - x[v,d] for each edge (u, v)", "transfers"),
        ("C", "x[v,d] = 1, x[u,d] = 0  =>  level[v] >= level[u] + 1;  level[v] = turn[d] in call d", "no circles"),
        ("F", "x[v,d] = 1  =>  ready[v] >= finish[d];  into[d,u] = 1  =>  start[d] >= ready[u]", "calls wait"),
        ("L", "finish[d] >= start[d] + sum_v p[d,v] x[v,d] + sum_u c[u] (into[d,u] + out[d,u])", "length of a call"),
        (
            "H",
            "x[v,d] = 1  =>  ready[v] >= ready[u] + p[d,v];  level[v] >= level[u] + 1",
            "ops on hosts",
        ),
    ),
)
"""The model in words; letters as in docs/latency.md."""


def rows(problem: LatencyProblem) -> int:
    """Return the number of rows of either model, but for a few: of ops, edges and devices."""
    return (2 * problem.graph.n_ops + 3 * problem.graph.n_edges) * problem.cluster.n_devices


def _solve(run: Run, by: str, new: New) -> None:
    t = Textbook.of(run.problem)

    def plan(device: list[int]) -> LatencyPlan:
        return LatencyPlan(run.problem.graph.names, np.array(device))

    def attempt(unit: float) -> None:
        programme(new(unit), run, by, t, plan)

    worst = t.work + sum(t.cost) * (len(t.devices) + 1)
    refine(run, by, rows(run.problem), worst, attempt, t.covers.found)


def programme(
    model: PlainRows, run: Run, by: str, t: Textbook, plan: Callable[[list[int]], LatencyPlan],
    known: Callable[[list[dict[int, Any]], Any], None] = lambda x, z: None,
) -> None:  # fmt: skip
    """Minimise Z: x[v][d] op v on device d, into[d][e], out[d][e] output e enters, leaves call d.

    Args:
        plan: makes a plan of the device of each op.
        known: adds what is true of one of the best plans, of x and Z.
    """
    # of hosts of a type with ample memory one stands for all
    ample = {t.kind.index(i) for i in set(t.kind) if t.host[i] and not t.sizes[i].room}
    devices = [d for d in t.devices if not t.host[t.kind[d]] or t.sizes[t.kind[d]].room or d in ample]
    calls, edges = [d for d in devices if not t.host[t.kind[d]]], t.edges
    sent = {e: pins for e, (_, pins) in enumerate(t.nets) if len(pins) > 1}
    most, (time, cost) = len(t.ops) + len(calls), t.units(model)
    x = [{d: model.binary("x", v, d) for d in devices} for v in t.ops]
    into, out = ({d: {e: model.implied(1, name, d, e) for e in sent} for d in calls} for name in ("into", "out"))
    ready = [model.amount(1, "ready", v) for v in t.ops]
    start, finish = ({d: model.amount(1, name, d) for d in calls} for name in ("start", "finish"))
    level, turn = [model.implied(most, "level", v) for v in t.ops], {d: model.implied(most, "turn", d) for d in calls}
    z = model.amount(1, "Z")
    t.assign(model, x)
    for v in t.ops:
        model.row(ready[v], z)
    for d in devices:
        t.hold(model, t.kind[d], [row[d] for row in x])
    for d in calls:
        model.letter("K")  # an output enters a call, or leaves it
        for e, (u, *readers) in sent.items():
            for v in readers:
                model.row(x[v][d] - x[u][d], into[d][e])
                model.row(x[u][d] - x[v][d], out[d][e])
        model.letter("C")  # calls do not wait for one another in a circle, even if they take no time
        for u, v in edges:
            model.row(level[u] + 1, level[v], x[v][d], 1 - x[u][d])
        for v in t.ops:
            model.equal(level[v], turn[d], x[v][d])
        model.letter("F")  # results are there when the call has finished; it starts when its inputs are there
        for v in t.ops:
            model.row(finish[d], ready[v], x[v][d])
        for e, (u, *_) in sent.items():
            model.row(ready[u], start[d], into[d][e])
        model.letter("L")  # it takes its ops and its transfers
        work = [time[t.kind[d]][v] * x[v][d] for v in t.ops]
        moves = [cost[e] * (into[d][e] + out[d][e]) for e in sent]
        model.row(add_up([start[d], *work, *moves]), finish[d])
    model.letter("H")
    for d in (d for d in devices if d not in calls):  # (F) an op on a host starts when its inputs are there
        for v in t.ops:
            model.row(time[t.kind[d]][v] * x[v][d], ready[v])
        for u, v in edges:
            model.row(ready[u] + time[t.kind[d]][v], ready[v], x[v][d])
            model.row(level[u] + 1, level[v], x[v][d])
    known(x, z)

    def made(value: Callable[[Any], float]) -> LatencyPlan | None:
        return t.kept(run, plan([max(devices, key=lambda d: value(row[d])) for row in x]), by)

    model.minimise(z, made)


plain_cpsat, plain_milp = both(_solve)
