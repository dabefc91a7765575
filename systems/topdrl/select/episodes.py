"""Whole episodes in compiled code: a network decides on one candidate after the other."""

from __future__ import annotations

from math import log

import numpy as np

from gangplan.learned.policy.perceptron import Weights, forward
from gangplan.solvers.compiled.kernel import Floats, by_reference, inner, kernel

from ..arrays import ARRIVED, RUNNING, WAITING, Cluster, Jobs, State
from ..step import begin_job, pass_time
from .candidates import WAIT, Scratch
from .features import see, total, write_rows

LOG_GPUS, LOG_SLOWDOWN, PATIENCE, HEAD = range(4)
"""Of a rule, see `gangplan.systems.topdrl.select.guard.RULES`."""

_NEVER = -1e6


@inner
def take_candidate(jobs: Jobs, cluster: Cluster, state: State, s: Scratch, i: int) -> bool:
    """Do what a candidate says; return whether there is more to come."""
    if s.place[i] == WAIT:
        return bool(pass_time(jobs, cluster, state))
    begin_job(jobs, cluster, state, s.place[i], s.take[i])
    return True


@inner
def score_by_rule(jobs: Jobs, state: State, s: Scratch, k: int, rule: Floats) -> None:
    """Write scores of the first k candidates such that the best is what a rule does, see the guard's `RULES`."""
    in_the_way = np.inf
    idle = total(state.free)
    for at in range(state.count[WAITING]):
        job = state.queue[at]
        if jobs.gpus[job] > idle:
            in_the_way = min(in_the_way, key_of(jobs, job, s.ideal, rule))
    for i in range(k):
        s.score[i] = _NEVER
        first = s.place[i] != WAIT and (i == 0 or s.place[i - 1] != s.place[i])
        if first:  # of the places of a job the closest comes first; others are not a rule's
            job = state.queue[s.place[i]]
            slower = (1 + jobs.intensity[job] * s.cost[i]) / (1 + jobs.intensity[job] * s.ideal[jobs.gpus[job]])
            key = key_of(jobs, job, s.ideal, rule)
            if log(slower) <= rule[PATIENCE] + 1e-9 or state.count[RUNNING] == 0:
                s.score[i] = -key
            else:
                in_the_way = min(in_the_way, key)
    for i in range(k):
        if s.place[i] == WAIT:
            s.score[i] = 0.5 * _NEVER
        elif rule[HEAD] > 0 and -s.score[i] > in_the_way + 1e-5:
            s.score[i] = _NEVER


@inner
def key_of(jobs: Jobs, job: int, ideal: Floats, rule: Floats) -> float:
    """Return what the jobs of a rule are in the order of."""
    gpus = jobs.gpus[job]
    key = log(max(jobs.expected[job], 1e-9)) + rule[LOG_GPUS] * log(gpus)
    return float(key + rule[LOG_SLOWDOWN] * log(1 + jobs.intensity[job] * ideal[gpus]))


@kernel
def play(
    jobs: Jobs, cluster: Cluster, state: State, scratch: Scratch, weights: Weights, rule: Floats, learned: bool,
    until: int,
) -> int:  # fmt: skip
    """Run from a state to the end, or until so many jobs have arrived, and return how many decisions there were.

    Args:
        jobs, cluster, state: are those of the run.
        scratch: of the cluster.
        weights: of the network.
        rule: as in `gangplan.systems.topdrl.select.guard.RULES`.
        learned: whether the network decides, or the rule.
        until: more than there are to run to the end.
    """
    of, on, now, s = by_reference(jobs), by_reference(cluster), by_reference(state), by_reference(scratch)
    net, decisions = by_reference(weights), 0
    go_on = True
    while go_on and state.count[ARRIVED] < until:
        k = 0
        if state.count[WAITING] > 0:
            see(of, on, now, s)
            k = write_rows(of, on, now, s)
        if k == 0:
            go_on = pass_time(of, on, now)
            continue
        if learned:
            forward(s.row, k, net, s.score)
        else:
            score_by_rule(of, now, s, k, rule)
        go_on = take_candidate(of, on, now, s, int(np.argmax(s.score[:k])))
        decisions += 1
    return decisions


@kernel
def observe(jobs: Jobs, cluster: Cluster, state: State, scratch: Scratch) -> int:
    """Write candidates and features of a state for Python, and return how many candidates there are."""
    of, on, now, s = by_reference(jobs), by_reference(cluster), by_reference(state), by_reference(scratch)
    if state.count[WAITING] == 0:
        return 0
    see(of, on, now, s)
    return int(write_rows(of, on, now, s))
