"""A rule in two readable formulas, who goes first and who waits for closer GPUs; a whole run by them, compiled.

A job's *key* is log seconds plus the weighted terms `ORDER`; the least goes first. It *waits*, as long as anything
runs, where log(slower - 1) is above the weighted terms `WAIT`. Behind a job that waits or does not fit only those start
of whom exp(key) is at most 1/`hold` times as much, anybody if that is 0. Of a job, seconds are those that are expected,
slowdown the least that it can have, slower how many times that its own would be. Typical are the seconds of the jobs
that run, in the geometric mean; crowd is log(1 + waiting/running).
"""

from __future__ import annotations

from math import exp, log, log1p

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import Floats, by_reference, inner, kernel, lean
from gangplan.solvers.placement.online.evolved import Evolved

from .allocate import CLOSEST, choose
from .arrays import NOW, RUNNING, WAITING, Cluster, Jobs, State
from .listing import sort_in
from .step import begin_job, communication, least_cost, pass_time, total

ORDER = ("log GPUs", "log slowdown", "log(1 + waited/seconds)", "crowd log GPUs")
WAIT = ("1", "log(seconds/typical)", "log GPUs", "log(1 + running)", "crowd", "log(1 + waited/seconds)")
TERMS = (*(f"order: {x}" for x in ORDER), *(f"wait: {x}" for x in WAIT), "hold")
GPUS, SLOWDOWN, WAITED, CROWDED, ONE, LENGTH, WIDTH, RUNS, CROWD, AGE, HOLD = range(len(TERMS))
"""Weights of a formula, float64 (terms,)."""
PATIENT = np.array([0.777, 0.639, 0.0, 0.0, log(exp(0.091) - 1), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
"""The rule `gangplan.solvers.placement.online.patient.Patient`."""
EVOLVED = np.array([Evolved().weights.get(term, 0.0) for term in TERMS])
FORMULAS = {"patient": PATIENT, "evolved": EVOLVED}


def words(weights: FloatArray) -> tuple[str, str, str]:
    """Return a formula in words: the key, when a job waits, and whom it holds."""
    terms = zip((*ORDER, *WAIT), weights[:HOLD].tolist(), strict=True)
    each = [f" {'-' if w < 0 else '+'} {abs(w):.3g}{'' if x == '1' else f' {x}'}" if w else "" for x, w in terms]
    order, wait = "".join(each[: len(ORDER)]), "".join(each[len(ORDER) :])
    hold = f"those behind with exp(key) more than {1 / weights[HOLD]:.3g} times as much" if weights[HOLD] else "nobody"
    bound = wait.removeprefix(" +") or " 0"
    return f"key = log seconds{order}", f"waits where log(slower - 1) >{bound}", f"holds {hold}"


@lean
def _late(jobs: Jobs, job: int, now: float) -> float:
    return log1p((now - jobs.submit[job]) / max(jobs.expected[job], 1e-9))


@lean
def key_of(jobs: Jobs, job: int, now: float, crowd: float, ideal: Floats, w: Floats) -> float:
    """Return what the jobs of a rule are in the order of."""
    key = log(max(jobs.expected[job], 1e-9)) + (w[GPUS] + w[CROWDED] * crowd) * log(jobs.gpus[job])
    key += w[SLOWDOWN] * log(1 + jobs.intensity[job] * ideal[jobs.gpus[job]])
    return float(key + w[WAITED] * _late(jobs, job, now) if w[WAITED] != 0 else key)


@lean
def hope(
    jobs: Jobs, job: int, cost: float, now: float, seen: tuple[float, float, float], ideal: Floats, w: Floats
) -> float:
    """Return by how much a job is too slow to start, not above 0 if it need not wait; `seen`: see `look_at`."""
    slower = (1 + jobs.intensity[job] * cost) / (1 + jobs.intensity[job] * ideal[jobs.gpus[job]])
    if slower <= 1 + 1e-9:
        return -np.inf
    bound = w[ONE] + w[WIDTH] * log(jobs.gpus[job]) + w[RUNS] * seen[1] + w[CROWD] * seen[2]
    if w[LENGTH] != 0:
        bound += w[LENGTH] * (log(max(jobs.expected[job], 1e-9)) - seen[0])
    if w[AGE] != 0:
        bound += w[AGE] * _late(jobs, job, now)
    return float(log(slower - 1) - bound - 1e-9)


@lean
def look_at(jobs: Jobs, state: State, unseen: float) -> tuple[float, float, float]:
    """Return log typical, log(1 + running) and crowd before anybody started now; `unseen`: more jobs that wait."""
    running, waiting, lengths = 0, state.count[WAITING] + unseen, 0.0
    for i in range(state.count[RUNNING]):
        if state.start[state.running[i]] < state.clock[NOW]:
            lengths += log(max(jobs.expected[state.running[i]], 1e-9))
            running += 1
        else:
            waiting += 1
    return lengths / max(running, 1), log1p(running), log1p(waiting / max(running, 1))


@inner
def run_formula(jobs: Jobs, cluster: Cluster, state: State, ideal: Floats, w: Floats, until: float) -> int:
    """Do what `play` does, for compiled code."""
    take, key, looked, known, starts = np.zeros_like(state.free), np.zeros(len(jobs.submit)), 0, 0, 1
    cost, asked = np.zeros_like(ideal), np.zeros(len(ideal), np.int64)  # by GPUs, while nobody starts or ends
    while True:
        seen, clock = look_at(jobs, state, 0.0), state.clock[NOW]
        first = 0 if w[WAITED] != 0 or w[CROWDED] != 0 else known
        for i in range(first, state.count[WAITING]):
            key[state.queue[i]] = key_of(jobs, state.queue[i], clock, seen[2], ideal, w)
        sort_in(state, key, first)
        at, idle, most = 0, total(state.free), np.inf
        while at < state.count[WAITING] and idle > 0 and key[state.queue[at]] <= most:
            job = state.queue[at]
            looked += 1
            need = jobs.gpus[job]
            if need <= idle and asked[need] != starts:
                choose(CLOSEST, need, cluster, state.free, take)
                cost[need], asked[need] = communication(cluster, take), starts
            if need <= idle and (state.count[RUNNING] == 0 or hope(jobs, job, cost[need], clock, seen, ideal, w) <= 0):
                choose(CLOSEST, need, cluster, state.free, take)
                begin_job(jobs, cluster, state, at, take)
                idle -= need
                starts += 1
                continue
            if w[HOLD] > 0:
                most = min(most, key[job] - log(w[HOLD]))
            at += 1
        known = state.count[WAITING]
        starts += 1
        if not pass_time(jobs, cluster, state, until):
            return looked


@kernel
def play(jobs: Jobs, cluster: Cluster, state: State, ideal: Floats, w: Floats, until: float) -> int:
    """Run from a state by a formula, to the last instant before `until`; return how many jobs were looked at.

    Args:
        ideal: see `least_cost`.
        w: weights.
        until: seconds, infinite to run to the end.
    """
    return run_formula(by_reference(jobs), by_reference(cluster), by_reference(state), ideal, w, until)


def finish(jobs: Jobs, cluster: Cluster, state: State, weights: FloatArray, until: float = np.inf) -> int:
    """Do what `play` does, by default to the end."""
    return int(play(jobs, cluster, state, least_cost(cluster), weights, until))
