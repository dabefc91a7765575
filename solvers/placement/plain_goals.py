"""What a placement costs in the plain model: slowdowns, throughput lost, pairs of GPUs, fragments."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, comb, floor, isclose, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.placement.rate import best_rate, model_of, pair_seconds, rates
from gangplan.instances.verify.placement import Fragmentation

from ..partition.sizes import most
from ..plain import FACTOR, TICKS, Sum, add_up

if TYPE_CHECKING:
    from .plain import Gangs

GRID = 1.0, 1.1, 1.25, 1.5, 2.0, 4.0
"""Slowdowns where lines meet that stand for the throughput lost, before any plan is known."""
_ONE, _FAST = 1 << 24, 16
"""Parts of a slowdown of 1, by which CP-SAT divides; no job is so many times as fast as alone."""
Seen = list[tuple[int, float]]
"""(job, slowdown) of plans: lines meet there too."""


def slower(problem: PlacementProblem, plan: PlacementPlan, seen: Seen) -> Seen:
    """Return the slowdowns of a plan that are new and matter."""
    if problem.goal != "throughput":
        return []
    found = enumerate(rates(problem, plan).slowdown.tolist())
    return [(j, x) for j, x in found if 1 < x < np.inf and not any(isclose(x, y) for y in _ends(j, seen))]


def _ends(j: int, seen: Seen) -> list[float]:
    return sorted({*GRID, *(x for i, x in seen if i == j)})


def prices(problem: PlacementProblem, unit: float, seen: Seen) -> tuple[list[float], list[float]]:
    """Return what a second of a step of each job costs with the most workers, and how many units it takes at most.

    Of a slowdown that is its weight, and no more than a unit counts; else a unit is the last slowdown of a line.
    """
    found, top = [], []
    for j, (job, best, seconds) in enumerate(zip(problem.jobs, best_rate(problem), _slowest(problem), strict=True)):
        timed = problem.goal == "throughput"
        found.append(float(best) / job.workers[-1] * (unit / _ends(j, seen)[-1] if timed else job.weight))
        top.append(max(1.0, found[j] * seconds / unit * job.workers[-1] / job.workers[0]) if timed else 1.0)
    return found, top


def _slowest(problem: PlacementProblem) -> list[float]:
    """Return the most seconds that a step of each job may take."""
    kind, fleet, levels = model_of(problem), problem.fleet, problem.fleet.topology.levels
    slowest = 1 / float(fleet.link.min()) + sum(len(problem.jobs) / level.bandwidth for level in levels)
    beside = np.maximum(problem.speeds.host, problem.speeds.gpu)
    found = []
    for j, (job, seconds) in enumerate(zip(problem.jobs, problem.compute().tolist(), strict=True)):
        compute = max((x for x in seconds if isfinite(x)), default=0.0) * (1 + float(beside[kind[j], kind].sum()))
        sent = max(2 * (len(levels) + 1), job.workers[-1]) * float(problem.speeds.gradient[kind[j]])
        found.append(compute + sent * slowest)
    return found


def most_cost(problem: PlacementProblem) -> float:
    """Return no less than any placement costs."""
    apart = float(np.concatenate(pair_seconds(problem.fleet)).max())
    total = sum(run.migration for run in problem.running)
    total += float(problem.fleet.gpus.sum()) if problem.goal == "fragmentation" else 0.0
    for job, best, seconds in zip(problem.jobs, best_rate(problem), _slowest(problem), strict=True):
        cost = {"slowdown": float(best) / job.gang * seconds, "throughput": 1.0}.get(problem.goal, 0.0)
        if problem.goal == "communication":
            cost = comb(job.worker.grants * job.workers[-1], 2) * apart
        total += max(job.weight * cost, job.value or 0.0)
    return total


def total(gangs: Gangs) -> Any:
    """Return the goal of a model, in units."""
    problem, units = gangs.problem, gangs.model.units
    goals = {"throughput": _losses, "communication": _communication, "fragmentation": _fragments}
    cost = goals[problem.goal](gangs) if problem.goal in goals else add_up(gangs.steps())
    out = zip(problem.jobs, gangs.out, strict=True)
    absent = add_up(units(job.value) * x for job, x in out if job.value is not None)
    moved = (units(run.migration) * x for run, x in zip(problem.running, gangs.moved, strict=True) if run.movable)
    return cost + absent + add_up(moved)


def _losses(gangs: Gangs) -> Any:
    """Add (T): 1 - 1 / slowdown lies above a line between any two slowdowns, and is constant at least after the last.

    Of the lines between neighbours the lowest counts: the model says which. Where a plan is not between them they meet
    in its slowdown, so that the model costs what the plan does.
    """
    model, found = gangs.model, []
    steps = gangs.steps()
    model.letter("T")
    for j, (job, t) in enumerate(zip(gangs.jobs, steps, strict=True)):
        if gangs.divides:
            found.append(_loss(gangs, j, t))
            continue
        ends, weight = _ends(j, gangs.seen), job.weight / gangs.unit
        lines = [(1 - 1 / a - 1 / b, ends[-1] / (a * b)) for a, b in pairwise(ends)] + [(1 - 1 / ends[-1], 0.0)]
        found.append(model.amount(1, "loss", j))
        chosen = [model.binary("line", j, i) for i in range(len(lines))]
        model.row(gangs.placed[j], add_up(chosen))
        for (flat, slope), line in zip(lines, chosen, strict=True):
            over, under = model.ratio(weight * slope)
            model.row(over * t + under * model.units(job.weight * flat, 1 + weight), under * found[j], line)
    return add_up(found)


def _loss(gangs: Gangs, j: int, t: Any) -> Any:
    """Return what a job loses, its weight times 1 - 1 / slowdown: the quotient is rounded down, and one more."""
    model, part = gangs.model, int(TICKS / GRID[-1]) // _ONE
    slow = model.count(ceil(gangs.top[j] * TICKS / part), "slow", j, least=_ONE // _FAST)
    model.row(t - (part - 1), part * slow)
    kept, loss = model.quotient(TICKS * _ONE, slow, _FAST * TICKS, "kept", j), model.amount(1, "loss", j)
    weight = gangs.jobs[j].weight / gangs.unit
    over, under = floor(FACTOR * min(1.0, weight)), ceil(FACTOR / max(1.0, weight))
    model.row(over * (TICKS - 1 - kept), under * loss)
    return loss


def _communication(gangs: Gangs) -> Any:
    """Add (P): the pairs of a job's GPUs that meet at a level are those inside its members less those further down."""
    model, cost = gangs.model, 0
    model.letter("P")
    inside, across = pair_seconds(gangs.problem.fleet)
    for j, job in enumerate(gangs.jobs):
        each, below = job.worker.grants, 0
        for level, member in enumerate(gangs.member if each else ()):
            within: Any = 0
            for a in sorted(set(member)):
                reached = [model.binary("pair", level, j, a, m) for m in range(gangs.most[j])]
                model.equal(add_up(reached), add_up(w for w, b in zip(gangs.w[j], member, strict=True) if a == b))
                for x, y in pairwise(reached):
                    model.row(y, x)
                for m, x in enumerate(reached):
                    more = each * each * m + comb(each, 2)
                    within += more * x
                    cost += model.units(job.weight * float(inside[a]) * more) * x if not level else 0
            if level:
                met = model.count(comb(each * gangs.most[j], 2), "across", level, j)
                model.row(within - below, met)
                cost += model.units(job.weight * float(across[level - 1])) * met
            below = within
    return cost


def _fragments(gangs: Gangs) -> Any:
    """Add (F): what is free on a node and no use to a task: all unless that fits, else that of GPUs too full for it."""
    model, fleet, cost = gangs.model, gangs.problem.fleet, Sum({})
    model.letter("F")
    measure, one = Fragmentation(gangs.problem), most(1.0, sum(gangs.most))
    for n in np.flatnonzero((fleet.gpus > 0) & np.asarray(fleet.usable)).tolist():
        used, empty = gangs.used[n], (float(fleet.cpu[n]), float(fleet.memory[n]), float(fleet.nic[n]))
        held = [[(job.worker.gpu, gangs.card[j, n][g]) for j, job in enumerate(gangs.jobs) if (j, n) in gangs.card]
                for g in range(len(used))]  # fmt: skip
        whole = add_up(int(job.worker.gpu) * w[n] for job, w in zip(gangs.jobs, gangs.w, strict=True))
        idle = int(fleet.gpus[n]) - whole - add_up(used)
        for q, (task, share) in enumerate(measure.kinds):
            rest, top = model.amount(1, "rest", n, q), 1 + share / gangs.unit
            cost += rest
            each = model.units(share, top)
            parts = (add_up(model.units(-share * s) * y for s, y in own) for own in held)
            free = [each * x + y for x, y in zip(used, parts, strict=True)]
            if not measure.fits(n, task, [1.0] * int(fleet.gpus[n]), empty):
                model.row(each * idle + add_up(free), rest)
                continue
            fits, lacks = model.binary("fits", n, q), model.binary("lacks", n, q)
            model.equal(fits + lacks, 1)
            model.row(each * idle + add_up(free), rest, lacks)
            for field in ("cpu", "memory", "nic"):
                if need := getattr(task.demand, field):
                    load = gangs.load(field, n) + model.share(need / gangs.limit(field, n))
                    model.row(load, model.share(1.0), fits)
            enough = [model.binary("enough", n, g, q) for g in range(len(used))]
            left = [model.amount(1, "left", n, g, q) for g in range(len(used))]
            for g, x in enumerate(enough):
                model.row(x, used[g])
                load = add_up(model.share(s / one) * y for s, y in held[g])
                model.row(load + model.share(min(1.0, task.demand.gpu) / one), model.share(1.0), x)
                model.row(free[g], left[g] + each * x)
            model.row(task.demand.grants, idle + add_up(enough), fits)
            model.row(add_up(left), rest)
    return cost
