"""A rule in two readable formulas, who goes first and who waits for closer GPUs; a whole run by them, compiled.

A job's *key* is log seconds plus the weighted terms `ORDER`; the least goes first. It *waits*, as long as anything
runs, where log(slower - 1) is above the weighted terms `WAIT`. Behind a job that waits or does not fit only those start
of whom exp(key) is at most 1/`hold` times as much, anybody if that is 0. Of a job, seconds are those that are expected,
slowdown the least that it can have, slower how many times that its own would be. Typical are the seconds of the jobs
that run, in the geometric mean; crowd is log(1 + waiting/running).
"""

from __future__ import annotations

import math
from typing import Any

import cython
import numpy as np
from cython import cclass, declare, final, nogil
from cython.cimports.libc.math import log, log1p

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.placement.online.evolved import Evolved

from .step import least_cost

if not cython.compiled:
    from gangplan.solvers.native import Float, Int

    from .allocate import CLOSEST, choose
    from .arrays import NOW, RUNNING, WAITING, GpuRacks, Jobs, State
    from .listing import sort_in
    from .step import begin_job, communication, pass_time, total

    GPUS, SLOWDOWN, WAITED, CROWDED, ONE, LENGTH, WIDTH, RUNS, CROWD, AGE, HOLD = range(11)
    """Weights of a formula, float64 (terms,)."""

ORDER = ("log GPUs", "log slowdown", "log(1 + waited/seconds)", "crowd log GPUs")
WAIT = ("1", "log(seconds/typical)", "log GPUs", "log(1 + running)", "crowd", "log(1 + waited/seconds)")
TERMS = (*(f"order: {x}" for x in ORDER), *(f"wait: {x}" for x in WAIT), "hold")
PATIENT = np.array([0.777, 0.639, 0.0, 0.0, math.log(math.exp(0.091) - 1), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
"""The rule `gangplan.solvers.placement.online.patient.Patient`."""
EVOLVED = np.array([Evolved().weights.get(term, 0.0) for term in TERMS])
FORMULAS = {"patient": PATIENT, "evolved": EVOLVED}
NEVER = declare(Float, float("inf"))
SURE = declare(Float, 1e-9)
"""Seconds that a job is expected to take at least, and by how much more than another one cost is higher."""


@final
@cclass
class Formula:
    """A formula at work on a cluster of m nodes and G GPUs, with up to n jobs.

    Attributes:
        w: weights, float64 (terms,).
        ideal: see `least_cost`, float64 (G + 1,).
        typical, runs, crowd: log typical, log(1 + running) and crowd, see `look_at`.
        key: of each job, float64 (n,).
        cost, asked: of the closest GPUs, by their number, and at which change of the cluster that was, (G + 1,).
        change: how often a job started, or time passed.
        take: GPUs of each node, int64 (m,).
    """

    def __init__(self, weights: Any, ideal: Any, nodes: int, jobs: int) -> None:
        if len(weights) != HOLD + 1:
            raise ValueError(f"{len(weights)} weights are not those of the {HOLD + 1} terms")
        self.w, self.ideal, self.key, self.take = weights, ideal, np.zeros(jobs), np.zeros(nodes, np.int64)
        self.cost, self.asked, self.change = np.zeros(len(ideal)), np.zeros(len(ideal), np.int64), 1
        self.typical = self.runs = self.crowd = 0.0


def words(weights: FloatArray) -> tuple[str, str, str]:
    """Return a formula in words: the key, when a job waits, and whom it holds."""
    terms = zip((*ORDER, *WAIT), weights[:HOLD].tolist(), strict=True)
    each = [f" {'-' if w < 0 else '+'} {abs(w):.3g}{'' if x == '1' else f' {x}'}" if w else "" for x, w in terms]
    order, wait = "".join(each[: len(ORDER)]), "".join(each[len(ORDER) :])
    hold = f"those behind with exp(key) more than {1 / weights[HOLD]:.3g} times as much" if weights[HOLD] else "nobody"
    bound = wait.removeprefix(" +") or " 0"
    return f"key = log seconds{order}", f"waits where log(slower - 1) >{bound}", f"holds {hold}"


def _late(jobs: Jobs, job: Int, now: Float) -> Float:
    return log1p((now - jobs.submit[job]) / max(jobs.expected[job], SURE))


def key_of(jobs: Jobs, job: Int, now: Float, f: Formula) -> Float:
    """Return what the jobs of a rule are in the order of."""
    key: Float = log(max(jobs.expected[job], SURE)) + (f.w[GPUS] + f.w[CROWDED] * f.crowd) * log(jobs.gpus[job])
    key += f.w[SLOWDOWN] * log(1.0 + jobs.intensity[job] * f.ideal[jobs.gpus[job]])
    return key + f.w[WAITED] * _late(jobs, job, now) if f.w[WAITED] != 0.0 else key


def hope(jobs: Jobs, job: Int, cost: Float, now: Float, f: Formula) -> Float:
    """Return by how much a job is too slow to start, not above 0 if it need not wait."""
    slower: Float = (1.0 + jobs.intensity[job] * cost) / (1.0 + jobs.intensity[job] * f.ideal[jobs.gpus[job]])
    if slower <= 1.0 + SURE:
        return -NEVER
    bound: Float = f.w[ONE] + f.w[WIDTH] * log(jobs.gpus[job]) + f.w[RUNS] * f.runs + f.w[CROWD] * f.crowd
    if f.w[LENGTH] != 0.0:
        bound += f.w[LENGTH] * (log(max(jobs.expected[job], SURE)) - f.typical)
    if f.w[AGE] != 0.0:
        bound += f.w[AGE] * _late(jobs, job, now)
    return log(slower - 1.0) - bound - SURE


def look_at(jobs: Jobs, state: State, unseen: Float, f: Formula) -> None:
    """Note `typical`, `runs` and `crowd` before anybody started now; `unseen`: more jobs that wait."""
    running: Int = 0
    waiting: Float = state.count[WAITING] + unseen
    lengths: Float = 0.0
    for i in range(state.count[RUNNING]):
        if state.start[state.running[i]] < state.clock[NOW]:
            lengths += log(max(jobs.expected[state.running[i]], SURE))
            running += 1
        else:
            waiting += 1.0
    beside: Float = max(running, 1)
    f.typical, f.runs, f.crowd = lengths / beside, log1p(running), log1p(waiting / beside)


def run_formula(jobs: Jobs, cluster: GpuRacks, state: State, f: Formula, until: Float) -> Int:
    """Do what `play` does, for compiled code."""
    looked: Int = 0
    known: Int = 0
    while True:
        f.change += 1
        look_at(jobs, state, 0.0, f)
        now = state.clock[NOW]
        first: Int = 0 if f.w[WAITED] != 0.0 or f.w[CROWDED] != 0.0 else known
        for i in range(first, state.count[WAITING]):
            f.key[state.queue[i]] = key_of(jobs, state.queue[i], now, f)
        sort_in(state, f.key, first)
        at: Int = 0
        idle: Int = total(state.free)
        most: Float = NEVER
        while at < state.count[WAITING] and idle > 0 and f.key[state.queue[at]] <= most:
            job = state.queue[at]
            looked += 1
            need = jobs.gpus[job]
            if need <= idle and f.asked[need] != f.change:
                choose(CLOSEST, need, cluster, state.free, f.take)
                f.cost[need], f.asked[need] = communication(cluster, f.take), f.change
            if need <= idle and (state.count[RUNNING] == 0 or hope(jobs, job, f.cost[need], now, f) <= 0.0):
                choose(CLOSEST, need, cluster, state.free, f.take)
                begin_job(jobs, cluster, state, at, f.take)
                idle -= need
                f.change += 1
                continue
            if f.w[HOLD] > 0.0:
                most = min(most, f.key[job] - log(f.w[HOLD]))
            at += 1
        known = state.count[WAITING]
        if not pass_time(jobs, cluster, state, until):
            return looked


def play(jobs: Jobs, cluster: GpuRacks, state: State, f: Formula, until: Float) -> int:
    """Run from a state by a formula, to the last instant before `until`; return how many jobs were looked at.

    Args:
        until: seconds, infinite to run to the end.
    """
    state.require(jobs, cluster)
    if (len(f.take), len(f.ideal)) != (len(cluster.rack), len(cluster.node) + 1) or len(f.key) < len(jobs.submit):
        raise ValueError(f"the formula is for {len(f.take)} nodes, {len(f.ideal) - 1} GPUs and {len(f.key)} jobs")
    with nogil:
        looked = run_formula(jobs, cluster, state, f, until)
    return looked


def finish(jobs: Jobs, cluster: GpuRacks, state: State, weights: FloatArray, until: Float = np.inf) -> int:
    """Do what `play` does, by default to the end."""
    f = Formula(weights, least_cost(cluster), len(cluster.rack), len(jobs.submit))
    return play(jobs, cluster, state, f, until)
