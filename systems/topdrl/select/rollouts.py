"""Rollouts: what each candidate comes to in sampled futures, if a plain rule goes on from there.

A future has the jobs that wait and run, with the lengths expected, and some arrivals to come: lengths, GPUs and gaps
are drawn with replacement. All candidates get the same futures.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Floats, Ints, inner
from gangplan.solvers.compiled.routines import below, push

from ..allocate import CLOSEST
from ..arrays import ARRIVED, NOW, RUNNING, WAITING, Cluster, Jobs, State
from ..decode import Listing, decode, restore, sort_in
from ..step import begin_job, pass_time
from .candidates import WAIT, Scratch, remaining
from .episodes import HEAD, PATIENCE, key_of


class Base(NamedTuple):
    """The rule that goes on, and how far.

    Attributes:
        rule: one of `gangplan.systems.topdrl.select.guard.RULES`, float64 (4,).
        of: candidates tried, futures, arrivals in each, int64 (3,).
    """

    rule: Floats
    of: Ints


TRIED, FUTURES, AHEAD = range(3)


@inner
def listed(jobs: Jobs, ideal: Floats, rule: Floats) -> Listing:
    """Return a rule as a list of these jobs; `ideal` is that of `Scratch`."""
    n = len(jobs.submit)
    key, most = np.empty(n), np.empty(n)
    for job in range(n):
        intensity = jobs.intensity[job]
        key[job] = key_of(jobs, job, ideal, rule)
        slower = (1 + intensity * ideal[jobs.gpus[job]]) * exp(rule[PATIENCE])
        most[job] = (slower - 1) / intensity + 1e-9 if intensity > 0 else np.inf
    return Listing(key, np.full(n, CLOSEST), most, np.full(n, int(rule[HEAD])))


@inner
def imagine(jobs: Jobs, cluster: Cluster, state: State, pool: Jobs, known: int, ahead: int) -> tuple[Jobs, State]:
    """Return the jobs that wait and run, with `ahead` more to come, and the state with these alone.

    Args:
        jobs, cluster, state: as they are.
        pool: the first `known` of these are what arrivals are drawn from.
        known: at least 1.
        ahead: how many.
    """
    live = state.count[WAITING] + state.count[RUNNING]
    n, arrived = live + ahead, state.count[ARRIVED]
    old, gpus = np.empty(live, np.int64), np.empty(n, np.int64)
    submit, work, intensity, first = np.empty(n), np.empty(n), np.empty(n), np.zeros(n + 1, np.int64)
    at = 0
    for job in range(arrived):
        if state.finish[job] > state.clock[NOW]:  # of a job that waits it is infinite
            old[at], submit[at], work[at] = job, jobs.submit[job], jobs.expected[job]
            gpus[at], intensity[at] = jobs.gpus[job], jobs.intensity[job]
            at += 1
    time = state.clock[NOW]
    for at in range(live, n):
        job, gap = below(known), below(max(known - 1, 1)) + 1
        time += pool.submit[gap] - pool.submit[gap - 1] if known > 1 else max(pool.expected[0], 1e-9)
        submit[at], work[at], gpus[at], intensity[at] = time, pool.expected[job], pool.gpus[job], pool.intensity[job]
    for at in range(n):
        first[at + 1] = first[at] + gpus[at]
    ours = Jobs(submit, work, work, gpus, intensity, first)
    count, queue, running = np.zeros(3, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    start, finish, urgency, cost = np.full(n, np.inf), np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n)
    held, holder = np.zeros(first[n], np.int64), np.full(len(state.holder), -1, np.int64)
    count[ARRIVED] = live
    for at in range(live):
        job = old[at]
        if state.start[job] == np.inf:
            queue[count[WAITING]] = at
            count[WAITING] += 1
            continue
        start[at], cost[at] = state.start[job], state.cost[job]
        finish[at] = state.clock[NOW] + remaining(jobs, state, job)
        urgency[at] = -finish[at]
        for row in range(gpus[at]):
            gpu = state.held[jobs.first[job] + row]
            held[first[at] + row], holder[gpu] = gpu, at
        count[RUNNING] = push(running, count[RUNNING], at, urgency, first)
    clock = state.clock.copy()
    then = State(clock, count, queue, running, state.free.copy(), holder, held, start, finish, urgency, cost)
    return ours, then


@inner
def _twin(x: State) -> State:
    return State(
        x.clock.copy(), x.count.copy(), x.queue.copy(), x.running.copy(), x.free.copy(), x.holder.copy(),
        x.held.copy(), x.start.copy(), x.finish.copy(), x.urgency.copy(), x.cost.copy(),
    )  # fmt: skip


@inner
def weigh(
    jobs: Jobs, cluster: Cluster, state: State, pool: Jobs, known: int, s: Scratch, tried: Ints, base: Base,
    more: Floats,
) -> None:  # fmt: skip
    """Write by how much the sum of the JCTs is more with each candidate tried than with the first of them.

    Args:
        jobs, cluster, state, pool, known: see `imagine`.
        s: has the candidates.
        tried: which of them, int64 (c,).
        base: who goes on.
        more: the mean over the futures, seconds; is written, float64 (c,).
    """
    more[:] = 0.0
    futures = base.of[FUTURES]
    for _ in range(futures):
        ours, root = imagine(jobs, cluster, state, pool, known, base.of[AHEAD])
        then = _twin(root)
        order, take = listed(ours, s.ideal, base.rule), np.zeros_like(state.free)
        first = 0.0
        for c in range(len(tried)):
            i = tried[c]
            restore(then, root)
            if s.place[i] == WAIT:  # for an end: arrivals alone make no better place
                while then.count[RUNNING] == root.count[RUNNING] and pass_time(ours, cluster, then):
                    pass
            else:
                begin_job(ours, cluster, then, s.place[i], s.take[i])
            sort_in(then, order.key, 0)
            decode(ours, cluster, then, order, take, np.inf)
            jct = 0.0
            for job in range(len(ours.submit)):
                jct += then.finish[job] - ours.submit[job]
            if c == 0:
                first = jct
            more[c] += (jct - first) / futures


@inner
def best_scores(score: Floats, k: int, tried: Ints) -> int:
    """Write the candidates with the best scores, the best first, and return how many."""
    found = 0
    for i in range(k):
        place = found
        while place > 0 and score[tried[place - 1]] < score[i]:
            place -= 1
        if place == len(tried):
            continue
        found = min(found + 1, len(tried))
        for at in range(found - 1, place, -1):
            tried[at] = tried[at - 1]
        tried[place] = i
    return found
