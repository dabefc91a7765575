"""Schedules as a textbook has them: in CP-SAT an interval a way to run a job, as a MILP a binary a way and start.

A way is an option of a job, that is a degree, and a place to run it. Nothing is given: no starting plan, no bound.
Letters as in docs/schedule.md.
"""

from __future__ import annotations

from collections import defaultdict
from math import comb
from typing import Any

import numpy as np

from gangplan.instances.schedule import SchedulePlan

from .. import plain
from ..plain import CAP, ROWS, TICKS, Formulation, Solve, Variable, add_up, by_cpsat, by_highs, float_rows, refine
from ..run import Run, watched
from .enumeration import Place, places
from .grain import Scale, down, tick_of
from .prepare import RAMP, PreparedJobs, ShiftedRun, prepare

BINARIES, TERMS = 100_000, 2_000_000
"""Maximum numbers of the MILP: of starts, and of starts times the ticks and nodes that each is in."""

FORMULATION = Formulation(
    "the goal: sum_j w[j] C[j], or the makespan, plus price[j] out[j]",
    (
        Variable("x", "job option place tick", "1 if job j runs in this way; as a MILP, from this tick on"),
        Variable("out", "job", "1 if job j is left out"),
        Variable("s", "job", "CP-SAT only: start of job j, in ticks"),
        Variable("c", "job", "CP-SAT only: its end"),
        Variable("last", "", "makespan only: the last end", seconds=True),
        Variable("one", "", "MILP only: 1, for the constant of the goal"),
    ),
    (
        ("A", "out[j] + sum of x[j,...] = 1", "each job runs in one way, or is left out"),
        ("M", "sum of GPUs of x that run on node n at tick t <= GPUs of a node; in CP-SAT a cumulative", "capacity"),
        ("Z", "last >= end of j unless it is left out", "makespan only"),
        ("R", "out[j] = 1  =>  c[j] = release[j];  out[j] = 0 where a job must run", "CP-SAT only"),
    ),
)
"""The model in words; symbols as in docs/schedule.md."""


def suits_cpsat(p: PreparedJobs) -> bool:
    """Return whether there are few enough ways to run the jobs."""
    return sum(_places(p, o) for o in range(len(p.gpus))) <= ROWS


def suits_milp(p: PreparedJobs) -> bool:
    """Return whether times are whole ticks, and few enough."""
    (tick, whole), horizon = tick_of(p), p.horizon
    starts = [_places(p, o) * len(_ticks(p, o, tick, horizon)) for o in range(len(p.gpus))] if whole else []
    # a job is on as many nodes as its GPUs at most
    ticks = (down(q, tick) * min(g, p.nodes) for q, g in zip(p.seconds.tolist(), p.gpus.tolist(), strict=True))
    return whole and sum(starts) <= BINARIES and sum(n * t for n, t in zip(starts, ticks, strict=False)) <= TERMS


def ways(p: PreparedJobs) -> list[tuple[int, int, Place]]:
    """Return (job, option, place) of every way to run a job."""
    return [(j, o, place) for j in range(p.n) for o in p.options(j) for place in places(p.problem, int(p.gpus[o]))]


def plan_of(p: PreparedJobs, chosen: list[tuple[int, int, Place, float]]) -> SchedulePlan | None:
    """Return the plan of (job, option, place, start); starts are rounded, so that only their order counts."""
    from .cpsat import seated

    option, start = np.full(p.n, -1), np.zeros(p.n)
    held: list[list[tuple[int, int]]] = [[] for _ in range(p.n)]
    for j, o, place, at in chosen:
        option[j], start[j], held[j] = o, at, list(place)
    return seated(p, option, start, held)


def plain_cpsat(run: Run, prepared: object = None, minimise: Solve = by_cpsat) -> None:
    """Minimise the goal by CP-SAT: x[m] a job runs by way m, s[j] and c[j] its start and end, out[j] it is left out."""
    p = prepare(run.problem)
    if not suits_cpsat(p):
        run.note("plain_cpsat left out: there are too many ways to run the jobs")
        return
    scale = Scale(p)
    model = plain.PlainRows(ShiftedRun(run, p), TICKS * scale.unit, minimise)
    model.constant = scale.constant
    s, c, out, cost = [], [], [], []
    model.letter("R")
    for j in range(p.n):  # a job runs from its release to its deadline; what it costs is counted from its release
        first, late = scale.down(float(p.release[j])), float(p.deadline[j])
        due = max(first, scale.horizon if np.isinf(late) else min(scale.horizon, scale.down(late)))
        s.append(model.count(due, "s", j, least=first))
        c.append(model.count(due, "c", j, least=first))
        out.append(model.binary("out", j))
        model.row(out[j], int(np.isfinite(p.price[j])))
        cost.append(scale.price[j] * out[j])
        if not p.makespan:
            released = scale.up(float(p.release[j]))
            cost.append(scale.slope[j] * (c[j] - released))
            model.equal(c[j], max(first, released), out[j])
    every = ways(p)
    x = [model.binary("x", j, o, m) for m, (j, o, _) in enumerate(every)]
    model.letter("M")
    held: list[list[tuple[int, int]]] = [[] for _ in range(p.nodes)]
    for runs, (j, o, place) in zip(x, every, strict=True):
        ticks = scale.down(float(p.seconds[o]))
        interval = model.interval(s[j], ticks, c[j], runs)
        for v, gpus in place if ticks else ():
            held[v].append((interval, gpus))
    model.letter("A")
    for j in range(p.n):  # each job runs in one way or is left out
        mine = (runs for runs, way in zip(x, every, strict=True) if way[0] == j)
        model.add(add_up([out[j], *mine]), 1, 1, one=True)
    model.letter("M")
    for node in filter(None, held):  # no node holds more GPUs than it has
        model.together([interval for interval, _ in node], [gpus for _, gpus in node], p.per)
    if p.makespan:
        model.letter("Z")
        last = model.count(scale.horizon, "last")
        for j in range(p.n):
            model.row(c[j], last, 1 - out[j])
        cost.append(scale.slope[0] * last)

    def plan(value: Any) -> SchedulePlan | None:
        chosen = [way for runs, way in zip(x, every, strict=True) if value(runs)]
        return plan_of(p, [(j, o, place, value(s[j])) for j, o, place in chosen])

    with run.phase("plain_cpsat"):
        model.minimise(add_up(cost), plan)


def plain_milp(run: Run, prepared: object = None, minimise: Solve = by_highs) -> None:
    """Minimise the goal by a time-indexed MILP: x[m, t] a job starts by way m at tick t, out[j] it is left out.

    Times that are not whole ticks, or too many, raise `NotImplementedError`.
    """
    p = prepare(run.problem)
    if not suits_milp(p):
        raise NotImplementedError("times are not whole ticks, or too many")
    shifted, tick, horizon = ShiftedRun(run, p), tick_of(p)[0], p.horizon
    worst = float((p.slope * horizon).sum() + p.price[np.isfinite(p.price)].sum())

    def attempt(unit: float) -> None:
        model = float_rows(shifted, unit, minimise)
        x: dict[tuple[int, int, Place, int], Any] = {}
        held: dict[tuple[int, int], list[Any]] = defaultdict(list)
        # solvers differ in whether they count a constant in their bound: here it is a term
        cost: list[Any] = [p.constant / unit * model.count(1, "one", least=1, whole=False, label="one")]
        cap = CAP + max(0.0, -p.constant / unit)
        # the one start of a job has an end of at most that
        last = model.count(cap, "last", whole=False, label="last")
        for j in range(p.n):
            starts, ends = [], []
            for o in p.options(j):
                for k, place in enumerate(places(p.problem, int(p.gpus[o]))):
                    for t in watched(_ticks(p, o, tick, horizon), lambda: run.stopped):
                        starts.append(model.count(1, "x", j, o, k, t, label=f"x{len(x)}"))
                        x[j, o, place, t] = starts[-1]
                        end = t * tick + float(p.seconds[o])
                        ends.append(min((1.0 if p.makespan else float(p.slope[j])) * end / unit, cap) * starts[-1])
                        for during in range(t, t + down(float(p.seconds[o]), tick)):
                            for v, gpus in place:
                                held[v, during].append(gpus * starts[-1])
            model.letter("Z")
            if p.makespan:  # the last end is no earlier than that of any job
                model.add(last - add_up(ends), 0, None)
            else:
                cost += ends
            out = model.count(int(np.isfinite(p.price[j])), "out", j, label=f"out{j}")
            cost.append(min(float(p.price[j]) / unit, cap) * out)
            model.letter("A")
            model.equal(add_up([out, *starts]), 1)  # each job starts once or is left out
        model.letter("M")
        for in_use in held.values():  # in each tick no node holds more GPUs than it has
            model.add(add_up(in_use), None, p.per)

        def plan(value: Any) -> SchedulePlan | None:
            return plan_of(p, [start for start, runs in x.items() if value(runs) > 0.5])

        model.minimise(add_up([*cost, last] if p.makespan else cost), plan)

    refine(shifted, "plain_milp", 0, max(worst, horizon if p.makespan else 0.0), attempt)


def _places(p: PreparedJobs, o: int) -> int:
    if p.kind == RAMP:
        return int((p.size == p.gpus[o]).sum())
    full, rest = divmod(int(p.gpus[o]), p.per)
    return comb(p.nodes, full) * (p.nodes - full if rest else 1)


def _ticks(p: PreparedJobs, o: int, tick: float, horizon: float) -> range:
    """Return the ticks at which option o may start, to be over by its deadline and the horizon."""
    j = int(p.owner[o])
    last = min(float(p.due[o]), horizon) - float(p.seconds[o])
    return range(down(float(p.release[j]), tick), down(last, tick) + 1)
