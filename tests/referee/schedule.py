"""The goal by docs/schedule.md in exact arithmetic, and the least of any list schedule of a tiny problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from math import isqrt, ulp
from typing import Any

import numpy as np

from gangplan.instances import RampTopology
from gangplan.instances.schedule import GOALS, MoldableJob, NodePool, Pool, ScheduleProblem

SHARE, PLACES = Fraction(1, 10**9), 4
Held = tuple[Fraction, Fraction, tuple[tuple[int, int], ...]]


def slack(seconds: Fraction, at: float) -> Fraction:
    """Return what a time may be off by, as documented."""
    return SHARE * seconds + PLACES * Fraction(ulp(at))


def optimum(problem: ScheduleProblem, tolerant: bool) -> Fraction | None:
    """Return the least goal of any list schedule, `None` if there is none; deadlines with or without their slack."""
    jobs, best = problem.jobs, None
    menus = [[*range(len(job.degrees)), *([] if price(problem, j) is None else [-1])] for j, job in enumerate(jobs)]
    for chosen in product(*menus):
        runs = [j for j, k in enumerate(chosen) if k >= 0]
        for order in permutations(runs):
            for finish in schedules(problem, order, chosen, tolerant):
                value = worth(problem, finish, chosen, tolerant)
                best = value if best is None else min(best, value)
    return best


def schedules(
    problem: ScheduleProblem,
    order: tuple[int, ...],
    chosen: tuple[int, ...],
    tolerant: bool,
    held: tuple[Held, ...] = (),
) -> Iterator[dict[int, Fraction]]:
    """Yield the ends of jobs placed one after the other, each as early as it fits, on all places."""
    if len(held) == len(order):
        yield {j: end for j, (_, end, _) in zip(order, held, strict=True)}
        return
    j = order[len(held)]
    job = problem.jobs[j]
    seconds, release = Fraction(job.durations[chosen[j]]), Fraction(job.release)
    for place in places(problem, job.degrees[chosen[j]]):
        start = next(
            t
            for t in sorted({release, *(end for _, end, _ in held if end > release)})
            if fits(problem, held, place, t, t + seconds)
        )
        if job.deadline is None or start + seconds <= due(seconds, job.deadline, tolerant):
            yield from schedules(problem, order, chosen, tolerant, (*held, (start, start + seconds, place)))


def due(seconds: Fraction, time: float, tolerant: bool) -> Fraction:
    """Return until when a job of so many seconds may end that has to by `time`."""
    return Fraction(time) + (slack(seconds, time) if tolerant else 0)


def places(problem: ScheduleProblem, degree: int) -> list[tuple[tuple[int, int], ...]]:
    """Return every way to hold so many GPUs; alike nodes are told apart."""
    if isinstance(problem.capacity, Pool):
        return [((0, degree),)] if degree <= problem.capacity.gpus else []
    if isinstance(problem.capacity, RampTopology):
        return [tuple((v, 1) for v in block) for block in blocks(problem.capacity, degree)]
    nodes, (full, rest) = range(problem.capacity.nodes), divmod(degree, problem.capacity.gpus)
    found = []
    for whole in combinations(nodes, full):
        held = tuple((v, problem.capacity.gpus) for v in whole)
        found += [(*held, (v, rest)) for v in nodes if v not in whole] if rest else [held]
    return found


def blocks(mesh: RampTopology, k: int) -> list[tuple[int, ...]]:
    """Return the sets of k servers that PAC-ML knows: boxes of its shapes, then diagonals; servers vary fastest."""
    groups, racks, servers = mesh.communication_groups, mesh.racks, mesh.servers
    shapes = set()
    for b in range(1, servers + 1):
        if k % b == 0:
            a = k // b
            shapes |= {(a, 1, b), (a, b, 1)} | ({(isqrt(a), isqrt(a), b)} if isqrt(a) ** 2 == a else set())
    every = list(product(range(groups), range(racks), range(servers)))
    found = []
    for shape in shapes:
        found += [[tuple(map(sum, zip(x, y, strict=True))) for y in product(*map(range, shape))] for x in every]
    found += [[(g + i, r + i, s) for i in range(k)] for g, r, s in every]
    inside = (box for box in found if all(x in every for x in box))
    return sorted({tuple(sorted((g * racks + r) * servers + s for g, r, s in box)) for box in inside})


def fits(problem: ScheduleProblem, held: tuple[Held, ...], place: Any, start: Fraction, end: Fraction) -> bool:
    """Return whether no machine has more in use than it has, at any start in between."""
    room = 1 if isinstance(problem.capacity, RampTopology) else problem.capacity.gpus
    for v, amount in place:
        here = [(s, e, n) for s, e, where in held for w, n in where if w == v and s < end and e > start]
        if end > start and any(
            amount + sum(n for s, e, n in here if s <= t < e) > room
            for t in (start, *(s for s, _, _ in here if s > start))
        ):
            return False
    return True


def price(problem: ScheduleProblem, j: int) -> Fraction | None:
    """Return what leaving out a job costs, `None` if it must run."""
    job = problem.jobs[j]
    if problem.goal == "throughput":
        return Fraction(job.weight)
    value = 1.0 if problem.goal == "blocked" and job.value is None else job.value
    return None if value is None else Fraction(value)


def worth(problem: ScheduleProblem, finish: dict[int, Fraction], chosen: Any, tolerant: bool) -> Fraction:
    """Return the goal, given the ends of jobs and the places of their degrees on the menus."""
    jobs = problem.jobs
    lost = sum((price(problem, j) or Fraction(0) for j in range(len(jobs)) if j not in finish), Fraction(0))
    if problem.goal == "makespan":
        return max(finish.values(), default=Fraction(0)) + lost
    if problem.goal == "mean_jct":
        return (sum(end - Fraction(jobs[j].release) for j, end in finish.items()) + lost) / len(jobs)
    if problem.goal == "weighted_completion":
        return sum((Fraction(jobs[j].weight) * end for j, end in finish.items()), lost)
    if problem.goal == "throughput":
        assert problem.horizon is not None
        took = {j: Fraction(jobs[j].durations[chosen[j]]) for j in finish}
        late = [j for j, end in finish.items() if end > due(took[j], problem.horizon, tolerant)]
        return lost + sum((Fraction(jobs[j].weight) for j in late), Fraction(0))
    return lost


def value(problem: ScheduleProblem, plan: Any) -> Fraction | None:
    """Return the goal of a plan, `None` if it breaks a rule by more than rounding is allowed."""
    finish, held = {}, list[Held]()
    for j, job in enumerate(problem.jobs):
        k, start = int(plan.degree[j]), Fraction(float(plan.start[j]))
        rows = tuple(sorted((int(v), int(n)) for i, v, n in zip(plan.job, plan.node, plan.gpus, strict=True) if i == j))
        if k < 0:
            if price(problem, j) is None or rows:
                return None
            continue
        if k >= len(job.degrees):
            return None
        place = ((0, job.degrees[k]),) if isinstance(problem.capacity, Pool) and not rows else rows
        if place not in [tuple(sorted(x)) for x in places(problem, job.degrees[k])]:
            return None
        seconds = Fraction(job.durations[k])
        finish[j] = start + seconds
        if start < Fraction(job.release) - slack(seconds, job.release):
            return None
        if job.deadline is not None and finish[j] > due(seconds, job.deadline, True):
            return None
        held.append((start, finish[j] - slack(seconds, float(finish[j])), place))
    apart = all(fits(problem, tuple(held[:i] + held[i + 1 :]), x[2], x[0], x[1]) for i, x in enumerate(held))
    return worth(problem, finish, plan.degree, True) if apart else None


def zero(problem: ScheduleProblem) -> Fraction:
    """Return what any plan costs at least because of where the clock starts."""
    first = min(Fraction(job.release) for job in problem.jobs)
    prices = [price(problem, j) for j in range(len(problem.jobs))]
    if problem.goal == "makespan":
        return Fraction(0) if None not in prices else first
    if problem.goal != "weighted_completion":
        return Fraction(0)
    waits = (Fraction(job.weight) * first for job in problem.jobs)
    return sum((w if p is None else min(w, p) for w, p in zip(waits, prices, strict=True)), Fraction(0))


def noise(problem: ScheduleProblem) -> Fraction:
    """Return what the rounding of times on the clock may be worth."""
    last = max(job.release for job in problem.jobs) + sum(max(job.durations) for job in problem.jobs)
    gain = sum(Fraction(job.weight) for job in problem.jobs) if problem.goal == "weighted_completion" else Fraction(1)
    timed = problem.goal in ("weighted_completion", "mean_jct", "makespan")
    values = sum((Fraction(job.value or 0) for job in problem.jobs), Fraction(0)) + zero(problem)
    return 8 * (Fraction(ulp(last)) * gain * timed + Fraction(ulp(float(values))))


def same(problem: ScheduleProblem, a: Any, b: Any) -> bool:
    """Return whether two goals agree to a billionth of what they are above `zero`, and rounding."""
    return abs(Fraction(a) - Fraction(b)) <= SHARE * abs(Fraction(b) - zero(problem)) + noise(problem)


def below(problem: ScheduleProblem, a: Any, b: Any, share: float) -> bool:
    """Return whether one goal is below another by more than a share of what that is above `zero`, and rounding."""
    return Fraction(a) < Fraction(b) - Fraction(share) * abs(Fraction(b) - zero(problem)) - noise(problem)


def draw_any(seed: int) -> ScheduleProblem:
    """Make a problem of `draw`, one in four of them on RAMP."""
    problem, rng = draw(seed), np.random.default_rng([seed, 17])
    if rng.random() < 0.75:
        return problem
    shape = [(2, 2, 1), (2, 1, 2), (3, 1, 2), (1, 3, 2), (3, 3, 1)][int(rng.integers(5))]
    return replace(problem, jobs=problem.jobs[:3], capacity=RampTopology(*shape))


def draw(seed: int) -> ScheduleProblem:
    """Make a tiny problem at a Unix time or at 0, in units from a nanosecond to thirty years, with tight deadlines."""
    rng = np.random.default_rng(seed)
    goal = GOALS[seed % len(GOALS)]
    zero = float(rng.choice([0.0, 1.7e9, 1.7e9 + 0.1]))
    unit = 10.0 ** float(rng.integers(-2 if zero else -9, 10))
    capacity = Pool(int(rng.integers(1, 5))) if rng.random() < 0.6 else NodePool(2, int(rng.integers(1, 3)))
    price = 10.0 ** float(rng.integers(-9, 10))
    jobs = []
    for i in range(int(rng.integers(1, 5 if isinstance(capacity, Pool) else 4))):
        degrees = sorted({int(d) for d in rng.integers(1, 4, int(rng.integers(1, 3)))})
        seconds = [unit * float(rng.choice([1.0, 2.0, 3.0, 0.1, 1 / 3, 2.5])) for _ in degrees]
        release = zero + unit * float(rng.choice([0.0, 0.0, 1.0, 0.3, 2.0]))
        deadline = value = None
        if rng.random() < 0.3:
            deadline = release + max(seconds) * float(rng.choice([1.0, 1.0, 2.0, 1.5]))
        if rng.random() < 0.4:
            value = price * float(rng.integers(1, 5)) + (0.0 if rng.random() < 0.5 else zero * price)
        weight = float(rng.choice([1.0, 2.0, 0.7, 0.0])) * float(rng.choice([1.0, 1.0, price]))
        jobs.append(MoldableJob(f"j{i}", tuple(degrees), tuple(seconds), release, weight, deadline, value))
    horizon = zero + unit * float(rng.choice([1.0, 3.0, 5.5])) if goal == "throughput" else None
    return ScheduleProblem(tuple(jobs), capacity, goal, horizon)
