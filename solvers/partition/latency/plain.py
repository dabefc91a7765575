"""The integer programme of Tarnawski et al. (NeurIPS 2020, section 4), in CP-SAT and as a MILP; docs/latency.md.

Nothing is contracted, nothing given. Letters are those of the page, with an op for an item or group, d for a host or an
accelerator, whose ops are one call, and levels in place of (C): a call is behind what it waits for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import LatencyPlan, LatencyProblem

from ...plain import TICKS, Formulation, Minimise, Search, Variable, letter, refine, solve_cpsat, solve_milp
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
            "ops on hosts, (F) of the page",
        ),
    ),
)
"""The model in words; letters as in docs/latency.md, but for (H)."""


def rows(problem: LatencyProblem) -> int:
    """Return the number of rows of either model, but for a few: of ops, edges and devices."""
    return (2 * problem.graph.n_ops + 3 * problem.graph.n_edges) * problem.cluster.n_devices


def plain_cpsat(run: Run, prepared: object = None, minimise: Search = solve_cpsat) -> None:
    """Minimise Z by CP-SAT: x[v][d] op v on device d, into[d][u], out[d][u] the output of u enters, leaves call d."""
    from ortools.sat.python import cp_model

    t = Textbook.of(run.problem)
    devices, calls = _devices(t)
    most = len(t.ops) + len(calls)

    def attempt(unit: float) -> None:  # noqa: PLR0912, one model read from top to bottom
        time, cost = t.ticks(unit, TICKS)
        model = cp_model.CpModel()
        x = [{d: model.new_bool_var(f"x_{v}_{d}") for d in devices} for v in t.ops]
        into, out = (
            {d: {u: model.new_bool_var(f"{name}_{d}_{u}") for u, _ in t.edges} for d in calls}
            for name in ("into", "out")
        )
        ready = [model.new_int_var(0, TICKS, f"ready_{v}") for v in t.ops]
        start, finish = ({d: model.new_int_var(0, TICKS, f"{name}_{d}") for d in calls} for name in ("start", "finish"))
        level = [model.new_int_var(0, most, f"level_{v}") for v in t.ops]
        turn = {d: model.new_int_var(0, most, f"turn_{d}") for d in calls}
        z = model.new_int_var(0, TICKS, "Z")
        model.minimize(z)
        letter(model, "A")
        for v in t.ops:  # (A) every op is on one device that runs it,
            model.add_exactly_one(x[v].values())
            model.add(z >= ready[v])
        for d in devices:
            for v in t.barred[t.kind[d]]:
                model.add(x[v][d] == 0)
        for v, w in t.together:  # colocated ops on the same
            for d in devices:
                model.add(x[v][d] == x[w][d])
        letter(model, "M")
        for d in devices:  # (M) memory
            model.add(sum(size * x[v][d] for v, size in enumerate(t.size[t.kind[d]])) <= t.room[t.kind[d]])
            for ops in t.apart(t.kind[d]):
                model.add_bool_or(~x[v][d] for v in ops)
        for d in calls:
            for u, v in t.edges:  # (K) an output enters a call, or leaves it
                letter(model, "K")
                model.add_bool_or(~x[v][d], x[u][d], into[d][u])
                model.add_bool_or(~x[u][d], x[v][d], out[d][u])
                letter(model, "C")
                # (C) calls do not wait for one another in a circle, even if they take no time
                model.add(level[v] >= level[u] + 1).only_enforce_if(x[v][d], ~x[u][d])
            for v in t.ops:  # (F) results are there when the call has finished
                letter(model, "F")
                model.add(ready[v] >= finish[d]).only_enforce_if(x[v][d])
                letter(model, "C")
                model.add(level[v] == turn[d]).only_enforce_if(x[v][d])
            letter(model, "F")
            for u in into[d]:  # it starts when its inputs are there
                model.add(start[d] >= ready[u]).only_enforce_if(into[d][u])
            work = sum(time[t.kind[d]][v] * x[v][d] for v in t.ops)  # (L) it takes its ops and its transfers
            moves: Any = sum(cost[u] * (into[d][u] + out[d][u]) for u in into[d])
            letter(model, "L")
            model.add(finish[d] >= start[d] + work + moves)
        letter(model, "H")
        for d in (d for d in devices if d not in calls):  # (F) an op on a host starts when its inputs are there
            for v in t.ops:
                model.add(ready[v] >= time[t.kind[d]][v]).only_enforce_if(x[v][d])
            for u, v in t.edges:
                model.add(ready[v] >= ready[u] + time[t.kind[d]][v]).only_enforce_if(x[v][d])
                model.add(level[v] >= level[u] + 1).only_enforce_if(x[v][d])

        minimise(run, model, TICKS / unit, lambda value: _plan(run, "plain_cpsat", t, x, value))

    refine(run, "plain_cpsat", rows(run.problem), _worst(t), attempt, t.covers.found)


def plain_milp(run: Run, prepared: object = None, minimise: Minimise = solve_milp) -> None:
    """Minimise Z by a MILP: letters as in `plain_cpsat`, and big M where that enforces."""
    import pulp

    from ...pulp_solvers import ABOVE_ONE, Model

    t = Textbook.of(run.problem)
    devices, calls = _devices(t)
    most, m = len(t.ops) + len(calls), ABOVE_ONE

    def attempt(unit: float) -> None:  # noqa: PLR0912, one model read from top to bottom
        time, cost = t.seconds(unit)
        lp = Model("latency", lambda: run.stopped)
        x = [{d: pulp.LpVariable(f"x_{v}_{d}", cat="Binary") for d in devices} for v in t.ops]
        into, out = (
            {d: {u: pulp.LpVariable(f"{name}_{d}_{u}", 0, 1) for u, _ in t.edges} for d in calls}
            for name in ("into", "out")
        )
        ready, level = (
            [pulp.LpVariable(f"{n}_{v}", 0, up) for v in t.ops] for n, up in (("ready", m), ("level", most))
        )
        start, finish, turn = (
            {d: pulp.LpVariable(f"{name}_{d}", 0, up) for d in calls}
            for name, up in (("start", m), ("finish", m), ("turn", most))
        )
        z = pulp.LpVariable("Z", 0, m)
        lp.setObjective(z + 0)
        letter(lp, "A")
        for v in t.ops:  # (A)
            lp += pulp.lpSum(x[v].values()) == 1
            lp += z >= ready[v]
        for d in devices:
            for v in t.barred[t.kind[d]]:
                lp += x[v][d] == 0
        for v, w in t.together:
            for d in devices:
                lp += x[v][d] == x[w][d]
        letter(lp, "M")
        for d in devices:  # (M)
            if room := t.room[t.kind[d]]:
                lp += pulp.lpSum(size / room * x[v][d] for v, size in enumerate(t.size[t.kind[d]])) <= 1
            for ops in t.apart(t.kind[d]):
                lp += pulp.lpSum(x[v][d] for v in ops) <= len(ops) - 1
        for d in calls:
            for u, v in t.edges:  # (K), (C)
                letter(lp, "K")
                lp += into[d][u] >= x[v][d] - x[u][d]
                lp += out[d][u] >= x[u][d] - x[v][d]
                letter(lp, "C")
                lp += level[v] >= level[u] + 1 - (most + 1) * (1 - x[v][d] + x[u][d])
            for v in t.ops:  # (F)
                letter(lp, "F")
                lp += ready[v] >= finish[d] - m * (1 - x[v][d])
                letter(lp, "C")
                lp += level[v] - turn[d] <= most * (1 - x[v][d])
                lp += turn[d] - level[v] <= most * (1 - x[v][d])
            letter(lp, "F")
            for u in into[d]:
                lp += start[d] >= ready[u] - m * (1 - into[d][u])
            work = pulp.lpSum(time[t.kind[d]][v] * x[v][d] for v in t.ops)  # (L)
            moves = pulp.lpSum(cost[u] * (into[d][u] + out[d][u]) for u in into[d])
            letter(lp, "L")
            lp += finish[d] >= start[d] + work + moves
        letter(lp, "H")
        for d in (d for d in devices if d not in calls):  # (F)
            for v in t.ops:
                lp += ready[v] >= time[t.kind[d]][v] * x[v][d]
            for u, v in t.edges:
                lp += ready[v] >= ready[u] + time[t.kind[d]][v] * x[v][d] - m * (1 - x[v][d])
                lp += level[v] >= level[u] + 1 - (most + 1) * (1 - x[v][d])
        minimise(run, lp, unit, lambda: _plan(run, "plain_milp", t, x, pulp.value))

    refine(run, "plain_milp", rows(run.problem), _worst(t), attempt, t.covers.found)


def _devices(t: Textbook) -> tuple[list[int], list[int]]:
    """Return devices and, of them, accelerators: of hosts of a type with ample memory one stands for all."""
    ample = {t.kind.index(i) for i in set(t.kind) if t.host[i] and not t.room[i]}
    devices = [d for d in t.devices if not t.host[t.kind[d]] or t.room[t.kind[d]] or d in ample]
    return devices, [d for d in devices if not t.host[t.kind[d]]]


def _worst(t: Textbook) -> float:
    return t.work + sum(t.cost) * (len(t.devices) + 1)


def _plan(run: Run, by: str, t: Textbook, x: list[dict[int, Any]], value: Any) -> LatencyPlan | None:
    plan = LatencyPlan(run.problem.graph.names, np.array([max(row, key=lambda d: value(row[d])) for row in x]))
    return plan if t.accepts(run, plan, by) else None
