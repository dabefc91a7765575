"""Whole episodes in compiled code: the network decides on one candidate after the other."""

from __future__ import annotations

import cython
from cython import bint, declare, nogil
from cython.cimports.libc.math import tanh

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.gangs.arrays import Cluster, Jobs, State
from gangplan.simulator.gangs.formula import EVOLVED, Formula

from ..graph.compiled import CompiledNetwork, Graph
from .candidates import CandidateScratch
from .graph import SCHEMA

if not cython.compiled:
    from gangplan.simulator.gangs.arrays import ARRIVED, NOW, WAITING
    from gangplan.simulator.gangs.formula import key_of, look_at
    from gangplan.simulator.gangs.step import begin_job, pass_time
    from gangplan.solvers.native import Float, Int

    from ..graph.compiled import scores, strange
    from .candidates import (
        AT_ONCE,
        CROWD,
        HELD_UP,
        IN_SIGHT,
        LISTED,
        ODD,
        RUNS,
        TYPICAL,
        UNSEEN,
        WAIT,
        sort_in,
    )
    from .features import BY_RULE, see
    from .graph import write_graph

BOUND = 4.5
"""The most by which the network changes a score of the rule: of jobs whose keys are exp(9) apart the rule chooses."""
NEVER = -1e6
"""The score of what is not to be done."""
MOST = declare(Float, BOUND)
LEAST = declare(Float, NEVER)
END = declare(Float, float("inf"))


def take_candidate(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, i: Int) -> bint:
    """Do what a candidate says; return whether there is more to come."""
    if s.place[i] == WAIT:
        return pass_time(jobs, cluster, state, END)
    begin_job(jobs, cluster, state, s.place[i], s.take[i])
    return True


def _rate_candidates(g: Graph, net: CompiledNetwork, s: CandidateScratch, k: Int, learned: bint) -> None:
    """Write the scores of k candidates: the rule's, which the network corrects if it is asked and has seen the like."""
    s.most[ODD] = strange(g, net) if learned else -1
    learned = learned and s.most[ODD] < 0
    if learned:
        scores(g, net)
    for i in range(k):
        s.score[i] = g.x[i, BY_RULE]
        if learned:
            s.score[i] += MOST * tanh(g.told[i, 0] / MOST)
    if s.most[AT_ONCE] and s.place[0] == WAIT:
        s.score[0] = LEAST


def _see_queue(jobs: Jobs, state: State, s: CandidateScratch, f: Formula) -> None:
    """Write which waiting jobs are in sight: the first by the rule, in the order of the queue."""
    n: Int = state.count[WAITING]
    now = state.clock[NOW]
    s.waiting = 0
    for at in range(n):
        if n <= IN_SIGHT:
            s.seen[at], s.waiting = at, n
        else:
            key = key_of(jobs, state.queue[at], now, f)
            s.waiting = sort_in(jobs, s, at, key, s.seen, s.early, s.waiting, True)
    for i in range(s.waiting):
        at: Int = s.seen[i]
        place: Int = i
        while place > 0 and s.seen[place - 1] > at:
            s.seen[place] = s.seen[place - 1]
            place -= 1
        s.seen[place] = at
    for i in range(s.waiting):
        s.queue[i] = state.queue[s.seen[i]]


def _rate_state(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph, net: CompiledNetwork, f: Formula,
    learned: bint,
) -> Int:  # fmt: skip
    """Write candidates, graph and scores of a state, whose jobs `IN_SIGHT` are seen; return how many candidates."""
    look_at(jobs, state, s.stats[UNSEEN], f)
    s.stats[TYPICAL], s.stats[RUNS], s.stats[CROWD] = f.typical, f.runs, f.crowd
    _see_queue(jobs, state, s, f)
    k = write_graph(jobs, cluster, state, s, f, g)
    if k == 0:
        return 0
    _rate_candidates(g, net, s, k, learned)
    for i in range(k):
        if s.place[i] != WAIT:
            s.place[i] = s.seen[s.place[i]]
    for i in range(s.most[LISTED]):
        s.listed[i] = s.seen[s.listed[i]]
    for i in range(s.most[HELD_UP]):
        s.blocked[i] = s.seen[s.blocked[i]]
    return k


def require(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph | None = None,
    net: CompiledNetwork | None = None,
) -> None:  # fmt: skip
    """Raise `ValueError` if jobs, state and room to work in do not fit a cluster, or the graph's room its network."""
    state.require(jobs, cluster)
    m, gpus, racks = len(cluster.rack), len(cluster.node), len(cluster.begin) - 1
    if (len(s.last), len(s.ideal), len(s.group)) != (m, gpus + 1, racks + m):
        raise ValueError(f"room for {len(s.last)} nodes with {len(s.ideal) - 1} GPUs is not for {m} with {gpus}")
    for job in range(len(jobs.gpus)):
        if not 0 <= jobs.gpus[job] <= gpus:
            raise ValueError(f"gpus[{job}]: {jobs.gpus[job]} are not from 0 to the {gpus} of the cluster")
    if g is not None and net is not None:
        g.make_room(net)
        if len(g.x) < s.rows or (len(g.kind), len(g.relation)) != SHAPE:
            raise ValueError(f"room for {len(g.x)} nodes is not for the {s.rows} of a decision")


SHAPE = (len(SCHEMA.kinds) + 1, len(SCHEMA.relations) + 1)


def play(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph, net: CompiledNetwork,
    rule: FloatArray, learned: bint, until: Int, most: Int,
) -> int:  # fmt: skip
    """Run from a state on, and return how many decisions there were.

    Args:
        rule: weights of a formula, see `gangplan.simulator.gangs.formula`.
        learned: whether the network corrects the rule; where it has not seen the like the
            strongest rule, `EVOLVED`, decides instead.
        until: so many jobs have arrived; more than there are to run to the end.
        most: decisions.
    """
    require(jobs, cluster, state, s, g, net)
    f, behind = Formula(rule, s.ideal, 0, 0), Formula(EVOLVED, s.ideal, 0, 0)
    with nogil:
        decisions = go_on(jobs, cluster, state, s, g, net, f, behind, learned, until, most)
    return decisions


def go_on(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph, net: CompiledNetwork, f: Formula,
    behind: Formula, learned: bint, until: Int, most: Int,
) -> Int:  # fmt: skip
    """Do what `play` does, for compiled code; `behind` decides where the network has not seen the like."""
    decisions: Int = 0
    more: bint = True
    while more and decisions < most and state.count[ARRIVED] < until:
        see(jobs, cluster, state, s)
        k: Int = _rate_state(jobs, cluster, state, s, g, net, f, learned)
        if learned and k > 0 and s.most[ODD] >= 0:
            k = _rate_state(jobs, cluster, state, s, g, net, behind, False)
        if k == 0:
            more = pass_time(jobs, cluster, state, END)
            continue
        best: Int = 0
        for i in range(1, k):
            if not s.score[i] <= s.score[best] and s.score[best] == s.score[best]:  # the first nan, if there is one
                best = i
        more = take_candidate(jobs, cluster, state, s, best)
        decisions += 1
    return decisions


def observe(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph, net: CompiledNetwork,
    rule: FloatArray, told: bint,
) -> int:  # fmt: skip
    """Write candidates, graph and scores of a state for Python, and return how many candidates there are.

    Args:
        told: whether `CandidateScratch.stats` say already what jobs are like.
    """
    require(jobs, cluster, state, s, g, net)
    f = Formula(rule, s.ideal, 0, 0)
    with nogil:
        if not told:
            see(jobs, cluster, state, s)
        k = _rate_state(jobs, cluster, state, s, g, net, f, True)
    return k


def look(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch) -> None:
    """Write `CandidateScratch.stats`, what jobs that arrived are like, for Python."""
    require(jobs, cluster, state, s)
    see(jobs, cluster, state, s)
