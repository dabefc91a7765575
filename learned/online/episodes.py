"""Whole episodes in compiled code: the network decides on one candidate after the other."""

from __future__ import annotations

import cython
from cython import bint, declare, nogil
from cython.cimports.libc.math import tanh

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.gangs.arrays import GpuRacks, Jobs, State
from gangplan.simulator.gangs.formula import EVOLVED, Formula

from ..graph.compiled import CompiledNetwork
from .candidates import CandidateScratch

if not cython.compiled:
    from gangplan.simulator.gangs.arrays import ARRIVED, NOW, WAITING
    from gangplan.simulator.gangs.formula import key_of, look_at
    from gangplan.simulator.gangs.step import begin_job, pass_time
    from gangplan.solvers.native import Float, Int

    from ..graph.compiled import scores, strange
    from .candidates import IN_SIGHT, WAIT, sort_in
    from .features import BY_RULE, see
    from .graph import write_graph

BOUND = 4.5
"""The most by which the network changes a score of the rule: of jobs whose keys are exp(9) apart the rule chooses."""
NEVER = -1e6
"""The score of what is not to be done."""
MOST = declare(Float, BOUND)
LEAST = declare(Float, NEVER)
END = declare(Float, float("inf"))


def _see_queue(s: CandidateScratch, f: Formula) -> None:
    """Write which waiting jobs are in sight: the first by the rule, in the order of the queue."""
    n: Int = s.state.count[WAITING]
    s.waiting = 0
    for at in range(n):
        key: Float = at if n <= IN_SIGHT else key_of(s.jobs, s.state.queue[at], s.state.clock[NOW], f)
        s.waiting = sort_in(s, at, key, s.seen, s.early, s.waiting, True)
    for i in range(s.waiting):
        sort_in(s, s.seen[i], s.seen[i], s.queue, s.early, i, True)
    for i in range(s.waiting):
        s.seen[i] = s.queue[i]
        s.queue[i] = s.state.queue[s.seen[i]]


def _rate(s: CandidateScratch, net: CompiledNetwork, f: Formula, learned: bint) -> Int:
    """Write candidates, graph and scores of a state, whose jobs `IN_SIGHT` are seen; return how many candidates.

    Scores are the rule's, which the network corrects if it is asked and has seen the like.
    """
    look_at(s.jobs, s.state, s.unseen, f)
    _see_queue(s, f)
    k = write_graph(s, f)
    if k == 0:
        return 0
    s.odd = strange(s.graph, net) if learned else -1
    learned = learned and s.odd < 0
    if learned:
        scores(s.graph, net)
    for i in range(k):
        s.score[i] = s.x[i, BY_RULE]
        if learned:
            s.score[i] += MOST * tanh(s.graph.told[i, 0] / MOST)
        if s.place[i] != WAIT:
            s.place[i] = s.seen[s.place[i]]
        elif s.at_once:
            s.score[i] = LEAST
    for i in range(s.fit):
        s.listed[i] = s.seen[s.listed[i]]
    for i in range(s.not_fit):
        s.blocked[i] = s.seen[s.blocked[i]]
    return k


def play(
    jobs: Jobs, cluster: GpuRacks, state: State, s: CandidateScratch, net: CompiledNetwork, rule: FloatArray,
    learned: bint, until: Int, most: Int,
) -> int:  # fmt: skip
    """Run from a state on, and return how many decisions there were.

    Args:
        rule: weights of a formula, see `gangplan.simulator.gangs.formula`.
        learned: whether the network corrects the rule; where it has not seen the like, `EVOLVED` decides instead.
        until: so many jobs have arrived; more than there are to run to the end.
        most: decisions.
    """
    s.enter(jobs, cluster, state, net)
    f, behind = Formula(rule, s.ideal, 0, 0), Formula(EVOLVED, s.ideal, 0, 0)
    decisions: Int = 0
    more: bint = True
    with nogil:
        while more and decisions < most and s.state.count[ARRIVED] < until:
            see(s)
            k: Int = _rate(s, net, f, learned)
            if learned and k > 0 and s.odd >= 0:
                k = _rate(s, net, behind, False)
            best: Int = 0
            for i in range(1, k):
                if not s.score[i] <= s.score[best] and s.score[best] == s.score[best]:  # the first nan, if there is one
                    best = i
            if k == 0 or s.place[best] == WAIT:
                more = pass_time(s.jobs, s.cluster, s.state, END)
            else:
                begin_job(s.jobs, s.cluster, s.state, s.place[best], s.take[best])
            decisions += k > 0
    return decisions


def observe(
    jobs: Jobs, cluster: GpuRacks, state: State, s: CandidateScratch, net: CompiledNetwork, rule: FloatArray, told: bint
) -> int:
    """Write candidates, graph and scores of a state for Python, and return how many candidates there are.

    Args:
        told: whether `look` wrote already what jobs are like.
    """
    s.enter(jobs, cluster, state, net)
    f = Formula(rule, s.ideal, 0, 0)
    with nogil:
        if not told:
            see(s)
        k = _rate(s, net, f, True)
    return k


def look(jobs: Jobs, cluster: GpuRacks, state: State, s: CandidateScratch) -> None:
    """Write what jobs that arrived are like, for Python."""
    s.enter(jobs, cluster, state)
    see(s)
