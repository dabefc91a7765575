"""Whole episodes in compiled code: the network decides on one candidate after the other."""

from __future__ import annotations

from math import tanh

import numpy as np

from gangplan.simulator.gangs.arrays import ARRIVED, NOW, WAITING, Cluster, Jobs, State
from gangplan.simulator.gangs.formula import EVOLVED, key_of, look_at
from gangplan.simulator.gangs.step import begin_job, pass_time
from gangplan.solvers.compiled.kernel import Floats, Ints, by_reference, inner, kernel
from gangplan.solvers.compiled.routines import argsort

from ..graph.compiled import CompiledNetwork, Graph, scores, strange
from .candidates import AT_ONCE, CROWD, HELD_UP, IN_SIGHT, LISTED, ODD, RUNS, TYPICAL, UNSEEN, WAIT, CandidateScratch
from .features import BY_RULE, see
from .graph import RUNS_SEEN, write_graph

BOUND = 4.5
"""The most by which the network changes a score of the rule: of jobs whose keys are exp(9) apart the rule chooses."""
NEVER = -1e6
"""The score of what is not to be done."""


@inner
def take_candidate(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, i: int) -> bool:
    """Do what a candidate says; return whether there is more to come."""
    if s.place[i] == WAIT:
        return bool(pass_time(jobs, cluster, state, np.inf))
    begin_job(jobs, cluster, state, s.place[i], s.take[i])
    return True


@inner
def rate_candidates(g: Graph, net: CompiledNetwork, s: CandidateScratch, k: int, learned: bool) -> None:
    """Write the scores of k candidates: the rule's, which the network corrects if it is asked and has seen the like."""
    for i in range(k):
        s.score[i] = g.x[i, BY_RULE]
    s.most[ODD] = strange(g, net) if learned else -1
    if learned and s.most[ODD] < 0:
        correction = scores(g, net)
        for i in range(k):
            s.score[i] += BOUND * tanh(correction[i, 0] / BOUND)
    if s.most[AT_ONCE] and s.place[0] == WAIT:
        s.score[0] = NEVER


@inner
def _write(jobs: Jobs, cluster: Cluster, sight: State, s: CandidateScratch, rule: Floats, runs: Ints, g: Graph) -> int:
    """Write candidates and graph of a state that the caller holds: a reference alone would not."""
    return int(write_graph(jobs, cluster, by_reference(sight), s, rule, runs, g))


@inner
def rate_state(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph, net: CompiledNetwork, rule: Floats,
    learned: bool, runs: Ints,
) -> int:  # fmt: skip
    """Write candidates, graph and scores of a state, whose jobs `IN_SIGHT` are seen; return how many candidates."""
    n, count = state.count[WAITING], state.count.copy()
    seen = np.arange(n)
    s.stats[TYPICAL], s.stats[RUNS], s.stats[CROWD] = look_at(jobs, state, s.stats[UNSEEN])
    if n > IN_SIGHT:
        key = np.empty(n)
        for at in range(n):
            key[at] = key_of(jobs, state.queue[at], state.clock[NOW], s.stats[CROWD], s.ideal, rule)
        seen = np.sort(argsort(key, True)[:IN_SIGHT])
        count[WAITING] = IN_SIGHT
    sight = State(
        state.clock, count, state.queue[seen], state.running, state.free, state.holder, state.held, state.start,
        state.finish, state.urgency, state.cost,
    )  # fmt: skip
    k = _write(jobs, cluster, sight, s, rule, runs, g)
    if k == 0:
        return 0
    rate_candidates(g, net, s, k, learned)
    for i in range(k):
        if s.place[i] != WAIT:
            s.place[i] = seen[s.place[i]]
    for i in range(s.most[LISTED]):
        s.listed[i] = seen[s.listed[i]]
    for i in range(s.most[HELD_UP]):
        s.blocked[i] = seen[s.blocked[i]]
    return k


@kernel
def play(
    jobs: Jobs, cluster: Cluster, state: State, scratch: CandidateScratch, graph: Graph, net: CompiledNetwork,
    rule: Floats, learned: bool, until: int, most: int,
) -> int:  # fmt: skip
    """Run from a state on, and return how many decisions there were.

    Args:
        rule: see `gangplan.learned.online.features.write_rows`.
        learned: whether the network corrects the rule; where it has not seen the like the
            strongest rule, `EVOLVED`, decides instead.
        until: so many jobs have arrived; more than there are to run to the end.
        most: decisions.
    """
    of, on, now, s = by_reference(jobs), by_reference(cluster), by_reference(state), by_reference(scratch)
    return go_on(of, on, now, s, by_reference(graph), by_reference(net), rule, learned, until, most)


@inner
def go_on(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph, net: CompiledNetwork, rule: Floats,
    learned: bool, until: int, most: int,
) -> int:  # fmt: skip
    """Do what `play` does, for compiled code."""
    decisions, more, runs, behind = 0, True, np.zeros(RUNS_SEEN, np.int64), EVOLVED.copy()
    while more and decisions < most and state.count[ARRIVED] < until:
        see(jobs, cluster, state, s)
        k = rate_state(jobs, cluster, state, s, g, net, rule, learned, runs)
        if learned and k > 0 and s.most[ODD] >= 0:
            k = rate_state(jobs, cluster, state, s, g, net, behind, False, runs)
        if k == 0:
            more = pass_time(jobs, cluster, state, np.inf)
            continue
        more = take_candidate(jobs, cluster, state, s, int(np.argmax(s.score[:k])))
        decisions += 1
    return decisions


@kernel
def observe(
    jobs: Jobs,
    cluster: Cluster,
    state: State,
    scratch: CandidateScratch,
    graph: Graph,
    net: CompiledNetwork,
    rule: Floats,
    told: bool,
) -> int:
    """Write candidates, graph and scores of a state for Python, and return how many candidates there are.

    Args:
        told: whether `CandidateScratch.stats` say already what jobs are like.
    """
    of, on, now, s = by_reference(jobs), by_reference(cluster), by_reference(state), by_reference(scratch)
    if not told:
        see(of, on, now, s)
    g, weights = by_reference(graph), by_reference(net)
    return int(rate_state(of, on, now, s, g, weights, rule, True, np.zeros(RUNS_SEEN, np.int64)))


@kernel
def look(jobs: Jobs, cluster: Cluster, state: State, scratch: CandidateScratch) -> None:
    """Write `CandidateScratch.stats`, what jobs that arrived are like, for Python."""
    see(by_reference(jobs), by_reference(cluster), by_reference(state), by_reference(scratch))
