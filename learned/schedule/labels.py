"""What the exact solver knows of an instance: its best schedule, and many others that are as good or nearly so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from gangplan.instances.arrays import FloatArray
from gangplan.instances.schedule import SchedulePlan
from gangplan.solvers import Run
from gangplan.solvers.method import suite_of
from gangplan.solvers.schedule.decode import data_of, room_of
from gangplan.solvers.schedule.local_search import list_of
from gangplan.solvers.schedule.prepare import Ints
from gangplan.solvers.schedule.profile import clear, find, occupy

from .scores import Instance

_TRIES, _FREE, _PLACES = 96, 0.15, 2.0
"""Schedules drawn around the best: share of the jobs whose degree is open again, places by which jobs move."""
_DEAR = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A schedule to imitate.

    Attributes:
        regret: what it costs more than the best, as a share of that.
        start: float64 (n,), inf of a job left out.
        option: int64 (n,), -1 of a job left out.
        finish: float64 (o,), when each option would have ended beside the jobs that start before.
    """

    regret: float
    start: FloatArray
    option: Ints
    finish: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """An instance and good schedules for it, the best first.

    Attributes:
        instance: made ready.
        objective: of the best.
        proved: whether it is the optimum.
        shown: the schedules.
    """

    instance: Instance
    objective: float
    proved: bool
    shown: tuple[Shown, ...]


def solve(problem: Any, seconds: float, methods: tuple[str, ...], seed: int = 0) -> Run:
    """Run some methods of the suite one after the other, each for at most 60% of the time left but the last."""
    run = Run(problem, time_limit=seconds, seed=seed)
    suite = suite_of(problem)
    prepared = suite.prepare(run)
    for i, name in enumerate(methods):
        if not run.stopped and suite.methods[name].suits(prepared):
            with run.share(1.0 if i == len(methods) - 1 else 0.6):
                suite.methods[name].run(run, prepared)
    return run


def label(
    instance: Instance, *, seconds: float, near: float = 0.01, most: int = 8, exact: bool = True, seed: int = 0
) -> Labelled | None:
    """Solve an instance, then look for other schedules within `near` of the best; None if there is no schedule.

    Args:
        instance: to label.
        seconds: for the solver.
        near: share of the best by which others may be worse.
        most: schedules to keep.
        exact: by priced starts and CP-SAT, which prove the optimum of small ones; else by local search.
        seed: of local search, and of the schedules that are drawn.
    """
    run = solve(instance.p.problem, seconds, ("starts", "cpsat") if exact else ("local_search",), seed)
    if run.plan is None:
        return None
    best = _shown(instance, run.plan, float(run.objective or 0.0), float(run.objective or 0.0))
    if best is None:
        return None
    proved = run.objective is not None and run.bound is not None and run.objective <= run.bound * (1 + 1e-6)
    found = [best, *_others(instance, best, float(run.objective or 0.0), near, np.random.default_rng(seed))]
    found.sort(key=lambda x: x.regret)
    return Labelled(instance, float(run.objective or 0.0), proved, tuple(found[:most]))


def _others(instance: Instance, best: Shown, objective: float, near: float, rng: np.random.Generator) -> list[Shown]:
    p, decoder, found = instance.p, instance.decoder, list[Shown]()
    rank = np.argsort(np.argsort(best.start, kind="stable"), kind="stable").astype(float)
    mine = np.arange(len(p.owner)) == best.option[p.owner]
    fixed, gone, seen = np.where(mine, 0.0, _DEAR), best.option < 0, {(best.start.tobytes(), best.option.tobytes())}
    for _ in range(_TRIES):
        free = rng.random(p.n) < _FREE
        penalty = np.where(free[p.owner], instance.base.penalty, fixed)
        out = np.where(free, 0.0, np.where(gone, -_DEAR, _DEAR))
        keys = rank + _PLACES * rng.standard_normal(p.n) * (rng.random(p.n) < 0.3)
        cost = decoder.decode(keys, penalty, out)
        start = np.where(decoder.option < 0, np.inf, decoder.start)
        key = start.tobytes(), decoder.option.tobytes()
        if cost <= objective * (1 + near) and key not in seen:
            seen.add(key)
            shown = _shown(instance, decoder.plan(), cost, objective)
            if shown is not None:
                found.append(shown)
    return found


def _shown(instance: Instance, plan: SchedulePlan, cost: float, best: float) -> Shown | None:
    """Follow a plan in the order of its starts."""
    p = instance.p
    order, wish = list_of(p, plan.degree, plan.start)
    if (wish < -1).any():
        return None  # at a degree that is no faster than a smaller one
    start, finish = np.zeros(p.n), np.zeros(len(p.gpus))
    _follow(order, wish, data_of(p), room_of(p), start, finish)
    return Shown(max(cost / best - 1, 0.0) if best > 0 else 0.0, np.where(wish < 0, np.inf, start), wish, finish)


@njit(cache=True)
def _follow(order: Any, wish: Any, data: Any, room: Any, start: Any, finish: Any) -> None:
    """Place jobs at given options as early as they fit; write when each option would have ended."""
    first, gpus, seconds, release, deadline, slope, price, makespan, kind, per, size, block_first, server = data
    times, free, count, chosen, spot = room
    clear(free, count, per)
    for j in order:
        nodes = 0
        for o in range(first[j], first[j + 1]):
            t, k = find(kind, per, times, free, count, size, block_first, server, release[j], gpus[o], seconds[o], spot)
            finish[o] = t + seconds[o]
            if o == wish[j]:
                start[j], nodes = t, k
                chosen[:k] = spot[:k]
        if wish[j] >= 0:
            left = gpus[wish[j]]
            for i in range(nodes):
                occupy(times, free, count, chosen[i], start[j], start[j] + seconds[wish[j]], min(left, per))
                left -= per
