"""Schedules as a textbook has them: in CP-SAT an interval a way to run a job, as a MILP a binary a way and start.

A way is an option of a job, that is a degree, and a place to run it. Nothing is given to `plain_cpsat` and
`plain_milp`: no starting plan, no bound. Letters as in docs/schedule.md.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from math import comb
from typing import Any

import numpy as np

from gangplan.instances.schedule import SchedulePlan

from ..plain import (
    CAP,
    TICKS,
    Formulation,
    PlainRows,
    Solve,
    Sum,
    Variable,
    add_up,
    by_cpsat,
    by_highs,
    float_rows,
    literal,
    refine,
)
from ..run import OPTIMAL_GAP, Run, in_time, watched
from .enumeration import Place, places
from .grain import Scale, down, suits_cpsat, tick_of
from .kernels import Room, settle
from .prepare import POOL, RAMP, PreparedJobs, ShiftedRun, prepare

BINARIES, TERMS = 100_000, 2_000_000
"""Maximum numbers of the MILP: of starts, and of starts times the ticks and nodes that each is in."""

FORMULATION = Formulation(
    "the goal: sum_j w[j] C[j], or the makespan, plus price[j] out[j]",
    (
        Variable("x", "job option place tick", "1 if job j runs in this way, as a MILP from this tick on"),
        Variable("on", "job option part place", "CP-SAT only: 1 if a part of this option is here"),
        Variable("out", "job", "1 if job j is left out"),
        Variable("s", "job", "CP-SAT only: start of job j, in ticks"),
        Variable("c", "job", "CP-SAT only: its end"),
        Variable("last", "", "makespan only: the last end", seconds=True),
        Variable("one", "", "MILP only: 1, for the constant of the goal"),
    ),
    (
        ("A", "out[j] + sum of x[j,...] = 1", "each job runs in one way, or is left out"),
        ("M", "sum of GPUs of x that run on node n at tick t <= GPUs of a node", "in CP-SAT cumulatives"),
        ("Z", "last >= end of j unless it is left out", "makespan only"),
        ("R", "out[j] = 1  =>  c[j] = release[j];  out[j] = 0 where a job must run", "CP-SAT only"),
    ),
)
"""The model in words; symbols as in docs/schedule.md."""


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
    """Return the plan of (job, option, place, start), `None` if a job is late in times as they are.

    Starts may be in any unit: only their order counts, and each job starts as early as it can on its place.
    """
    room, option, begin = Room(p), np.full(p.n, -1), np.zeros(p.n)
    rows: list[tuple[int, int, int]] = []
    for j, o, place, _ in sorted(chosen, key=lambda x: (x[3], x[0])):
        parts = place if p.kind != POOL else ((0, int(p.gpus[o])),)
        given = np.array(parts, dtype=np.int64).reshape(-1, 2)
        option[j], begin[j] = o, settle(room, given, p.release[j], p.seconds[o], p.due[o])
        if begin[j] == np.inf:
            return None
        rows += [(j, v, gpus) for v, gpus in parts if p.kind != POOL]
    return p.plan(option, begin, np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def plain_cpsat(run: Run, prepared: object = None, minimise: Solve = by_cpsat) -> None:
    """Minimise the goal by CP-SAT, from nothing."""
    p = prepare(run.problem)
    if not suits_cpsat(p):
        run.note("plain_cpsat left out: there are too many ways to run the jobs")
        return
    with run.phase("plain_cpsat"), in_time(run):
        _intervals(ShiftedRun(run, p), p, Scale(p), minimise)


def cpsat(run: Run, p: PreparedJobs) -> None:
    """Minimise the goal by CP-SAT, from the best plan; no job is left out for more than that costs."""
    scale = Scale(p, np.inf if run.objective is None else run.objective)
    with run.phase("cpsat"), in_time(run):
        _intervals(run, p, scale, partial(by_cpsat, by="cpsat"), run.plan)
    if run.stop_reason is None and run.objective is not None and scale.error > OPTIMAL_GAP * abs(run.objective):
        run.note(f"cpsat: whole numbers of 64 bits may cost its bound {scale.error:.2g}")


def _intervals(run: Run, p: PreparedJobs, scale: Scale, minimise: Solve, known: SchedulePlan | None = None) -> None:
    """State the model of intervals, and minimise it, from a plan if one is known.

    x[j, o] option o runs, on[j, o, k, i] its k-th part on the i-th place; s[j] and c[j] are start and end of job j;
    out[j]: it is left out.
    """
    model = PlainRows(run, TICKS * scale.unit, minimise)
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
    x, spots, held = _options(model, p, scale, list(zip(s, c, strict=True)))
    model.letter("A")
    for j in range(p.n):  # each job runs by one option or is left out
        model.add(add_up([out[j], *(x[o] for o in p.options(j))]), 1, 1, one=True)
    model.letter("M")
    for v, node in enumerate(held):  # no node holds more GPUs than it has, nor do all of them
        if node:
            model.together([i for i, _ in node], [gpus for _, gpus in node], p.per if v < p.nodes else p.total)
    if p.makespan:
        model.letter("Z")
        last = model.count(scale.horizon, "last")
        for j in range(p.n):
            model.row(c[j], last, 1 - out[j])
        cost.append(scale.slope[0] * last)
    if known is not None:
        model.start = {literal(runs): int(p.menu[o] == known.degree[p.owner[o]]) for o, runs in enumerate(x)}
        model.start |= {literal(out[j]): int(degree < 0) for j, degree in enumerate(known.degree.tolist())}
        at = [scale.down(start) for start in known.start.tolist()]
        model.start |= {literal(s[j]): at[j] for j, degree in enumerate(known.degree.tolist()) if degree >= 0}

    def plan(value: Any) -> SchedulePlan | None:
        places: list[list[tuple[int, int]]] = [[] for _ in x]
        for o, here, part in spots:
            places[o] += part if value(here) else ()
        ran = [(int(p.owner[o]), o, tuple(places[o])) for o, runs in enumerate(x) if value(runs)]
        return plan_of(p, [(j, o, place, value(s[j])) for j, o, place in ran])

    model.minimise(add_up(cost), plan)


def _options(
    model: PlainRows, p: PreparedJobs, scale: Scale, ends: list[tuple[Sum, Sum]]
) -> tuple[list[Sum], list[tuple[int, Sum, Place]], list[list[tuple[int, int]]]]:
    """State where jobs, each with its start and end, run by which option.

    Return x, (option, binary, place) of parts, and of each node, then of all, (interval, GPUs) of what may be there.
    """
    x, spots = list[Sum](), list[tuple[int, Sum, Place]]()
    held: list[list[tuple[int, int]]] = [[] for _ in range(p.nodes + 1)]
    model.letter("M")
    for o, (j, seconds) in enumerate(zip(p.owner.tolist(), p.seconds.tolist(), strict=True)):
        (start, end), ticks, runs = ends[j], scale.down(seconds), model.binary("x", j, o)
        x.append(runs)
        held[-1] += [(model.interval(start, ticks, end, runs), int(p.gpus[o]))] * (ticks > 0)
        before: list[Sum] = []
        for k, (count, parts) in enumerate(_parts(p, o)):
            on = [model.binary("on", j, o, k, i) for i in range(len(parts))]
            model.equal(add_up(on), count * runs)
            for here, part in zip(on, parts, strict=True):
                spots.append((o, here, part))
                for v, gpus in part if ticks else ():
                    held[v].append((model.interval(start, ticks, end, here), gpus))
            for both in zip(before, on, strict=False):
                model.row(add_up(both), 1)  # capacity does not keep parts of 0 s apart
            before = on
    return x, spots, held


def _parts(p: PreparedJobs, o: int) -> list[tuple[int, list[Place]]]:
    """Return how many parts of an option are on how many of some places: full nodes, and a rest on one, or a block."""
    if p.kind == POOL:
        return []
    gpus = int(p.gpus[o])
    if p.kind == RAMP:
        blocks = [range(p.block_first[b], p.block_first[b + 1]) for b in np.flatnonzero(p.size == gpus).tolist()]
        return [(1, [tuple((int(p.server[i]), 1) for i in block) for block in blocks])]
    full, rest = divmod(gpus, p.per)
    both = (full, p.per), (int(rest > 0), rest)
    return [(count, [((v, amount),) for v in range(p.nodes)]) for count, amount in both if count]


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
