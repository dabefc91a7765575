"""Rolling horizon for long traces: a window of jobs at a time, of which the first third to start is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gangplan.instances.schedule import MoldableJob, ScheduleProblem

from ..run import Run
from .decode import decode
from .grain import suits_prices
from .local_search import list_of, local_search
from .prepare import Prepared, ShiftedRun, prepare
from .starts import starts

_WINDOW, _KEPT = 60, 20
"""Jobs looked at together, and how many of them are then fixed."""
_SHARE = 0.9
"""Of the time, for all windows together."""


def rolling(run: Run, p: Prepared) -> None:
    """Schedule jobs window by window, in the order of their release, beside those that run already."""
    problem = run.problem
    pending = np.argsort(p.release, kind="stable").tolist()
    degree, start = np.full(p.n, -1), np.zeros(p.n)
    running: list[int] = []
    now = 0.0
    limit = _SHARE * run.remaining()
    while pending and not run.stopped:
        batch = pending[:_WINDOW]
        running = [j for j in running if start[j] + problem.jobs[j].durations[degree[j]] > now]
        fixed = [_standing(problem, j, int(degree[j]), float(start[j])) for j in running]
        free = [replace(problem.jobs[j], release=max(problem.jobs[j].release, now)) for j in batch]
        last = len(batch) == len(pending)
        part = _solve(
            run, replace(problem, jobs=(*fixed, *free)), limit * (1.0 if last else _KEPT / _WINDOW) * len(batch) / p.n
        )
        if part is None:
            return
        chosen, begin = part[0][len(fixed) :], part[1][len(fixed) :]
        order = sorted(range(len(batch)), key=lambda i: (chosen[i] < 0, begin[i]))
        for i in order if last else order[:_KEPT]:
            j = batch[i]
            pending.remove(j)
            degree[j], start[j] = chosen[i], begin[i]
            if chosen[i] >= 0:
                running.append(j)
                now = max(now, float(begin[i]))
    if not pending and not run.stopped:
        value, option, at, rows = decode(p, *list_of(p, degree, start))
        if np.isfinite(value):
            run.offer(p.plan(option, at, rows), "rolling")


def _standing(problem: ScheduleProblem, j: int, degree: int, start: float) -> MoldableJob:
    """Return job j as one that can only run as it does."""
    job = problem.jobs[j]
    menu, seconds = (job.degrees[degree],), (job.durations[degree],)
    dear = 1.0 + sum((problem.price(i) or 0.0) for i in range(len(problem.jobs)))
    optional = problem.goal in ("blocked", "throughput")
    due = start + seconds[0]
    return MoldableJob(
        job.name, menu, seconds, start, dear if optional else job.weight, due, dear if optional else None
    )


def _solve(run: Run, problem: ScheduleProblem, seconds: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (degree, start) of a good schedule of a window."""
    child = Run(problem, time_limit=min(seconds, run.remaining()), seed=run.seed, workers=run.workers)
    p = prepare(problem)
    seen = ShiftedRun(child, p)
    if suits_prices(p) and p.slope.any():
        with child.share(0.7):
            starts(seen, p)
    if not child.stopped:
        local_search(seen, p)
    if child.plan is None and child.stop_reason == "time limit":
        run.no_time("rolling given up: no time for a window")
    elif child.plan is None:
        run.note("rolling: a window has no schedule beside what runs already")
    return None if child.plan is None else (child.plan.degree, child.plan.start)
