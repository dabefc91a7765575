"""A guard: where a plain rule would have done better with the jobs so far, that rule decides.

The network and each rule play, in thought and from an empty cluster, all that has arrived, again each time that half as
much more has. Who has the least mean JCT there decides until the next time, but the one who decides is left only for a
lead of `LEAD`: follow the leader, who changes for a clear lead only (after Kalai and Vempala, Journal of Computer and
System Sciences 71, 2005).
"""

from __future__ import annotations

import numpy as np

from gangplan.learned.policy.perceptron import Weights

from ..arrays import ARRIVED, Cluster, Jobs, State, begin
from .candidates import Scratch
from .episodes import play

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
    return Jobs(
        jobs.submit[past], work, jobs.expected[past], jobs.gpus[past], jobs.intensity[past], jobs.first[: arrived + 1]
    )


def lead(jobs: Jobs, cluster: Cluster, s: Scratch, weights: Weights, leader: int) -> int:
    """Return who decides from now on."""
    found = []
    for who in range(-1, len(RULES)):
        state = begin(jobs, cluster)
        play(jobs, cluster, state, s, weights, RULES[max(who, 0)], who < 0, len(jobs.submit) + 1)
        found.append(float((state.finish - jobs.submit).mean()))
    best = int(np.argmin(found)) - 1
    return best if found[best + 1] < (1 - LEAD) * found[leader + 1] else leader
