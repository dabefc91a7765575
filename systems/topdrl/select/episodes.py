"""Whole episodes in compiled code: a network decides on one candidate after the other, and a guard watches it.

Where a plain rule would have done better with the jobs so far, that rule decides: the network and each rule play, in
thought and from an empty cluster, all that has arrived, again each time that half as much more has. Who has the least
mean JCT there decides until the next time, but is left only for a lead of `LEAD`: follow the leader, who changes for a
clear lead only (after Kalai and Vempala, Journal of Computer and System Sciences 71, 2005).
"""

from __future__ import annotations

from math import log

import numpy as np

from gangplan.learned.policy.perceptron import Weights, forward
from gangplan.simulator.gangs.arrays import ARRIVED, RUNNING, WAITING, Cluster, Jobs, State, begin, first_jobs
from gangplan.simulator.gangs.step import begin_job, pass_time
from gangplan.solvers.compiled.kernel import Floats, by_reference, inner, kernel

from .candidates import WAIT, Scratch
from .features import total, write_rows

LOG_GPUS, LOG_SLOWDOWN, PATIENCE, HEAD = range(4)
"""Of a rule, see `gangplan.systems.topdrl.select.episodes.RULES`."""

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
        rule: as in `gangplan.systems.topdrl.select.episodes.RULES`.
        learned: whether the network decides, or the rule.
        until: more than there are to run to the end.
    """
    of, on, now, s = by_reference(jobs), by_reference(cluster), by_reference(state), by_reference(scratch)
    net, decisions = by_reference(weights), 0
    go_on = True
    while go_on and state.count[ARRIVED] < until:
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
    return int(write_rows(by_reference(jobs), by_reference(cluster), by_reference(state), by_reference(scratch)))


RULES = np.array(
    [
        (0.777, 0.639, 0.091, 0.0),
        (1.0, 0.0, np.inf, 1.0),
        (1.0, 0.0, np.inf, 0.0),
        (0.0, 0.0, np.inf, 0.0),
        (1.088, 0.911, 0.15, 1.0),
        (1.0, 0.0, 0.4, 0.0),
    ]
)
"""Jobs start in the order of log(length) + a log(GPUs) + b log(slowdown where communication is least), unless they
would be more than exp(c) times as slow as that; then they wait, and with d = 1 those behind them wait, too. Float64
(rules, 4): a, b, c, d. The first and the fifth are the best of cross-entropy search over 176 workloads with training
seeds; then least work, with others waiting or overtaking, and shortest job first."""

FIRST = 40
"""Jobs that arrive before anybody is compared."""
GROWTH = 1.5
"""After so many times as many arrivals they are compared again."""
LEAD = 0.1
"""Share of the mean JCT by which another has to be ahead: of 0.03, 0.06, 0.1 and 0.15 the best on validation seeds."""


def guarded(jobs: Jobs, cluster: Cluster, state: State, s: Scratch, weights: Weights) -> list[int]:
    """Run from a state to the end; return who decided: -1 for the network, or a rule of `RULES`."""
    n, leader, leaders = len(jobs.submit), -1, []
    due = FIRST
    while True:
        play(jobs, cluster, state, s, weights, RULES[max(leader, 0)], leader < 0, due)
        leaders.append(leader)
        arrived = int(state.count[ARRIVED])
        if arrived == n:
            break
        leader = lead(known(jobs, state, arrived), cluster, s, weights, leader)
        due = max(int(GROWTH * due), arrived + 1)
    play(jobs, cluster, state, s, weights, RULES[max(leader, 0)], leader < 0, n + 1)
    return leaders


def known(jobs: Jobs, state: State, arrived: int) -> Jobs:
    """Return the jobs that have arrived as far as they are known: those that are done took as long as they took."""
    past = slice(0, arrived)
    done = state.finish[past] <= state.clock[0]
    work = np.where(done, jobs.work[past], jobs.expected[past])
    return first_jobs(jobs, arrived)._replace(work=work)


def lead(jobs: Jobs, cluster: Cluster, s: Scratch, weights: Weights, leader: int) -> int:
    """Return who decides from now on."""
    found = []
    for who in range(-1, len(RULES)):
        state = begin(jobs, cluster)
        play(jobs, cluster, state, s, weights, RULES[max(who, 0)], who < 0, len(jobs.submit) + 1)
        found.append(float((state.finish - jobs.submit).mean()))
    best = int(np.argmin(found)) - 1
    return best if found[best + 1] < (1 - LEAD) * found[leader + 1] else leader
