"""Two readable formulas: who goes first, and who waits for closer GPUs; a whole run by them in compiled code."""

from __future__ import annotations

from math import exp, log, log1p

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import Floats, Ints, by_reference, kernel, lean

from .allocate import CLOSEST, choose
from .arrays import ARRIVED, NOW, RUNNING, WAITING, Cluster, Jobs, State
from .listing import sort_in
from .step import begin_job, communication, least_cost, pass_time, total

TERMS = (
    *("log GPUs", "log slowdown", "log(1 + waited/seconds)", "log GPUs * crowd"),
    *("1", "log(seconds/typical)", "log GPUs", "log running", "crowd"),
    "passes",
)
"""Weights of a formula. A job's key is log seconds and the first four; seconds are those expected, slowdown is the
least, on an empty cluster, and crowd log(1 + waiting/running). It waits, as long as anything runs, where the log of how
much slower it would be than at best, slowdown/least - 1, is above the next five; typical are the seconds of the jobs
that run, in the geometric mean. Behind a job that fits on no GPUs that are idle or waits only those start whose keys
are at most so much more."""
GPUS, SLOWDOWN, WAITED, CROWDED, ONE, LENGTH, WIDTH, RUNS, CROWD, PASSES = range(len(TERMS))
PATIENT = np.array([0.777, 0.639, 0.0, 0.0, log(exp(0.091) - 1), 0.0, 0.0, 0.0, 0.0, np.inf])
"""The rule `Patient`."""


@lean
def _key(jobs: Jobs, job: int, now: float, crowd: float, ideal: Floats, w: Floats) -> float:
    seconds, gpus = max(jobs.expected[job], 1e-9), log(jobs.gpus[job])
    key = log(seconds) + (w[GPUS] + w[CROWDED] * crowd) * gpus
    key += w[SLOWDOWN] * log(1 + jobs.intensity[job] * ideal[jobs.gpus[job]])
    if w[WAITED] != 0:
        key += w[WAITED] * log1p((now - jobs.submit[job]) / seconds)
    return float(key)


@lean
def _waits(jobs: Jobs, job: int, cost: float, typical: float, runs: float, crowd: float, ideal: Floats, w: Floats) -> bool:
    """Return whether a job waits for closer GPUs."""
    best = 1 + jobs.intensity[job] * ideal[jobs.gpus[job]]
    over = (1 + jobs.intensity[job] * cost) / best - 1
    if over <= 1e-9:
        return False
    bound = w[ONE] + w[WIDTH] * log(jobs.gpus[job]) + w[RUNS] * runs + w[CROWD] * crowd
    if w[LENGTH] != 0:
        bound += w[LENGTH] * (log(max(jobs.expected[job], 1e-9)) - typical)
    return bool(log(over) > bound + 1e-9)


@lean
def _typical(jobs: Jobs, state: State) -> float:
    found = 0.0
    for i in range(state.count[RUNNING]):
        found += log(max(jobs.expected[state.running[i]], 1e-9))
    return found / max(state.count[RUNNING], 1)


@kernel
def play(jobs: Jobs, cluster: Cluster, state: State, ideal: Floats, w: Floats, until: float) -> int:
    """Run from a state by a formula, to the last instant before `until`; return how many starts were considered.

    Args:
        ideal: see `least_cost`.
        w: weights of `TERMS`.
        until: seconds, infinite to run to the end.
    """
    of, on, now = by_reference(jobs), by_reference(cluster), by_reference(state)
    take, key, looked = np.zeros_like(state.free), np.zeros(len(jobs.submit)), 0
    moves, known = w[WAITED] != 0 or w[CROWDED] != 0, 0
    while True:
        running = float(state.count[RUNNING])
        crowd = log1p(state.count[WAITING] / max(running, 1.0))
        first = 0 if moves else known
        for i in range(first, state.count[WAITING]):
            key[state.queue[i]] = _key(of, state.queue[i], state.clock[NOW], crowd, ideal, w)
        sort_in(now, key, first)
        typical = _typical(of, now) if w[LENGTH] != 0 else 0.0
        at, idle, most = 0, total(state.free), np.inf
        while at < state.count[WAITING] and idle > 0:
            job = state.queue[at]
            if key[job] > most:
                break
            looked += 1
            if (
                jobs.gpus[job] <= idle
                and choose(CLOSEST, jobs.gpus[job], on, state.free, take)
                and (
                    state.count[RUNNING] == 0
                    or not _waits(of, job, communication(on, take), typical, log(running + 1), crowd, ideal, w)
                )
            ):
                begin_job(of, on, now, at, take)
                idle -= jobs.gpus[job]
            else:
                most = min(most, key[job] + w[PASSES])
                at += 1
        soon = jobs.submit[state.count[ARRIVED]] if state.count[ARRIVED] < len(jobs.submit) else np.inf
        if state.count[RUNNING] > 0:
            soon = min(soon, state.finish[state.running[0]])
        if soon >= until:
            return looked
        known = state.count[WAITING]
        pass_time(of, on, now)


def finish(jobs: Jobs, cluster: Cluster, state: State, weights: FloatArray, until: float = np.inf) -> int:
    """Do what `play` does, by default to the end."""
    return int(play(jobs, cluster, state, least_cost(cluster), weights, until))
