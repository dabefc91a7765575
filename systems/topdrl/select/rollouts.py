"""The teacher: it knows what jobs are like, looks ahead, and says what each candidate of a decision comes to."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from typing import NamedTuple

import numpy as np

from gangplan.learned.policy.perceptron import Weights, forward
from gangplan.simulator.gangs.allocate import CLOSEST
from gangplan.simulator.gangs.arrays import (
    ARRIVED,
    NOW,
    RUNNING,
    WAITING,
    Cluster,
    Jobs,
    State,
    begin,
    cluster_of,
    jobs_of,
)
from gangplan.simulator.gangs.listing import Listing, decode, restore, sort_in
from gangplan.simulator.gangs.mixes import MIXES, told_means
from gangplan.simulator.gangs.step import begin_job, pass_time, total_jct
from gangplan.solvers.compiled.kernel import Floats, Ints, Singles2, inner, kernel
from gangplan.solvers.compiled.routines import below, push, sow, uniform

from ..suites import TRAINING, Suite, suite
from .candidates import WAIT, Scratch, remaining, scratch_of
from .episodes import HEAD, PATIENCE, RULES, key_of, take_candidate
from .features import CANDIDATE, CONTEXT, MEAN, WIDTH, write_rows
from .recipe import SelectSettings


class Base(NamedTuple):
    """The rule that goes on, and how far.

    Attributes:
        rule: one of `gangplan.systems.topdrl.select.episodes.RULES`, float64 (4,).
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
        pool: the first `known` of these are what arrivals are drawn from.
        known: at least 1.
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
            jct = total_jct(ours, then.finish)
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


KINDS = ("small", "expensive", "mixed", "loaded", "uncertain", "heavy")
"""Of episodes, in turn; ``heavy`` is like traces: lengths lognormal, gangs of powers of two, each its own intensity."""
POOL = 2000
"""Jobs that futures are drawn from."""


def episode(number: int, jobs: int = 150) -> tuple[Jobs, Jobs]:
    """Return the jobs of a training episode, and others like them to draw futures from."""
    kind, seed = KINDS[number % len(KINDS)], TRAINING + 2 * number
    made = suite("small" if kind == "heavy" else kind)
    rng = np.random.default_rng(seed)
    pace = float(rng.uniform(0.75, 1.15))
    spread, most = float(rng.uniform(0.8, 1.8)), int(rng.integers(3, 6))
    found = []
    for own, n in ((seed, jobs), (seed + 1, POOL)):
        if kind == "heavy":
            found.append(_heavy(own, n, made, pace, spread, most))
            continue
        mix = MIXES[kind]
        mix = replace(mix, jobs=n, arrival=min(mix.arrival * pace, 1.0))
        work, told = told_means(mix)(own) if kind == "uncertain" else (mix.draw(own), None)
        found.append(jobs_of(work, made.proximity, told))
    return found[0], found[1]


def _heavy(seed: int, n: int, made: Suite, pace: float, spread: float, most: int) -> Jobs:
    """Return jobs of a load of about `pace`."""
    rng = np.random.default_rng(seed)
    gpus = 2 ** np.minimum(rng.geometric(0.45, n) - 1, most)
    work = rng.lognormal(0.0, spread, n) * 100
    intensity = rng.choice([0.2, 0.5, 1.0, 2.0, 4.0], n)
    mean = (
        100 * np.exp(spread**2 / 2) * float((2 ** np.minimum(np.arange(12), most) * 0.45 * 0.55 ** np.arange(12)).sum())
    )
    submit = np.cumsum(rng.exponential(1.25 * mean / (pace * int(made.fleet.gpus.sum())), n))
    return Jobs(submit, work, work, gpus.astype(np.int64), intensity, np.append(0, np.cumsum(gpus)).astype(np.int64))


TRIES, ROOM, EPISODES = 24, 20_000, 10_000
"""Candidates that are labelled at most; rows of an episode at most; episodes of a seed."""
KEPT, STUDENTS = 0.8, 0.15
"""Shares: of the decisions, those that are labelled; of these, those that the student takes and not the teacher."""


class Labels(NamedTuple):
    """Decisions and what their candidates come to; d decisions, A rows.

    Attributes:
        rows: float32 (A, WIDTH).
        first: the rows of each decision begin there, int64 (d + 1,).
        regret: how much more the JCTs sum up to than by the best one, in mean lengths of a job, float64 (A,).
    """

    rows: Singles2
    first: Ints
    regret: Floats


def labels(settings: SelectSettings, seed: int) -> Labels:
    """Return labelled decisions of training episodes, by rollouts."""
    made = suite("small")
    cluster = cluster_of(made.fleet, made.proximity)
    scratch, student = scratch_of(cluster, WIDTH), least_work()
    base = Base(RULES[0], np.array([TRIES, settings.futures, settings.ahead]))
    room = Labels(np.zeros((ROOM, WIDTH), np.float32), np.zeros(ROOM, np.int64), np.zeros(ROOM))
    found: list[Labels] = []
    count, number = 0, EPISODES * seed
    while count < settings.labels:
        jobs, pool = episode(number)
        d = label(jobs, cluster, begin(jobs, cluster), scratch, student, pool, base, number, room)
        rows = int(room.first[d])
        found.append(Labels(room.rows[:rows].copy(), room.first[: d + 1].copy(), room.regret[:rows].copy()))
        count, number = count + d, number + 1
    length = np.concatenate([np.diff(x.first) for x in found])
    first = np.append(0, np.cumsum(length))
    return Labels(np.concatenate([x.rows for x in found]), first, np.concatenate([x.regret for x in found]))


def least_work() -> Weights:
    """Return a network that prefers the candidate with the least work, but to wait as long as anything runs.

    So the teacher, which tries the best candidates, tries waiting first, and what the network decides itself makes full
    queues.
    """
    first = np.zeros((WIDTH, 2), np.float32)
    names = CONTEXT + CANDIDATE
    first[names.index("over_least")] = -1, 1
    first[names.index("wait")] = 0.3, -0.3
    none = np.zeros(2, np.float32)
    return Weights(first, none.copy(), np.eye(2, dtype=np.float32), none.copy(), np.array([1, -1], np.float32))


@kernel
def label(
    jobs: Jobs, cluster: Cluster, state: State, scratch: Scratch, student: Weights, pool: Jobs,
    base: Base, seed: int, out: Labels,
) -> int:  # fmt: skip
    """Play an episode, label a share `KEPT` of its decisions, and return how many there are.

    Args:
        student: the candidates with its best scores are labelled; it takes the decisions that are not labelled.
        pool: jobs like those to come.
        base: who goes on, in how many futures.
        out: is written; there is room for all.
    """
    s = scratch
    sow(seed)
    tried, more = np.zeros(base.of[TRIED], np.int64), np.zeros(base.of[TRIED])
    d, go_on = 0, True
    while go_on:
        k = write_rows(jobs, cluster, state, s)
        if k == 0:
            go_on = pass_time(jobs, cluster, state)
            continue
        forward(s.row, k, student, s.score)
        c = best_scores(s.score, k, tried)
        best = 0
        room = d + 1 < len(out.first) and out.first[d] + c <= len(out.rows)
        if c > 1 and room and uniform() < KEPT:
            weigh(jobs, cluster, state, pool, len(pool.submit), s, tried[:c], base, more[:c])
            top = int(np.argmin(more[:c]))
            for i in range(c):
                at = out.first[d] + i
                out.rows[at] = s.row[tried[i]]
                out.regret[at] = (more[i] - more[top]) / s.stats[MEAN]
            out.first[d + 1] = out.first[d] + c
            d += 1
            if uniform() >= STUDENTS:
                best = top
        go_on = take_candidate(jobs, cluster, state, s, tried[best])
    return d
